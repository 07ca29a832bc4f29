// SPDX-License-Identifier: MIT
//
// cvt: conversions between integers and floats of every size, packed ones among them. PTX ISA:
// "Data Movement and Conversion Instructions": cvt, cvt.pack.

#include <algorithm>

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/units/conversion.h"

namespace gg::emu {
namespace {

Next convert(Warp& w, const Instr& in, Mask m) {
  const Conversion& c = *static_cast<const Conversion*>(in.extra);
  const uint8_t* from = w.at<uint8_t>(in.s[0]);
  uint8_t* to = w.at<uint8_t>(in.d);
  for (Lanes l(m); l; ++l) {
    const size_t lane = size_t(*l);
    uint64_t bits = 0;
    std::memcpy(&bits, from + lane * c.from_bytes, c.from_bytes);
    bits = convert_one(c, bits) & mask_of(c.to.bits);
    // A register wider than the type gets the sign of a signed integer, zeros otherwise.
    if (!c.to.real && c.to.is_signed && bits >> (c.to.bits - 1) & 1) bits |= ~mask_of(c.to.bits);
    std::memcpy(to + lane * c.to_bytes, &bits, c.to_bytes);
  }
  return Next::go_on;
}

// cvt.rn.bf16x2.f32 d, a, b: a goes to the upper half. From a pair, each half for itself.
template <bool kFromPair>
Next convert_pairs(Warp& w, const Instr& in, Mask m) {
  const Conversion& c = *static_cast<const Conversion*>(in.extra);
  for (Lanes l(m); l; ++l) {
    const size_t lane = size_t(*l);
    uint32_t upper = 0, lower = 0;
    if (kFromPair) {
      uint32_t both = 0;
      std::memcpy(&both, w.at<uint8_t>(in.s[0]) + lane * c.from_bytes, c.from_bytes);
      upper = both >> c.from.bits, lower = both;
    } else {
      upper = w.at<uint32_t>(in.s[0])[lane], lower = w.at<uint32_t>(in.s[1])[lane];
    }
    const uint32_t pair = uint32_t(convert_one(c, upper) << c.to.bits | convert_one(c, lower));
    std::memcpy(w.at<uint8_t>(in.d) + lane * c.to_bytes, &pair, c.to_bytes);
  }
  return Next::go_on;
}
// ---- decoding cvt ----

struct Modifiers {
  int rounding = -1;  // rn rz rm rp, rna, rni rzi rmi rpi
  bool ftz = false, sat = false, relu = false, satfinite = false;
};

[[noreturn]] void refuse(const char* what) { throw Unsupported{what}; }

// Checks which roundings and modifiers go with which types: "cvt" in the PTX ISA, and what ptxas
// takes for sm_90a. Between f16 and bf16 ptxas takes no rounding too, and makes the machine code of
// .rn of it.
void check_scalar(const Modifiers& m, const Kind& to, const Kind& from, const TypeInfo& to_type,
                  const TypeInfo& from_type) {
  const bool to_bf16 = to_type.name == "bf16", from_bf16 = from_type.name == "bf16",
             tf32 = to_type.name == "tf32";
  const bool exact = m.rounding < 0, whole = m.rounding >= 5;
  const bool f32 = (to.real && to.bits == 32) || (from.real && from.bits == 32);
  if (tf32) {
    const bool away = m.rounding == 4;
    if (from_type.name != "f32" || m.rounding < 0 || whole || m.rounding == 2 || m.rounding == 3)
      refuse("this rounding to .tf32");
    if (m.ftz || m.sat || (away ? m.relu : m.satfinite)) refuse("this modifier of .tf32");
    return;
  }
  if (m.rounding == 4) refuse("modifier .rna");
  if (m.ftz && !f32) refuse("modifier .ftz without .f32");
  if ((to.bits == 8 && from_bf16) || (from.bits == 8 && to_bf16)) refuse("8-bit integers and .bf16");
  if (!to.real && !from.real) {
    if (!exact) refuse("a rounding between integers");
    const bool holds_all =
        to.is_signed == from.is_signed ? to.bits >= from.bits : to.is_signed && to.bits > from.bits;
    if (m.sat && holds_all) refuse("modifier .sat where nothing can saturate");
  } else if (!to.real || !from.real) {
    if (to.real ? exact || whole : !whole) refuse("this rounding");
  } else if (to_type.name == from_type.name) {
    if (!exact && !whole) refuse("this rounding");
  } else if (to.bits > from.bits) {
    if (!exact) refuse("a rounding that has nothing to round");
  } else if (whole || (exact && to.bits != from.bits)) {
    refuse("no rounding");
  }
  if (m.sat && (to_bf16 || from_bf16)) refuse("modifier .sat of .bf16");
  if ((m.relu || m.satfinite) &&
      (to.bits != 16 || !to.real || from_type.name != "f32" || m.rounding > 1 || m.ftz || m.sat)) {
    refuse("modifier .relu or .satfinite");
  }
}
void check_pair(const Modifiers& m, const TypeInfo& to, const TypeInfo& from) {
  const bool to_half = to.name == "f16x2" || to.name == "bf16x2", from_fp8 = from.bits == 16;
  if (m.ftz || m.sat) refuse("modifier .ftz or .sat of a pair");
  if (m.rounding != 0 && !(m.rounding == 1 && to_half && !from_fp8)) refuse("this rounding of a pair");
  if (to_half) {
    if (from.name != "f32" && !(from_fp8 && to.name == "f16x2")) refuse("these types");
    if (from_fp8 && m.satfinite) refuse("modifier .satfinite");
  } else {
    if (from.name != "f32" && from.name != "f16x2") refuse("these types");
    if (!m.satfinite) refuse("no .satfinite");
  }
}

// Registers may be wider than the type, except for these two.
bool may_be_wider(const TypeInfo& t) { return t.name != "bf16" && t.name != "tf32"; }

void decode_scalar(Decoder& d, const Modifiers& m, Conversion c, const TypeInfo& to, const TypeInfo& from) {
  check_scalar(m, c.to, c.from, to, from);
  want_operands(d, 2);
  const auto bytes = [&](const Operand& o, const TypeInfo& t) {
    return size_t(std::max(d.register_bits(o), t.bits)) / 8;
  };
  d.instr.s[0] = d.source(1, from, may_be_wider(from));
  d.instr.d = d.destination(0, to, may_be_wider(to));
  c.to_bytes = bytes(d.operand(0), to);
  c.from_bytes = bytes(d.operand(1), from);
  d.extra(c);
  d.instr.run = convert;
  if (to.name == "tf32" && c.rounding == ties_away) {
    d.instr.variant = m.satfinite;
    d.instr.run = round_away_to_tf32;
  }
  const bool plain_sizes = c.to_bytes * 8 == size_t(to.bits) && c.from_bytes * 8 == size_t(from.bits);
  if (!plain_sizes || m.ftz || m.sat || m.relu || m.satfinite) return;
  static const char* const names[] = {"", "rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi"};
  if (const Handler fast = fast_conversion(names[m.rounding + 1], to, from)) d.instr.run = fast;
}

void decode_pair(Decoder& d, const Modifiers& m, Conversion c, const TypeInfo& to, const TypeInfo& from) {
  check_pair(m, to, from);
  const bool from_pair = from.name != "f32";
  want_operands(d, from_pair ? 2 : 3);
  d.instr.s[0] = d.source(1, from);
  if (!from_pair) d.instr.s[1] = d.source(2, from);
  d.instr.d = d.destination(0, to);
  c.to_bytes = size_t(to.bits) / 8;
  c.from_bytes = size_t(from.bits) / 8;
  if (from_pair && from.bits == 16) c.from = kind_of(from);
  d.extra(c);
  d.instr.run = from_pair ? convert_pairs<true> : convert_pairs<false>;
  if (from.bits == 16 && !m.relu) d.instr.run = widening_of_fp8(from);
  if (from_pair) return;
  if (to.bits == 16) d.instr.run = narrowing_to_fp8(to, m.relu);
  if (m.rounding || m.relu || m.satfinite) return;
  if (const Handler fast = fast_conversion("rn", to, from)) d.instr.run = fast;
}

void decode_cvt(Decoder& d) {
  Modifiers m;
  m.rounding = d.take_one({"rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi"});
  m.ftz = d.take("ftz");
  m.sat = d.take("sat");
  m.relu = d.take("relu");
  m.satfinite = d.take("satfinite");
  const TypeInfo to = d.take_type(), from = d.take_type();
  d.done();
  Conversion c;
  c.to = kind_of(to);
  c.from = kind_of(from);
  c.whole = m.rounding >= 5;
  c.rounding = m.rounding < 0 ? to_even : m.rounding == 4 ? ties_away : Rounding(m.rounding % 5);
  c.sat = m.sat, c.ftz = m.ftz, c.relu = m.relu, c.satfinite = m.satfinite;
  const auto pair = [](const TypeInfo& t) { return t.name.size() > 2 && t.name.ends_with("x2"); };
  if (pair(to)) return decode_pair(d, m, c, to, from);
  if (pair(from)) throw Unsupported{"type ." + from.name};
  decode_scalar(d, m, c, to, from);
}

// cvt.pack.sat.T.s32 d, a, b{, c}: a and b clamped to T, a above b; of 8 bits and less, below what
// is left of c.
Next convert_pack(Warp& w, const Instr& in, Mask m) {
  const int bits = in.count;
  const bool is_signed = in.variant;
  const int32_t most = is_signed ? (1 << (bits - 1)) - 1 : (1 << bits) - 1, least = is_signed ? -most - 1 : 0;
  const uint32_t keep = uint32_t(mask_of(bits));
  return map3<uint32_t, int32_t, int32_t, uint32_t>(w, in, m, [=](int32_t a, int32_t b, uint32_t c) {
    const uint32_t upper = uint32_t(std::clamp(a, least, most)) & keep,
                   lower = uint32_t(std::clamp(b, least, most)) & keep;
    const uint32_t pair = upper << bits | lower;
    return bits == 16 ? pair : c << (2 * bits) | pair;
  });
}
void decode_cvt_pack(Decoder& d) {
  if (!d.take("pack") || !d.take("sat")) throw Unsupported{"no .pack.sat"};
  const int which = d.take_one({"u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2"});
  if (which < 0) throw Unsupported{"this type of cvt.pack"};
  const TypeInfo from = take_type_of(d, {"s32"});
  const bool with_c = which >= 2;
  if (with_c) take_type_of(d, {"b32"});
  d.done();
  d.instr.count = uint16_t(16 >> (which / 2));
  d.instr.variant = which & 1;
  d.instr.run = convert_pack;
  want_operands(d, with_c ? 4 : 3);
  for (size_t i = 0; i < 3; ++i) d.instr.s[i] = i < 2 || with_c ? d.source(i + 1, from) : d.constant(0, 32);
  d.instr.d = d.destination(0, type_info("b32"));
}
}  // namespace

std::vector<Form> cvt_forms() {
  return computing(Family::convert, {{"cvt", decode_cvt_pack}, {"cvt", decode_cvt}});
}

}  // namespace gg::emu
