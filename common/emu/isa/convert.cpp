// SPDX-License-Identifier: MIT
//
// Conversions between integers and floats of every size, packed ones among them; and cvta and isspacep, which
// know the windows of generic addresses. PTX ISA: "Data Movement and Conversion Instructions": cvt, cvt.pack,
// cvta, isspacep.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "common/emu/isa/alu.h"
#include "common/emu/isa/halves.h"

namespace gg::emu {
namespace {

// ---- numbers as any conversion sees them ----

struct Real {  // (negative ? -1 : 1) * significand * 2^exponent
  bool negative = false, nan = false, infinite = false;
  uint64_t significand = 0;
  int exponent = 0;
  uint64_t payload = 0;  // of a NaN, as f64 would hold it
};

struct Layout {  // of a float
  int exponent_bits = 0, mantissa_bits = 0;
  uint64_t nan = 0;        // the code of a NaN result
  bool infinities = true;  // e4m3 has none: its last code is NaN, the one before it the largest number
  int shift = 0;           // tf32 sits in the upper 19 bits of a word
};
struct Kind {  // of source or destination
  bool real = false, is_signed = false;
  int bits = 0;
  Layout layout;
};

Kind kind_of(const TypeInfo& t) {
  if (t.kind == 'u' || t.kind == 's') return {false, t.kind == 's', t.bits, {}};
  if (t.name == "f64") return {true, true, 64, {11, 52, 0x7FFFFFFFFFFFFFFF, true, 0}};
  if (t.name == "f32") return {true, true, 32, {8, 23, 0x7FFFFFFF, true, 0}};
  if (t.name == "tf32") return {true, true, 32, {8, 10, 0x7FFFFFFF >> 13, true, 13}};
  if (t.name == "f16" || t.name == "f16x2") return {true, true, 16, {5, 10, 0x7FFF, true, 0}};
  if (t.name == "bf16" || t.name == "bf16x2") return {true, true, 16, {8, 7, 0x7FFF, true, 0}};
  if (t.name == "e5m2x2") return {true, true, 8, {5, 2, 0x7F, true, 0}};
  if (t.name == "e4m3x2") return {true, true, 8, {4, 3, 0x7F, false, 0}};
  throw Unsupported{"type ." + t.name};
}

uint64_t mask_of(int bits) { return bits >= 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1; }

Real real_of(const Layout& f, uint64_t code) {
  code >>= f.shift;
  const uint64_t field = code >> f.mantissa_bits & mask_of(f.exponent_bits),
                 fraction = code & mask_of(f.mantissa_bits);
  Real r;
  r.negative = code >> (f.exponent_bits + f.mantissa_bits) & 1;
  const bool last = field == mask_of(f.exponent_bits);
  r.nan = last && (f.infinities ? fraction != 0 : fraction == mask_of(f.mantissa_bits));
  r.infinite = last && f.infinities && fraction == 0;
  r.payload = fraction << (52 - f.mantissa_bits);
  r.significand = fraction | (field ? uint64_t(1) << f.mantissa_bits : 0);
  r.exponent = std::max(int(field), 1) - ((1 << (f.exponent_bits - 1)) - 1) - f.mantissa_bits;
  return r;
}
Real whole_of(const Kind& kind, uint64_t bits) {
  Real r;
  r.negative = kind.is_signed && bits >> (kind.bits - 1) & 1;
  bits = (r.negative ? 0 - bits : bits) & mask_of(kind.bits);
  r.significand = bits;
  return r;
}

enum Rounding : uint8_t { to_even, to_zero, down, up, ties_away };

// significand * 2^exponent in units of 2^unit, rounded; the caller has seen to it that the result fits.
uint64_t rounded(const Real& r, int unit, Rounding mode) {
  const int drop = unit - r.exponent;
  if (drop <= 0) return r.significand << -drop;
  const uint64_t kept = drop > 63 ? 0 : r.significand >> drop;
  const uint64_t rest = drop > 63 ? r.significand : r.significand & mask_of(drop);
  if (rest == 0) return kept;
  const uint64_t half = drop > 64 ? 0 : uint64_t(1) << (drop - 1);
  const bool above = drop <= 64 && rest > half, tie = drop <= 64 && rest == half;
  switch (mode) {
    case to_even:
      return kept + (above || (tie && (kept & 1)));
    case ties_away:
      return kept + (above || tie);
    case to_zero:
      return kept;
    case down:
      return kept + r.negative;
    case up:
      return kept + !r.negative;
  }
  return kept;
}

int top_bit(const Real& r) { return 63 - __builtin_clzll(r.significand) + r.exponent; }

// A NaN is the format's; to and from f64 it keeps its sign and the upper bits of its payload, and is made
// quiet.
uint64_t nan_code(const Layout& f, const Real& r, bool keeps_payload) {
  if (!keeps_payload) return f.nan;
  const uint64_t quiet = uint64_t(1) << (f.mantissa_bits - 1), payload = r.payload >> (52 - f.mantissa_bits);
  const uint64_t head = (uint64_t(r.negative) << f.exponent_bits | mask_of(f.exponent_bits))
                        << f.mantissa_bits;
  return head | quiet | payload;
}

// The code of the number nearest in the given direction. `finite`: the largest number instead of infinity.
uint64_t code_of(const Layout& f, const Real& r, Rounding mode, bool finite) {
  const uint64_t past =
      (mask_of(f.exponent_bits) << f.mantissa_bits) + (f.infinities ? 0 : mask_of(f.mantissa_bits));
  const uint64_t sign = uint64_t(r.negative) << (f.exponent_bits + f.mantissa_bits);
  uint64_t code = 0;
  bool beyond = r.infinite;
  if (!r.infinite && r.significand) {
    const int least = 2 - (1 << (f.exponent_bits - 1)), exponent = std::max(top_bit(r), least);
    beyond = exponent > -least + (f.infinities ? 1 : 2);
    // A normal number's units hold its leading one, which is what its exponent field lacks here.
    if (!beyond)
      code = (uint64_t(exponent - least) << f.mantissa_bits) + rounded(r, exponent - f.mantissa_bits, mode);
    beyond = beyond || code >= past;
    finite = finite || mode == to_zero || mode == (r.negative ? up : down);
  }
  if (beyond) code = finite ? past - 1 : past;
  return sign | code;
}

Real to_whole(Real r, Rounding mode) {
  if (r.nan || r.infinite || r.exponent >= 0) return r;
  r.significand = rounded(r, 0, mode);
  r.exponent = 0;
  return r;
}

// ---- one conversion ----

struct Conversion {
  Kind to, from;
  size_t to_bytes = 0, from_bytes = 0;  // of the registers
  Rounding rounding = to_even;
  bool whole = false;  // .rni .rzi .rmi .rpi
  bool sat = false, ftz = false, relu = false, satfinite = false;
};

uint64_t integer_of(const Conversion& c, const Real& r) {
  const Kind& to = c.to;
  if (r.nan) {  // the top bit if either side has 64 bits, else zero
    return c.from.bits == 64 || to.bits == 64 ? uint64_t(1) << (to.bits - 1) : 0;
  }
  const uint64_t most = to.is_signed ? mask_of(to.bits - 1) : mask_of(to.bits);
  const uint64_t least = to.is_signed ? most + 1 : 0;  // its magnitude
  const uint64_t limit = r.negative ? least : most;
  const bool beyond =
      r.infinite || (r.significand && (top_bit(r) > 63 || r.significand << r.exponent > limit));
  const uint64_t magnitude = beyond ? limit : r.significand ? r.significand << r.exponent : 0;
  return r.negative ? 0 - magnitude : magnitude;
}

void clamp_to_unit(Real& r) {  // .sat of floats: 0 .. 1, a NaN becomes +0
  if (r.nan || r.negative || r.significand == 0) {
    r = Real();
  } else if (r.infinite || top_bit(r) >= 0) {
    r = Real();
    r.significand = 1;
  }
}

uint64_t convert_one(const Conversion& c, uint64_t bits) {
  bits &= mask_of(c.from.bits);
  if (!c.from.real && !c.to.real) {
    const Real r = whole_of(c.from, bits);
    if (!c.sat) return r.negative ? 0 - r.significand : r.significand;
    return integer_of(c, r);
  }
  Real r = c.from.real ? real_of(c.from.layout, bits) : whole_of(c.from, bits);
  const auto is_f32 = [](const Kind& k) { return k.real && k.bits == 32; };
  const bool to_f16 = c.to.real && c.to.layout.exponent_bits == 5;  // which .ftz leaves alone
  if (c.ftz && is_f32(c.from) && !to_f16 && r.significand && top_bit(r) < -126) r.significand = 0;
  if (c.ftz && is_f32(c.from) && r.nan) r.negative = false, r.payload = mask_of(23) << 29;  // of 0x7FFFFFFF
  if (c.whole) r = to_whole(r, c.rounding);
  if (!c.to.real) return integer_of(c, r);
  if (c.sat) clamp_to_unit(r);
  if (c.relu && r.negative && !r.nan) r = Real();
  if (r.nan) return nan_code(c.to.layout, r, c.from.bits == 64 || c.to.bits == 64) << c.to.layout.shift;
  const uint64_t code = code_of(c.to.layout, r, c.rounding, c.satfinite) << c.to.layout.shift;
  const bool subnormal = (code & 0x7FFFFFFF) < 0x800000;
  return c.ftz && is_f32(c.to) && subnormal ? code & 0x80000000 : code;
}

// ---- handlers ----

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

// cvt.rn.f16x2.e4m3x2: 256 codes are soon converted once for all.
template <bool kE4M3>
Next widen_fp8(Warp& w, const Instr& in, Mask m) {
  static const std::array<uint16_t, 256> table = [] {
    Conversion c;
    c.to = kind_of(type_info("f16"));
    c.from = kind_of(type_info(kE4M3 ? "e4m3x2" : "e5m2x2"));
    std::array<uint16_t, 256> t;
    for (size_t code = 0; code < t.size(); ++code) t[code] = uint16_t(convert_one(c, code));
    return t;
  }();
  return map1<uint32_t, uint16_t>(w, in, m,
                                  [](uint16_t a) { return uint32_t(table[a >> 8]) << 16 | table[a & 0xFF]; });
}

// The common ones as vector code. They say the same as convert_one, and the tests compare them.
template <class To, class From>
Next plain(Warp& w, const Instr& in, Mask m) {
  return map1<To, From>(w, in, m, [](From a) { return To(a); });
}
Next widen_f16(Warp& w, const Instr& in, Mask m) {
  return map1<float, uint16_t>(w, in, m, [](uint16_t a) {
    const float x = half_value<F16>(a);
    return x != x ? std::bit_cast<float>(0x7FFFFFFFu) : x;
  });
}
Next widen_bf16(Warp& w, const Instr& in, Mask m) {  // a NaN stays as it is
  return map1<uint32_t, uint16_t>(w, in, m, [](uint16_t a) { return uint32_t(a) << 16; });
}
// cvt.rna{.satfinite}.tf32.f32 as an H200 does it: half a unit is added to a number and the low bits are cut.
// A NaN is cut only, which may leave infinity; .satfinite takes one unit off whatever has infinity's
// exponent, a NaN as well.
Next round_away_to_tf32(Warp& w, const Instr& in, Mask m) {
  const bool satfinite = in.variant;
  return map1<uint32_t, uint32_t>(w, in, m, [=](uint32_t a) {
    constexpr uint32_t kUnit = 1u << 13, kInfinity = 0x7F800000;
    if ((a & kInfinity) != kInfinity) a += kUnit / 2;
    a &= ~(kUnit - 1);
    return satfinite && (a & kInfinity) == kInfinity ? a - kUnit : a;
  });
}
template <class F>
Next narrow_float(Warp& w, const Instr& in, Mask m) {
  return map1<uint16_t, float>(w, in, m, [](float a) { return nearest_code<F>(double(a)); });
}
template <class F>
Next narrow_floats(Warp& w, const Instr& in, Mask m) {
  return map2<uint32_t, float, float>(w, in, m, [](float a, float b) {
    return uint32_t(nearest_code<F>(double(a))) << 16 | nearest_code<F>(double(b));
  });
}
template <class F, bool kRelu>
Next narrow_to_fp8(Warp& w, const Instr& in, Mask m) {
  return map2<uint16_t, float, float>(w, in, m, [](float a, float b) {
    if (kRelu) a = a < 0 || a == 0 ? 0 : a, b = b < 0 || b == 0 ? 0 : b;
    return uint16_t(nearest_code<F>(double(a)) << 8 | nearest_code<F>(double(b)));
  });
}
Next truncate_float(Warp& w, const Instr& in, Mask m) {  // cvt.rzi.s32.f32
  return map1<int32_t, float>(w, in, m, [](float a) {
    const int32_t inside = int32_t(std::clamp(a, -0x1p31f, 0x1.fffffep30f));
    return a != a ? 0 : a >= 0x1p31f ? std::numeric_limits<int32_t>::max() : inside;
  });
}

Handler fast_conversion(const std::string& modes, const TypeInfo& to, const TypeInfo& from) {
  static const auto& table =
      *new const std::map<std::string, Handler>{{" s64 s32", plain<int64_t, int32_t>},
                                                {" u64 s32", plain<uint64_t, int32_t>},
                                                {" s64 u32", plain<int64_t, uint32_t>},
                                                {" u64 u32", plain<uint64_t, uint32_t>},
                                                {" s32 s64", plain<int32_t, int64_t>},
                                                {" s32 u64", plain<int32_t, uint64_t>},
                                                {" u32 s64", plain<uint32_t, int64_t>},
                                                {" u32 u64", plain<uint32_t, uint64_t>},
                                                {" s32 s16", plain<int32_t, int16_t>},
                                                {" u32 s16", plain<uint32_t, int16_t>},
                                                {" s32 u16", plain<int32_t, uint16_t>},
                                                {" u32 u16", plain<uint32_t, uint16_t>},
                                                {" u16 u32", plain<uint16_t, uint32_t>},
                                                {" u16 s32", plain<uint16_t, int32_t>},
                                                {" s16 u32", plain<uint16_t, uint32_t>},
                                                {" s16 s32", plain<uint16_t, int32_t>},
                                                {" f32 f32", plain<uint32_t, uint32_t>},
                                                {" f64 f64", plain<uint64_t, uint64_t>},
                                                {"rn f32 s32", plain<float, int32_t>},
                                                {"rn f32 u32", plain<float, uint32_t>},
                                                {"rn f32 s64", plain<float, int64_t>},
                                                {"rn f32 u64", plain<float, uint64_t>},
                                                {"rn f64 s32", plain<double, int32_t>},
                                                {"rn f64 u32", plain<double, uint32_t>},
                                                {"rzi s32 f32", truncate_float},
                                                {"rn f16 f32", narrow_float<F16>},
                                                {"rn bf16 f32", narrow_float<BF16>},
                                                {" f32 f16", widen_f16},
                                                {" f32 bf16", widen_bf16},
                                                {"rn f16x2 f32", narrow_floats<F16>},
                                                {"rn bf16x2 f32", narrow_floats<BF16>}};
  const auto found = table.find(modes + " " + to.name + " " + from.name);
  return found == table.end() ? nullptr : found->second;
}

// ---- decoding cvt ----

struct Modifiers {
  int rounding = -1;  // rn rz rm rp, rna, rni rzi rmi rpi
  bool ftz = false, sat = false, relu = false, satfinite = false;
};

[[noreturn]] void refuse(const char* what) { throw Unsupported{what}; }

// Which roundings and modifiers go with which types: "cvt" in the PTX ISA, and what ptxas takes for sm_90a.
// Between f16 and bf16 it takes no rounding too, and makes the machine code of .rn of it.
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
  if (from.bits == 16 && !m.relu) d.instr.run = from.name == "e4m3x2" ? widen_fp8<true> : widen_fp8<false>;
  if (from_pair) return;
  if (to.name == "e4m3x2") d.instr.run = m.relu ? narrow_to_fp8<E4M3, true> : narrow_to_fp8<E4M3, false>;
  if (to.name == "e5m2x2") d.instr.run = m.relu ? narrow_to_fp8<E5M2, true> : narrow_to_fp8<E5M2, false>;
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

// cvt.pack.sat.T.s32 d, a, b{, c}: a and b clamped to T, a above b; of 8 bits and less, below what is left of
// c.
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

// ---- generic addresses: global memory has its own, shared and local memory a window each, see memory.h ----

template <bool kToSpace>
Next cvta(Warp& w, const Instr& in, Mask m) {
  const uint64_t window = uint64_t(in.offset);
  return map1<uint64_t, uint64_t>(w, in, m, [=](uint64_t a) { return kToSpace ? a - window : a + window; });
}
// Addresses of parameters are generic ones here; 32 bits of one hold its place in the block of parameters
// instead.
Next cvta_param(Warp& w, const Instr& in, Mask m) {
  const uint64_t block = w.block->grid->params_address;
  return map1<uint64_t, uint64_t>(w, in, m, [=](uint64_t a) { return a >> 32 ? a : a + block; });
}
enum SpaceName { kGlobal, kShared, kSharedCta, kSharedCluster, kLocal, kConst, kParam, kParamEntry };
int take_space(Decoder& d) {
  const int space = d.take_one(
      {"global", "shared", "shared::cta", "shared::cluster", "local", "const", "param", "param::entry"});
  if (space < 0) throw Unsupported{"this space"};
  return space;
}
// A variable whose address is converted must lie in the space that is named.
void check_symbol(Decoder& d, const Operand& o, Space space) {
  if (o.kind != Operand::Kind::symbol) return;
  const Function& f = *d.frame().function;
  for (const auto* variables : {&d.code().module->variables, &f.locals, &f.params}) {
    for (const Variable& v : *variables) {
      if (v.name == o.name && v.space == space) return;
    }
  }
  throw Unsupported{o.name + " is in another space"};
}
void decode_cvta(Decoder& d) {
  const bool to = d.take("to");
  const int space = take_space(d);
  const TypeInfo type = take_type_of(d, {"u64"});
  d.done();
  const bool shared = space == kShared || space == kSharedCta || space == kSharedCluster;
  d.instr.offset = int64_t(shared ? kSharedWindow : space == kLocal ? kLocalWindow : 0);
  const bool param = space == kParam || space == kParamEntry;
  d.instr.run = to ? cvta<true> : param ? cvta_param : cvta<false>;
  check_symbol(d, d.operand(1),
               shared             ? Space::shared
               : space == kLocal  ? Space::local
               : space == kConst  ? Space::constant
               : space == kGlobal ? Space::global
                                  : Space::param);
  same_operands(d, 1, type);
}

// The parameters of a kernel lie inside the global window; .const variables do not.
struct Ranges {
  std::vector<std::pair<uint64_t, uint64_t>> constants;  // begin, end
};
Next isspacep(Warp& w, const Instr& in, Mask m) {
  const Ranges& ranges = *static_cast<const Ranges*>(in.extra);
  const uint64_t* address = w.at<uint64_t>(in.s[0]);
  const Grid& grid = *w.block->grid;
  Outcomes yes;
  for (int l = 0; l < kLanes; ++l) {
    const uint64_t a = address[l];
    const auto in_window = [a](uint64_t begin, uint64_t bytes) { return a - begin < bytes; };
    const bool shared = in_window(kSharedWindow, kSharedWindowBytes),
               local = in_window(kLocalWindow, kLocalWindowBytes);
    const bool own = shared && (a - kSharedWindow) >> 24 == uint64_t(w.block->rank);
    const bool constant = std::any_of(ranges.constants.begin(), ranges.constants.end(),
                                      [&](const auto& r) { return a >= r.first && a < r.second; });
    switch (in.variant) {
      case kGlobal:
        yes[l] = !shared && !local && !constant;
        break;
      case kShared:
      case kSharedCta:
        yes[l] = own;
        break;
      case kSharedCluster:
        yes[l] = shared;
        break;
      case kLocal:
        yes[l] = local;
        break;
      case kConst:
        yes[l] = constant;
        break;
      default:
        yes[l] = grid.params_address && in_window(grid.params_address, grid.launch.params.size());
    }
  }
  put(w, in.d, m, yes);
  return Next::go_on;
}
void decode_isspacep(Decoder& d) {
  d.instr.variant = uint8_t(take_space(d));
  d.done();
  want_operands(d, 2);
  Ranges ranges;
  for (const Variable& v : d.code().module->variables) {
    const auto at = d.code().global_symbols.find(v.name);
    if (v.space != Space::constant || at == d.code().global_symbols.end()) continue;
    ranges.constants.push_back({at->second, at->second + uint64_t(v.bytes)});
  }
  d.extra(ranges);
  d.instr.s[0] = d.source(1, type_info("u64"));
  d.instr.d = d.predicate_destination(d.operand(0));
  d.instr.run = isspacep;
}

}  // namespace

std::vector<Form> convert_forms() {
  return {
      {"cvt", decode_cvt_pack}, {"cvt", decode_cvt}, {"cvta", decode_cvta}, {"isspacep", decode_isspacep}};
}

}  // namespace gg::emu
