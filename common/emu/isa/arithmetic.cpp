// SPDX-License-Identifier: MIT
//
// The truncated fused sum. A term that is zero takes no part; a sum that cuts to zero is +0.

#include "common/emu/isa/arithmetic.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace gg::emu {

Narrow narrow(const std::string& type) {
  if (type == "bf16") return {16, 8, 7, 0, false};
  if (type == "f16") return {16, 5, 10, 0, false};
  if (type == "tf32") return {32, 8, 10, 13, false};
  if (type == "e4m3") return {8, 4, 3, 0, true};
  if (type == "e5m2") return {8, 5, 2, 0, false};
  throw std::invalid_argument(type + " is no input type of the tensor cores");
}

Term term_of(const Narrow& f, uint32_t code) {
  code >>= f.shift;
  const uint32_t fraction = code & ((1u << f.mantissa_bits) - 1);
  const int field = int(code >> f.mantissa_bits & ((1u << f.exponent_bits) - 1));
  const bool negative = code >> (f.mantissa_bits + f.exponent_bits) & 1;
  const int bias = (1 << (f.exponent_bits - 1)) - 1;
  Term term;
  if (field == (1 << f.exponent_bits) - 1) {
    if (!f.finite_only)
      term.special = fraction ? 2 : 1;
    else if (fraction == (1u << f.mantissa_bits) - 1)
      term.special = 2;
  }
  const int32_t significand = int32_t(fraction | (field ? 1u << f.mantissa_bits : 0));
  term.significand = negative ? -significand : significand;
  term.exponent = int16_t(std::max(field, 1) - bias);
  return term;
}

float fused_sum(const Term* a, const Term* b, int k, float c, int mantissa_bits, int fraction_bits,
                int kept_bits) {
  constexpr int kZeroExponent =
      -133;  // of a sum of zeros: WGMMA's value, which the mma.sync data do not tell from others
  int largest = kZeroExponent;
  bool nan = std::isnan(c), plus = c == INFINITY, minus = c == -INFINITY;
  for (int i = 0; i < k; ++i) {
    if (a[i].special | b[i].special) {
      const bool zero = (a[i].significand == 0 && !a[i].special) || (b[i].significand == 0 && !b[i].special);
      if (a[i].special == 2 || b[i].special == 2 || zero)
        nan = true;
      else
        ((a[i].significand < 0) != (b[i].significand < 0) ? minus : plus) = true;
      continue;
    }
    if (a[i].significand && b[i].significand) largest = std::max(largest, a[i].exponent + b[i].exponent);
  }
  if (nan || (plus && minus)) {
    const uint32_t bits = 0x7FFFFFFFu;
    float result;
    std::memcpy(&result, &bits, 4);
    return result;
  }
  if (plus || minus) return plus ? INFINITY : -INFINITY;
  uint32_t c_bits;
  std::memcpy(&c_bits, &c, 4);
  const int c_field = int(c_bits >> 23 & 0xFF), c_exponent = std::max(c_field, 1) - 127;
  const int64_t c_significand = int64_t(c_bits & 0x7FFFFF) | (c_field ? 0x800000 : 0);
  if (c_significand) largest = std::max(largest, c_exponent);

  // In units of 2^(largest - fraction_bits), each term cut toward zero.
  const auto cut = [&](int64_t significand, int exponent_of_unit) {
    const int shift = exponent_of_unit - (largest - fraction_bits);
    if (shift >= 0) return significand << shift;
    if (shift < -62) return int64_t(0);
    return significand < 0 ? -(-significand >> -shift) : significand >> -shift;
  };
  int64_t sum = cut(c_bits >> 31 ? -c_significand : c_significand, c_exponent - 23);
  for (int i = 0; i < k; ++i) {
    const int64_t product = int64_t(a[i].significand) * b[i].significand;
    if (product) sum += cut(product, a[i].exponent + b[i].exponent - 2 * mantissa_bits);
  }
  if (sum == 0) return 0.0f;
  // Cut to the bits that are kept, and to f32's subnormal spacing.
  const bool negative = sum < 0;
  uint64_t magnitude = uint64_t(negative ? -sum : sum);
  int unit = largest - fraction_bits;
  const int width = 64 - __builtin_clzll(magnitude);
  int drop = std::max(0, width - kept_bits);
  drop = std::max(drop, -149 - unit);
  if (drop >= 64) return 0.0f;
  magnitude = magnitude >> drop;
  unit += std::max(drop, 0);
  const double value = std::ldexp(double(magnitude), unit);
  const float result = value > 3.4028234663852886e38 ? INFINITY : float(value);
  return magnitude == 0 ? 0.0f : negative ? -result : result;
}

float mma_sync_sum(const Narrow& format, const Term* a, const Term* b, int k, float c) {
  constexpr int kFractionBits = 25, kKeptBits = 24;
  if (format.bits != 8) return fused_sum(a, b, k, c, format.mantissa_bits, kFractionBits, kKeptBits);
  float sum = 0;
  for (int half = 0; half < 2; ++half) {
    Term a_half[32], b_half[32];
    int count = 0;
    for (int i = 0; i < k; ++i) {
      if (i % 4 / 2 != half) continue;
      a_half[count] = a[i];
      b_half[count++] = b[i];
    }
    sum = fused_sum(a_half, b_half, count, sum, format.mantissa_bits, kFractionBits, kKeptBits);
  }
  return c + sum;
}

}  // namespace gg::emu
