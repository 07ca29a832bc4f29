// SPDX-License-Identifier: MIT
//
// Comparison and selection: setp, set, selp and slct on integers and bits, and what all comparisons do with
// their outcomes. PTX ISA: "Comparison and Selection Instructions".

#include "common/emu/isa/alu.h"

namespace gg::emu {
namespace {

// In instr.variant2: the boolean operator, 0 for none, and whether the predicate it takes is negated.
enum : uint8_t { kAnd = 1, kOr = 2, kXor = 3, kBoolean = 3, kNegated = 4 };

enum Comparison : uint8_t { eq, ne, lt, le, gt, ge };

template <int kHow, class T>
Next compare(Warp& w, const Instr& in, Mask m) {
  const T *a = w.at<T>(in.s[0]), *b = w.at<T>(in.s[1]);
  Outcomes yes;
  for (int l = 0; l < kLanes; ++l) {
    yes[l] = kHow == eq   ? a[l] == b[l]
             : kHow == ne ? a[l] != b[l]
             : kHow == lt ? a[l] < b[l]
             : kHow == le ? a[l] <= b[l]
             : kHow == gt ? a[l] > b[l]
                          : a[l] >= b[l];
  }
  return store_outcomes(w, in, m, yes);
}
template <class T>
Handler comparison_of(int how) {
  static constexpr Handler table[] = {compare<eq, T>, compare<ne, T>, compare<lt, T>,
                                      compare<le, T>, compare<gt, T>, compare<ge, T>};
  return table[how];
}
Handler comparison_of(int how, const TypeInfo& t) {
  const bool is_signed = t.kind == 's';
  if (t.bits == 16) return is_signed ? comparison_of<int16_t>(how) : comparison_of<uint16_t>(how);
  if (t.bits == 32) return is_signed ? comparison_of<int32_t>(how) : comparison_of<uint32_t>(how);
  return is_signed ? comparison_of<int64_t>(how) : comparison_of<uint64_t>(how);
}

// Bits know eq and ne only; lo, ls, hi, hs are lt, le, gt, ge of unsigned numbers.
void decode_compare(Decoder& d) {
  const bool set = d.statement().opcode == "set";
  int how = d.take_one({"eq", "ne", "lt", "le", "gt", "ge"});
  const int unsigned_how = how < 0 ? d.take_one({"lo", "ls", "hi", "hs"}) : -1;
  if (how < 0 && unsigned_how < 0) throw Unsupported{"this comparison"};
  take_boolean(d);
  TypeInfo result;
  if (set) result = take_type_of(d, {"u32", "s32", "f32", "f16", "bf16"});
  const TypeInfo type = take_type_of(d, {"b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64"});
  d.done();
  if ((type.kind == 'b' && how > ne) || (unsigned_how >= 0 && type.kind != 'u'))
    throw Unsupported{"this comparison of ." + type.name};
  d.instr.run = comparison_of(how >= 0 ? how : lt + unsigned_how, type);
  if (set) {
    set_operands(d, type, result);
  } else {
    setp_operands(d, type);
  }
}

template <class T>
Next selp(Warp& w, const Instr& in, Mask m) {
  const bool flip = in.variant;
  return map3<T, T, T, uint8_t>(w, in, m, [=](T a, T b, uint8_t p) { return (p != 0) != flip ? a : b; });
}
Mask selp_without(Warp& w, const Instr& in, Mask m, const Mask* without) {
  const uint8_t* p = w.at<uint8_t>(in.s[2]);
  Mask first = 0;
  for (int l = 0; l < kLanes; ++l) first |= Mask((p[l] != 0) != (in.variant != 0)) << l;
  return m & (without[2] | (first & without[0]) | (~first & without[1]));
}
constexpr auto kSelected = {"b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64"};
void decode_selp(Decoder& d) {
  const TypeInfo type = take_type_of(d, kSelected);
  d.done();
  want_operands(d, 4);
  d.instr.run = type.bits == 16 ? selp<uint16_t> : type.bits == 32 ? selp<uint32_t> : selp<uint64_t>;
  d.instr.s[0] = d.carried(d.operand(1), type);
  d.instr.s[1] = d.carried(d.operand(2), type);
  d.instr.s[2] = d.carried(d.operand(3), type_info("pred"));
  d.instr.variant = d.operand(3).negated;
  d.instr.d = d.destination(0, type);
  d.carries({&d.operand(0)}, selp_without);
}

// slct: a where c >= 0, else b. A NaN is not, -0 is; with .ftz negative subnormal numbers are too.
template <class T, class C>
Next slct(Warp& w, const Instr& in, Mask m) {
  const bool ftz = in.variant;
  return map3<T, T, T, C>(w, in, m, [=](T a, T b, C c) {
    if (std::is_same_v<C, float> && ftz && c < C(0) && c > C(-0x1p-126f)) c = 0;
    return c >= C(0) ? a : b;
  });
}
template <class C>
Handler slct_of(int bits) {
  return bits == 16 ? slct<uint16_t, C> : bits == 32 ? slct<uint32_t, C> : slct<uint64_t, C>;
}
void decode_slct(Decoder& d) {
  d.instr.variant = d.take("ftz");
  const TypeInfo type = take_type_of(d, kSelected);
  const TypeInfo selector = take_type_of(d, {"s32", "f32"});
  d.done();
  if (d.instr.variant && selector.kind == 's') throw Unsupported{"modifier .ftz"};
  want_operands(d, 4);
  d.instr.run = selector.kind == 's' ? slct_of<int32_t>(type.bits) : slct_of<float>(type.bits);
  d.instr.s[0] = d.source(1, type);
  d.instr.s[1] = d.source(2, type);
  d.instr.s[2] = d.source(3, selector);
  d.instr.d = d.destination(0, type);
}

// False and any comparison is false, true or any is true.
Mask compare_without(Warp& w, const Instr& in, Mask m, const Mask* without) {
  const int boolean = in.variant2 & kBoolean;
  const uint8_t *c = w.at<uint8_t>(in.s[2]), flip = in.variant2 & kNegated ? 1 : 0;
  Mask lanes = m & (without[0] | without[1] | without[2]);
  if (boolean != kAnd && boolean != kOr) return lanes;
  const uint8_t decides = boolean == kOr;
  for (Lanes l(lanes & ~without[2]); l; ++l) {
    if ((c[*l] ^ flip) == decides) lanes &= ~(Mask(1) << *l);
  }
  return lanes;
}

// a, b and, with a boolean operator, c.
void compared_operands(Decoder& d, const TypeInfo& type, bool pair) {
  const bool boolean = d.instr.variant2 != 0;
  want_operands(d, boolean ? 4 : 3, pair);
  d.instr.s[0] = d.carried(d.operand(1), type);
  d.instr.s[1] = d.carried(d.operand(2), type);
  if (boolean) {
    d.instr.s[2] = d.carried(d.operand(3), type_info("pred"));
    if (d.operand(3).negated) d.instr.variant2 |= kNegated;
  }
  std::vector<const Operand*> to = {&d.operand(0)};
  if (d.operand(0).second) to.push_back(&*d.operand(0).second);
  d.carries(to, compare_without);
}

}  // namespace

void take_boolean(Decoder& d) { d.instr.variant2 = uint8_t(1 + d.take_one({"and", "or", "xor"})); }

void setp_operands(Decoder& d, const TypeInfo& type) {
  compared_operands(d, type, true);
  d.instr.d = d.predicate_destination(d.operand(0));
  if (d.operand(0).second) d.instr.d2 = d.predicate_destination(*d.operand(0).second);
}
void set_operands(Decoder& d, const TypeInfo& type, const TypeInfo& result) {
  compared_operands(d, type, false);
  d.instr.d = d.destination(0, result);
  d.instr.bytes = uint16_t(result.bits / 8);
  d.instr.offset = int64_t(true_bits(result));
}

uint64_t true_bits(const TypeInfo& result) {
  if (result.name == "f32") return 0x3F800000;
  if (result.name == "f16") return 0x3C00;
  if (result.name == "bf16") return 0x3F80;
  if (result.name == "f16x2") return 0x3C003C00;
  if (result.name == "bf16x2") return 0x3F803F80;
  return result.bits == 16 ? 0xFFFF : 0xFFFFFFFF;
}

int take_float_comparison(Decoder& d) {
  return d.take_one(
      {"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"});
}

void combine(Warp& w, const Instr& in, Outcomes& yes) {
  const int boolean = in.variant2 & kBoolean;
  if (boolean == 0) return;
  const uint8_t* c = w.at<uint8_t>(in.s[2]);
  const uint8_t flip = in.variant2 & kNegated ? 1 : 0;
  for (int l = 0; l < kLanes; ++l) {
    const uint8_t other = c[l] ^ flip;
    yes[l] = boolean == kAnd ? yes[l] & other : boolean == kOr ? yes[l] | other : yes[l] ^ other;
  }
}

Next store_combined(Warp& w, const Instr& in, Mask m, Outcomes& yes) {
  Outcomes no;
  for (int l = 0; l < kLanes; ++l) no[l] = yes[l] ^ 1;
  combine(w, in, yes);
  if (in.d2) combine(w, in, no);  // before p is written, which may be c
  if (in.bytes == 0) {
    put(w, in.d, m, yes);
    if (in.d2) put(w, in.d2, m, no);
  } else if (in.bytes == 2) {
    uint16_t values[kLanes];
    for (int l = 0; l < kLanes; ++l) values[l] = yes[l] ? uint16_t(in.offset) : 0;
    put(w, in.d, m, values);
  } else {
    uint32_t values[kLanes];
    for (int l = 0; l < kLanes; ++l) values[l] = yes[l] ? uint32_t(in.offset) : 0;
    put(w, in.d, m, values);
  }
  return Next::go_on;
}

std::vector<Form> comparison_forms() {
  return {{"setp", decode_compare}, {"set", decode_compare}, {"selp", decode_selp}, {"slct", decode_slct}};
}

}  // namespace gg::emu
