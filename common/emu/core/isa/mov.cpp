// SPDX-License-Identifier: MIT
//
// mov: registers, immediates, special registers, addresses, and words taken apart and put together.
// PTX ISA: "Data Movement and Conversion Instructions: mov".

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/units/alu.h"

namespace gg::emu {
namespace {

template <class T>
Next mov(Warp& w, const Instr& in, Mask m) {
  return map1<T, T>(w, in, m, [](T a) { return a; });
}
Next mov_pred(Warp& w, const Instr& in, Mask m) {
  const uint8_t flip = in.variant;
  return map1<uint8_t, uint8_t>(w, in, m, [=](uint8_t a) { return uint8_t(a ^ flip); });
}
Handler mov_of(int bits) {
  return bits == 16   ? mov<uint16_t>
         : bits == 32 ? mov<uint32_t>
         : bits == 64 ? mov<uint64_t>
                      : mov<unsigned __int128>;
}

// Clocks. There is no time here: they count the times they were asked.
Next clock_now(Warp& w, const Instr& in, Mask m) {
  static thread_local uint64_t ticks = 0;
  ++ticks;
  const uint64_t value = in.variant ? ticks >> 32 : ticks;
  for (Lanes l(m); l; ++l) {
    if (in.bytes == 8) {
      w.at<uint64_t>(in.d)[*l] = value;
    } else {
      w.at<uint32_t>(in.d)[*l] = uint32_t(value);
    }
  }
  return Next::go_on;
}

// mov.b32 d, {a, b} puts the first element lowest; mov.b32 {a, b}, s takes apart. Halves are
// the common case.
template <class Half, class Whole>
Next pack_two(Warp& w, const Instr& in, Mask m) {
  const Half *low = w.at<Half>(in.list[0]), *high = w.at<Half>(in.list[1]);
  Whole values[kLanes];
  for (int l = 0; l < kLanes; ++l) values[l] = Whole(Whole(high[l]) << (8 * sizeof(Half)) | low[l]);
  put(w, in.d, m, values);
  return Next::go_on;
}
template <class Half, class Whole>
Next unpack_two(Warp& w, const Instr& in, Mask m) {
  const Whole* whole = w.at<Whole>(in.s[0]);
  Half low[kLanes], high[kLanes];
  for (int l = 0; l < kLanes; ++l) {
    low[l] = Half(whole[l]);
    high[l] = Half(whole[l] >> (8 * sizeof(Half)));
  }
  put(w, in.list[0], m, low);
  put(w, in.list[1], m, high);
  return Next::go_on;
}
Next pack(Warp& w, const Instr& in, Mask m) {
  const size_t bytes = in.bytes, whole = bytes * in.count;
  for (Lanes l(m); l; ++l) {
    const size_t lane = size_t(*l);
    uint8_t value[16];
    for (size_t i = 0; i < in.count; ++i)
      std::memcpy(value + i * bytes, w.at<uint8_t>(in.list[i]) + lane * bytes, bytes);
    std::memcpy(w.at<uint8_t>(in.d) + lane * whole, value, whole);
  }
  return Next::go_on;
}
Next unpack(Warp& w, const Instr& in, Mask m) {
  const size_t bytes = in.bytes, whole = bytes * in.count;
  for (Lanes l(m); l; ++l) {
    const size_t lane = size_t(*l);
    uint8_t value[16];
    std::memcpy(value, w.at<uint8_t>(in.s[0]) + lane * whole, whole);
    for (size_t i = 0; i < in.count; ++i)
      std::memcpy(w.at<uint8_t>(in.list[i]) + lane * bytes, value + i * bytes, bytes);
  }
  return Next::go_on;
}

// A word that is put together has a value if one of its parts has: compilers leave a part without
// one where nobody takes it out again.
Mask without_any_value(Warp&, const Instr& in, Mask m, const Mask* without) {
  for (size_t i = 0; i < in.carry->from.size(); ++i) m &= without[i];
  return m;
}

void decode_vector(Decoder& d, const TypeInfo& type, bool packs) {
  if (type.kind != 'b') throw Unsupported{"a vector of type ." + type.name};
  const auto parts = Decoder::elements(d.operand(packs ? 1 : 0));
  const int count = int(parts.size());
  if ((count != 2 && count != 4) || type.bits / count < 8)
    throw Unsupported{"a vector of this many elements"};
  const TypeInfo element = type_info("b" + std::to_string(type.bits / count));
  d.instr.count = uint16_t(count);
  d.instr.bytes = uint16_t(element.bits / 8);
  std::vector<uint32_t> slots;
  for (const Operand* o : parts) {
    if (o->negated || o->second) throw Unsupported{"an element with ! or |"};
    slots.push_back(packs ? d.carried(*o, element) : d.destination(*o, element));
  }
  d.instr.list = d.list(slots);
  const bool small = count == 2 && type.bits == 32, large = count == 2 && type.bits == 64;
  if (packs) {
    d.instr.d = d.destination(0, type);
    d.carries({&d.operand(0)}, without_any_value);
    d.instr.run = small ? pack_two<uint16_t, uint32_t> : large ? pack_two<uint32_t, uint64_t> : pack;
  } else {
    d.instr.s[0] = d.source(1, type);
    d.instr.run = small ? unpack_two<uint16_t, uint32_t> : large ? unpack_two<uint32_t, uint64_t> : unpack;
  }
}

void decode_mov(Decoder& d) {
  const TypeInfo type = take_type_of(
      d, {"pred", "b16", "b32", "b64", "b128", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64"});
  d.done();
  want_operands(d, 2);
  const Operand &to = d.operand(0), &from = d.operand(1);
  if (type.kind == 'p') {
    bool flip = false;
    d.instr.s[0] = d.predicate(from, &flip);
    d.instr.variant = flip;
    d.instr.d = d.predicate_destination(to);
    d.instr.run = mov_pred;
    return;
  }
  const bool packs = from.kind == Operand::Kind::vector, unpacks = to.kind == Operand::Kind::vector;
  if (packs && unpacks) throw Unsupported{"two vectors"};
  if (packs || unpacks) return decode_vector(d, type, packs);
  const bool wide_clock = from.name == "%clock64" || from.name == "%globaltimer";
  const bool high_clock = from.name == "%clock_hi" || from.name == "%globaltimer_hi";
  if (from.kind == Operand::Kind::special &&
      (wide_clock || high_clock || from.name == "%clock" || from.name == "%globaltimer_lo")) {
    if (type.bits != (wide_clock ? 64 : 32)) throw Unsupported{from.name + " as ." + type.name};
    d.instr.bytes = uint16_t(type.bits / 8);
    d.instr.variant = high_clock;
    d.instr.d = d.destination(to, type);
    d.instr.run = clock_now;
    return;
  }
  if (from.kind == Operand::Kind::special && type.bits > 32 && from.name != "%gridid") {
    throw Unsupported{from.name + " as ." + type.name};
  }
  d.instr.s[0] = d.source(from, type);
  d.instr.d = d.destination(to, type);
  d.instr.run = mov_of(type.bits);
}

}  // namespace

std::vector<Form> mov_forms() { return computing(Family::move, {{"mov", decode_mov}}); }

}  // namespace gg::emu
