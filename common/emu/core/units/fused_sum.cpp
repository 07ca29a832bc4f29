// SPDX-License-Identifier: MIT
//
// The truncated fused sum. A term that is zero takes no part; a sum that cuts to zero is +0.

#include "common/emu/core/units/fused_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace gg::emu {
namespace {

float quiet_nan() { return std::bit_cast<float>(0x7FFFFFFFu); }

// To f16's 11 bits, or its subnormal spacing 2^-24; ties go to even.
double round_to_half(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), kLeastHalfExponent);
  const double spacing = std::ldexp(1.0, exponent - 10);
  const double rounded = std::nearbyint(value / spacing) * spacing;
  if (rounded == 0) return 0;  // +0, as for f32 results
  return std::abs(rounded) > double(kLargestHalf) ? std::copysign(INFINITY, value) : rounded;
}

// Toward zero: to `kept` bits, and to f32's subnormal spacing.
double cut_to_float(double value, int kept) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double spacing = std::ldexp(1.0, std::max(std::ilogb(value) - kept + 1, -149));
  const double result = std::trunc(value / spacing) * spacing;
  return result == 0 ? 0 : result;
}

// The sum before it is rounded, exact in a double: at most 33 bits. NaN and infinities too.
double exact_sum(const Term* a, const Term* b, int k, float c, const Cut& cut, int scale) {
  bool nan = std::isnan(c), plus = c == INFINITY, minus = c == -INFINITY;
  int largest = kZeroExponent;
  for (int i = 0; i < k; ++i) {
    const bool a_zero = a[i].significand == 0 && !a[i].special,
               b_zero = b[i].significand == 0 && !b[i].special;
    if (a[i].special | b[i].special) {
      if (a[i].special == 2 || b[i].special == 2 || a_zero || b_zero) {
        nan = true;
      } else {
        ((a[i].significand < 0) != (b[i].significand < 0) ? minus : plus) = true;
      }
    } else if (!a_zero && !b_zero) {
      largest = std::max(largest, a[i].exponent + b[i].exponent + scale);
    }
  }
  if (nan || (plus && minus)) return quiet_nan();
  if (plus || minus) return plus ? INFINITY : -INFINITY;
  const uint32_t c_bits = std::bit_cast<uint32_t>(c);
  const int c_field = int(c_bits >> 23 & 0xFF), c_exponent = std::max(c_field, 1) - 127;
  const int64_t c_significand = int64_t(c_bits & 0x7FFFFF) | (c_field ? 0x800000 : 0);
  if (c_significand)
    largest = std::max(largest, cut.to_half ? std::max(c_exponent, kLeastHalfExponent) : c_exponent);

  // In units of 2^(largest - fraction_bits), each term cut toward zero.
  const int unit = largest - cut.fraction_bits;
  const auto units = [unit](int64_t significand, int exponent) {
    const int shift = exponent - unit;
    if (shift >= 0) return significand << shift;
    if (shift < -62) return int64_t(0);
    return significand < 0 ? -(-significand >> -shift) : significand >> -shift;
  };
  int64_t sum = units(c_bits >> 31 ? -c_significand : c_significand, c_exponent - 23);
  for (int i = 0; i < k; ++i) {
    const int64_t product = int64_t(a[i].significand) * b[i].significand;
    if (product) sum += units(product, a[i].exponent + b[i].exponent + scale - cut.mantissa_bits);
  }
  return std::ldexp(double(sum), unit);
}

float add_to_nearest(float a, float b) {  // FADD
  const float sum = a + b;
  return std::isnan(sum) ? quiet_nan() : sum;
}

}  // namespace

Narrow narrow(const std::string& type) {
  if (type == "bf16") return {16, 8, 7, 0, false};
  if (type == "f16") return {16, 5, 10, 0, false};
  if (type == "tf32") return {32, 8, 10, 13, false};
  if (type == "e4m3") return {8, 4, 3, 0, true};
  if (type == "e5m2") return {8, 5, 2, 0, false};
  if (type == "e2m3") return {6, 2, 3, 0, false, true};
  if (type == "e3m2") return {6, 3, 2, 0, false, true};
  if (type == "e2m1") return {4, 2, 1, 0, false, true};
  throw std::invalid_argument(type + " is no input type of the tensor cores");
}

Term term_of(const Narrow& f, uint32_t code) {
  code >>= f.shift;
  const uint32_t fraction = code & ((1u << f.mantissa_bits) - 1);
  const int field = int(code >> f.mantissa_bits & ((1u << f.exponent_bits) - 1));
  const bool negative = code >> (f.mantissa_bits + f.exponent_bits) & 1;
  const int bias = (1 << (f.exponent_bits - 1)) - 1;
  Term term;
  if (field == (1 << f.exponent_bits) - 1 && !f.no_specials) {
    if (!f.finite_only) {
      term.special = fraction ? 2 : 1;
    } else if (fraction == (1u << f.mantissa_bits) - 1) {
      term.special = 2;
    }
  }
  const int32_t significand = int32_t(fraction | (field ? 1u << f.mantissa_bits : 0));
  term.significand = negative ? -significand : significand;
  term.exponent = int16_t(std::max(field, 1) - bias);
  return term;
}

Term scale_of(bool ue4m3, uint8_t code) {
  if (!ue4m3) return {8, int16_t(code - 127), uint8_t(code == 0xFF ? 2 : 0)};
  Term term = term_of(narrow("e4m3"), code & 0x7F);
  for (; term.significand && term.significand < 8; --term.exponent) term.significand *= 2;
  return term;
}

float fused_sum(const Term* a, const Term* b, int k, float c, const Cut& cut, int scale) {
  const double exact = exact_sum(a, b, k, c, cut, scale);
  if (std::isnan(exact)) return quiet_nan();
  if (cut.to_half) return float(round_to_half(exact));
  const double result = cut_to_float(exact, cut.kept_bits);
  constexpr double kLargestFloat = 3.4028234663852886e38;
  return std::abs(result) > kLargestFloat ? std::copysign(INFINITY, float(result > 0 ? 1 : -1))
                                          : float(result);
}

Step mma_sync_step(const Narrow& format, int k) {
  if (format.bits != 8) return {0, k};
  return {k % 4 / 2, k / 4 * 2 + k % 2};
}

float mma_sync_sum(const Narrow& format, const Term* a, const Term* b, int k, float c) {
  const Cut cut = {2 * format.mantissa_bits};
  if (format.bits != 8) return fused_sum(a, b, k, c, cut);
  Term a_steps[2][Factors::kMaxK / 2], b_steps[2][Factors::kMaxK / 2];
  for (int i = 0; i < k; ++i) {
    const Step step = mma_sync_step(format, i);
    a_steps[step.index][step.k] = a[i];
    b_steps[step.index][step.k] = b[i];
  }
  const float first = fused_sum(a_steps[0], b_steps[0], k / 2, 0, cut);
  return add_to_nearest(c, fused_sum(a_steps[1], b_steps[1], k / 2, first, cut));
}

// ---- many sums at once ----

#ifdef __x86_64__
Cpus last_that_runs_here() {
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  return avx512 ? Cpus::avx512 : Cpus::avx2;
}
const ManySums* many_sums(Cpus kind) {
  if (kind == Cpus::any) return &kManySumsAny;
  return kind == Cpus::avx2 ? &kManySumsAvx2 : &kManySumsAvx512;
}
#else
Cpus last_that_runs_here() { return Cpus::any; }
const ManySums* many_sums(Cpus kind) { return kind == Cpus::any ? &kManySumsAny : nullptr; }
#endif

static const ManySums& chosen_sums() {
  static const ManySums& chosen = *many_sums(last_that_runs_here());
  return chosen;
}

void Factors::resize(int lines, int k) {
  lines_ = lines;
  k_ = k;
  const size_t sides = size_t(lines + kSide - 1) / kSide;
  if (slices_.size() < sides * size_t(k)) slices_.resize(sides * size_t(k));
  if (tops.size() < sides * kSide) {
    tops.resize(sides * kSide);
    specials.resize(sides * kSide);
  }
  scales.assign(tops.size(), 0);
}

void Factors::scale(const uint8_t* codes) {
  for (int line = 0; line < lines_; ++line) {
    const Term scale = scale_of(false, codes[line]);
    const size_t l = size_t(line);
    scales[l] = scale.exponent;
    tops[l] += scale.exponent;
    if (scale.special) specials[l] |= 2;
  }
}

void Factors::decode(const Narrow& f) {
  format = f;
  chosen_sums().decode(*this);
}

void fused_sums(const Factors& a, const Factors& b, float* sums, int pitch, const Cut& cut) {
  chosen_sums().sums(a, b, sums, pitch, cut);
}

void mma_sync_sums(const Factors (&a)[2], const Factors (&b)[2], float* sums, int pitch, bool to_half) {
  const Cut cut = {a[0].format.mantissa_bits + b[0].format.mantissa_bits, 25, 24, to_half};
  if (a[0].format.bits != 8) return fused_sums(a[0], b[0], sums, pitch, cut);
  thread_local std::vector<float> steps;
  steps.assign(size_t(a[0].lines() * pitch), 0.0f);
  for (int i = 0; i < 2; ++i) fused_sums(a[i], b[i], steps.data(), pitch, cut);
  for (int row = 0; row < a[0].lines(); ++row) {
    for (int column = 0; column < b[0].lines(); ++column) {
      float& sum = sums[row * pitch + column];
      sum = add_to_nearest(sum, steps[size_t(row * pitch + column)]);
      if (to_half) sum = half_to_float(float_to_half(sum));
    }
  }
}

float half_to_float(uint16_t half) {
  const uint32_t sign = uint32_t(half & 0x8000) << 16, magnitude = half & 0x7FFF;
  if (magnitude >= 0x7C00) return std::bit_cast<float>(sign | 0x7F800000 | (magnitude & 0x3FF) << 13);
  const float value = float(magnitude & 0x3FF) * 0x1p-24f;  // of a subnormal
  const uint32_t bits = magnitude < 0x400 ? std::bit_cast<uint32_t>(value) : (magnitude << 13) + (112u << 23);
  return std::bit_cast<float>(sign | bits);
}

uint16_t float_to_half(float value) {
  if (std::isnan(value)) return 0x7FFF;
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::abs(round_to_half(value));
  if (magnitude > double(kLargestHalf)) return sign | 0x7C00;
  if (magnitude < 0x1p-14) return uint16_t(sign | uint16_t(magnitude * 0x1p24));
  const uint32_t bits = std::bit_cast<uint32_t>(float(magnitude));
  return uint16_t(sign | ((bits - (112u << 23)) >> 13));
}

}  // namespace gg::emu
