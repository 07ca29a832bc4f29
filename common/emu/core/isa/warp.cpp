// SPDX-License-Identifier: MIT
//
// Instructions by which the lanes of a warp tell each other something: shfl, vote, match, redux,
// elect, activemask. PTX ISA: "Data Movement and Conversion Instructions: shfl.sync", "Parallel
// Synchronization and Communication Instructions". Every lane that the membermask names executes
// the instruction at once; the scheduler sees to that (instr.members), so that the mask a handler
// gets is the membermask without the lanes that have ended.

#include <algorithm>

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/state/undefined.h"
#include "common/emu/core/units/alu.h"

namespace gg::emu {
namespace {

void take_members(Decoder& d, size_t index) {
  d.instr.converged = true;
  d.instr.members = d.source(index, type_info("b32"));
}
void take_sync(Decoder& d) {
  if (!d.take("sync")) throw Unsupported{"no .sync"};
}

// ---- shfl: a of lane j, where j depends on b; p says whether j is within the lane's segment ----
// The ISA leaves open what comes from a lane that takes no part: the mask does not name it, it has
// ended, or the block has no such thread. It is no value; an H200 gives 0.

enum { kUp, kDown, kButterfly, kIndex };

// The lane whose value this one gets, and whether it is within the segment.
template <int kMode>
std::pair<int, bool> shfl_source(int lane, uint32_t b, uint32_t c) {
  const int by = int(b & 31), clamp = int(c & 31), segment = int(c >> 8 & 31);
  const int last = (lane & segment) | (clamp & ~segment), first = lane & segment;
  const int from = kMode == kUp          ? lane - by
                   : kMode == kDown      ? lane + by
                   : kMode == kButterfly ? lane ^ by
                                         : first | (by & ~segment);
  const bool within = kMode == kUp ? from >= last : from <= last;
  return {within ? from : lane, within};
}

template <int kMode>
Mask shfl_without(Warp& w, const Instr& in, Mask m, const Mask* without) {
  const uint32_t *b = w.at<uint32_t>(in.s[1]), *c = w.at<uint32_t>(in.s[2]);
  Mask lanes = 0;
  for (Lanes l(m); l; ++l) lanes |= Mask(without[0] >> shfl_source<kMode>(*l, b[*l], c[*l]).first & 1) << *l;
  return lanes;
}

template <int kMode>
Next shfl(Warp& w, const Instr& in, Mask m) {
  const uint32_t *a = w.at<uint32_t>(in.s[0]), *b = w.at<uint32_t>(in.s[1]), *c = w.at<uint32_t>(in.s[2]);
  uint32_t values[kLanes];
  Outcomes inside;
  Mask of_absent = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    const auto [source, within] = shfl_source<kMode>(lane, b[lane], c[lane]);
    const Mask takes_part = m >> source & 1;
    inside[lane] = within;
    values[lane] = takes_part ? a[source] : 0;
    of_absent |= (takes_part ^ 1) << lane;
  }
  put(w, in.d, m, values);
  if (in.d2) put(w, in.d2, m, inside);
  if (of_absent &= m) {
    const int first = __builtin_ctz(of_absent);
    took_of_absent(w, in, of_absent, shfl_source<kMode>(first, b[first], c[first]).first);
  }
  return Next::go_on;
}
void decode_shfl(Decoder& d) {
  take_sync(d);
  const int mode = d.take_one({"up", "down", "bfly", "idx"});
  const TypeInfo type = take_type_of(d, {"b32"});
  d.done();
  if (mode < 0) throw Unsupported{"no mode"};
  want_operands(d, 5, true);
  static constexpr Handler kHandlers[] = {shfl<kUp>, shfl<kDown>, shfl<kButterfly>, shfl<kIndex>};
  static constexpr decltype(Carry::lanes) kWithout[] = {shfl_without<kUp>, shfl_without<kDown>,
                                                        shfl_without<kButterfly>, shfl_without<kIndex>};
  d.instr.run = kHandlers[mode];
  d.instr.s[0] = d.carried(d.operand(1), type);
  d.carries({&d.operand(0)}, kWithout[mode]);
  d.instr.s[1] = d.source(2, type);
  d.instr.s[2] = d.source(3, type);
  take_members(d, 4);
  if (d.operand(0).kind == Operand::Kind::sink) throw Unsupported{"a shuffle into nothing"};
  d.instr.d = d.destination(0, type);
  if (d.operand(0).second) d.instr.d2 = d.predicate_destination(*d.operand(0).second);
}

// ---- vote ----

enum { kAll, kAny, kUniform, kBallot };

Next vote(Warp& w, const Instr& in, Mask m) {
  const uint8_t *p = w.at<uint8_t>(in.s[0]), flip = in.variant2;
  Mask yes = 0;
  for (int l = 0; l < kLanes; ++l) yes |= Mask((p[l] ^ flip) & 1) << l;
  yes &= m;
  if (in.variant == kBallot) {
    uint32_t values[kLanes];
    std::fill(std::begin(values), std::end(values), yes);
    put(w, in.d, m, values);
    return Next::go_on;
  }
  Outcomes values;
  const bool result = in.variant == kAll ? yes == m : in.variant == kAny ? yes != 0 : yes == m || yes == 0;
  std::fill(std::begin(values), std::end(values), uint8_t(result));
  put(w, in.d, m, values);
  return Next::go_on;
}
void decode_vote(Decoder& d) {
  take_sync(d);
  const int mode = d.take_one({"all", "any", "uni", "ballot"});
  if (mode < 0) throw Unsupported{"no mode"};
  const TypeInfo result = mode == kBallot ? take_type_of(d, {"b32"}) : take_type_of(d, {"pred"});
  d.done();
  want_operands(d, 3);
  bool negated = false;
  d.instr.variant = uint8_t(mode);
  d.instr.s[0] = d.predicate(d.operand(1), &negated);
  d.instr.variant2 = negated;
  take_members(d, 2);
  d.instr.d = d.destination(0, result);
  d.instr.run = vote;
}

// ---- match: who has my value; or the membermask if all have, else 0 ----

template <class T, bool kAllMatch>
Next match(Warp& w, const Instr& in, Mask m) {
  const T* a = w.at<T>(in.s[0]);
  uint32_t values[kLanes];
  Outcomes same;
  for (int lane = 0; lane < kLanes; ++lane) {
    Mask equal = 0;
    for (int l = 0; l < kLanes; ++l) equal |= Mask(a[l] == a[lane]) << l;
    equal &= m;
    same[lane] = equal == m;
    values[lane] = kAllMatch && equal != m ? 0 : equal;
  }
  put(w, in.d, m, values);
  if (in.d2) put(w, in.d2, m, same);
  return Next::go_on;
}
void decode_match(Decoder& d) {
  take_sync(d);
  const int mode = d.take_one({"any", "all"});
  const TypeInfo type = take_type_of(d, {"b32", "b64"});
  d.done();
  if (mode < 0) throw Unsupported{"no mode"};
  want_operands(d, 3, mode == 1);
  d.instr.s[0] = d.source(1, type);
  take_members(d, 2);
  d.instr.d = d.destination(0, type_info("b32"));
  if (d.operand(0).second) d.instr.d2 = d.predicate_destination(*d.operand(0).second);
  d.instr.run = type.bits == 32 ? (mode ? match<uint32_t, true> : match<uint32_t, false>)
                                : (mode ? match<uint64_t, true> : match<uint64_t, false>);
}

// ---- redux: one value from all lanes ----

template <class T, class Op>
Next redux(Warp& w, const Instr& in, Mask m) {
  const T* a = w.at<T>(in.s[0]);
  Lanes l(m);
  T result = a[*l];
  for (++l; l; ++l) result = Op::of(result, a[*l]);
  T values[kLanes];
  std::fill(std::begin(values), std::end(values), result);
  put(w, in.d, m, values);
  return Next::go_on;
}
struct Sum {
  static uint32_t of(uint32_t a, uint32_t b) { return a + b; }
};
struct Min {
  template <class T>
  static T of(T a, T b) {
    return std::min(a, b);
  }
};
struct Max {
  template <class T>
  static T of(T a, T b) {
    return std::max(a, b);
  }
};
struct And {
  static uint32_t of(uint32_t a, uint32_t b) { return a & b; }
};
struct Or {
  static uint32_t of(uint32_t a, uint32_t b) { return a | b; }
};
struct Xor {
  static uint32_t of(uint32_t a, uint32_t b) { return a ^ b; }
};
void decode_redux(Decoder& d) {
  take_sync(d);
  const int op = d.take_one({"add", "min", "max", "and", "or", "xor"});
  const TypeInfo type = op < 0   ? TypeInfo()
                        : op < 3 ? take_type_of(d, {"u32", "s32"})
                                 : take_type_of(d, {"b32"});
  d.done();
  const bool is_signed = type.kind == 's';
  switch (op) {
    case 0:
      d.instr.run = redux<uint32_t, Sum>;
      break;
    case 1:
      d.instr.run = is_signed ? redux<int32_t, Min> : redux<uint32_t, Min>;
      break;
    case 2:
      d.instr.run = is_signed ? redux<int32_t, Max> : redux<uint32_t, Max>;
      break;
    case 3:
      d.instr.run = redux<uint32_t, And>;
      break;
    case 4:
      d.instr.run = redux<uint32_t, Or>;
      break;
    case 5:
      d.instr.run = redux<uint32_t, Xor>;
      break;
    default:
      throw Unsupported{"this operation"};
  }
  want_operands(d, 3);
  d.instr.s[0] = d.source(1, type);
  take_members(d, 2);
  d.instr.d = d.destination(0, type);
}

// ---- elect, activemask ----

// elect.sync d|p: one lane of the membermask, the lowest, has p true; d is its number.
Next elect(Warp& w, const Instr& in, Mask m) {
  const int leader = __builtin_ctz(m);
  uint32_t values[kLanes];
  Outcomes elected;
  for (int l = 0; l < kLanes; ++l) {
    values[l] = uint32_t(leader);
    elected[l] = l == leader;
  }
  put(w, in.d, m, values);
  put(w, in.d2, m, elected);
  return Next::go_on;
}
void decode_elect(Decoder& d) {
  take_sync(d);
  d.done();
  want_operands(d, 2, true);
  if (!d.operand(0).second) throw Unsupported{"no |p"};
  take_members(d, 1);
  d.instr.d = d.destination(0, type_info("b32"));
  d.instr.d2 = d.predicate_destination(*d.operand(0).second);
  d.instr.run = elect;
}

// The lanes that happen to execute together.
Next activemask(Warp& w, const Instr& in, Mask m) {
  uint32_t values[kLanes];
  std::fill(std::begin(values), std::end(values), m);
  put(w, in.d, m, values);
  return Next::go_on;
}
void decode_activemask(Decoder& d) {
  const TypeInfo type = take_type_of(d, {"b32"});
  d.done();
  want_operands(d, 1);
  d.instr.d = d.destination(0, type);
  d.instr.run = activemask;
}

}  // namespace

std::vector<Form> warp_forms() {
  return {{"shfl", decode_shfl, Family::warp},   {"vote", decode_vote, Family::warp},
          {"match", decode_match, Family::warp}, {"redux", decode_redux, Family::warp},
          {"elect", decode_elect, Family::warp}, {"activemask", decode_activemask, Family::warp}};
}

}  // namespace gg::emu
