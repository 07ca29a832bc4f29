// SPDX-License-Identifier: MIT
//
// f16 and bf16 as 16-bit codes, and a sum to odd: without branches, so that the compiler makes
// vector code of them. common/kernel/formats.h says the same in plain words, and the tests hold one
// against the other.

#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace gg::emu {

struct F16 {
  static constexpr int kMantissaBits = 10, kLeastExponent = -14, kSignBit = 15;
  static constexpr double kLeastNormal = 0x1p-14;
  // The code of infinity as a number: what would come after the largest finite one.
  static constexpr double kMost = 0x1p16;
  static constexpr uint16_t kInfinity = 0x7C00, kNaN = 0x7FFF;
  // Times this, a number has as an f32 the exponent field it has as an f16, 13 bits higher.
  static constexpr float kScale = 0x1p-112f;
  static constexpr int kDrop = 13;
  static constexpr bool kSumsFit = true;  // a * b + c in double, see half.cpp
};
struct BF16 {
  static constexpr int kMantissaBits = 7, kLeastExponent = -126, kSignBit = 15;
  static constexpr double kLeastNormal = 0x1p-126;
  static constexpr double kMost = 0x1p128;
  static constexpr uint16_t kInfinity = 0x7F80, kNaN = 0x7FFF;
  static constexpr float kScale = 1;
  static constexpr int kDrop = 16;
  static constexpr bool kSumsFit = false;
};
// The fp8 formats as .satfinite wants them: what is beyond becomes the largest number.
struct E4M3 {
  static constexpr int kMantissaBits = 3, kLeastExponent = -6, kSignBit = 7;
  static constexpr double kMost = 448;
  static constexpr uint16_t kNaN = 0x7F;
  static constexpr float kScale = 0x1p-120f;
  static constexpr int kDrop = 20;
};
struct E5M2 {
  static constexpr int kMantissaBits = 2, kLeastExponent = -14, kSignBit = 7;
  static constexpr double kMost = 57344;
  static constexpr uint16_t kNaN = 0x7F;
  static constexpr float kScale = 0x1p-112f;
  static constexpr int kDrop = 21;
};

// The value of a code, exactly; a NaN is some NaN.
template <class F>
inline float half_value(uint16_t code) {
  const uint32_t magnitude = code & 0x7FFFu, sign = uint32_t(code & 0x8000u) << 16;
  uint32_t bits = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude << F::kDrop) * (1 / F::kScale));
  bits = magnitude < F::kInfinity ? bits : magnitude == F::kInfinity ? 0x7F800000u : 0x7FC00000u;
  return std::bit_cast<float>(bits | sign);
}

// The code nearest to x, ties to even.
template <class F>
inline uint16_t nearest_code(double x) {
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  int64_t exponent = int64_t(bits >> 52 & 0x7FF) - 1023;
  exponent = exponent < F::kLeastExponent ? F::kLeastExponent : exponent;
  exponent = exponent > 200 ? 200 : exponent;
  // Added to a number whose last bit has the weight of the code's last bit, x is rounded there
  // by the addition.
  const double anchor = std::bit_cast<double>(uint64_t(exponent - F::kMantissaBits + 52 + 1023) << 52);
  double magnitude = (std::fabs(x) + anchor) - anchor;
  magnitude = magnitude < F::kMost ? magnitude : F::kMost;
  const uint32_t code = std::bit_cast<uint32_t>(float(magnitude) * F::kScale) >> F::kDrop;
  return uint16_t(x != x ? F::kNaN : code | (bits >> 63) << F::kSignBit);
}

// a + b to odd: of a sum that is not exact, the neighbour with an odd last bit stands for
// everything between two numbers, so that whoever rounds or compares next sees a tie or an equality
// only where there is one.
inline double sum_to_odd(double a, double b) {
  const double sum = a + b, part = sum - a;
  const double rest = (a - (sum - part)) + (b - part);  // what the sum lacks, exactly
  const uint64_t bits = std::bit_cast<uint64_t>(sum);
  const bool inexact = rest < 0 || rest > 0, outward = (rest > 0) == (sum > 0);
  return std::bit_cast<double>(inexact && !(bits & 1) ? (outward ? bits + 1 : bits - 1) : bits);
}

}  // namespace gg::emu
