// SPDX-License-Identifier: MIT
//
// One number of any type to any other: what it is, how it is rounded, and the code of the result.
// PTX ISA: "Data Movement and Conversion Instructions: cvt".

#include "common/emu/core/units/conversion.h"

#include <algorithm>

namespace gg::emu {

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
namespace {

struct Real {  // (negative ? -1 : 1) * significand * 2^exponent
  bool negative = false, nan = false, infinite = false;
  uint64_t significand = 0;
  int exponent = 0;
  uint64_t payload = 0;  // of a NaN, as f64 would hold it
};
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
// significand * 2^exponent in units of 2^unit, rounded; the caller ensures that the result fits.
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

// A NaN is the format's; to and from f64 it keeps its sign and the upper bits of its payload, and
// is made quiet.
uint64_t nan_code(const Layout& f, const Real& r, bool keeps_payload) {
  if (!keeps_payload) return f.nan;
  const uint64_t quiet = uint64_t(1) << (f.mantissa_bits - 1), payload = r.payload >> (52 - f.mantissa_bits);
  const uint64_t head = (uint64_t(r.negative) << f.exponent_bits | mask_of(f.exponent_bits))
                        << f.mantissa_bits;
  return head | quiet | payload;
}

// The code of the number nearest in a direction. `finite`: the largest number, not infinity.
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
}  // namespace

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
  // The payload is that of 0x7FFFFFFF.
  if (c.ftz && is_f32(c.from) && r.nan) r.negative = false, r.payload = mask_of(23) << 29;
  if (c.whole) r = to_whole(r, c.rounding);
  if (!c.to.real) return integer_of(c, r);
  if (c.sat) clamp_to_unit(r);
  if (c.relu && r.negative && !r.nan) r = Real();
  if (r.nan) return nan_code(c.to.layout, r, c.from.bits == 64 || c.to.bits == 64) << c.to.layout.shift;
  const uint64_t code = code_of(c.to.layout, r, c.rounding, c.satfinite) << c.to.layout.shift;
  const bool subnormal = (code & 0x7FFFFFFF) < 0x800000;
  return c.ftz && is_f32(c.to) && subnormal ? code & 0x80000000 : code;
}
}  // namespace gg::emu
