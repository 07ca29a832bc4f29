// SPDX-License-Identifier: MIT
//
// Test data as a function of (seed, tensor, index): the CPU and the GPU make the same bits without
// sending any. The hash is the finaliser of SplitMix64 (Steele, Lea, Flood: Fast Splittable
// Pseudorandom Number Generators, 2014). Normal numbers come from a table of quantiles interpolated
// in integers, so no machine's libm or FMA shows.

#pragma once

#include <cstdint>

#include "common/kernel/check.h"
#include "common/kernel/formats.h"

namespace gg {

GG_HD inline uint64_t hash(uint64_t seed, uint64_t stream, uint64_t index) {
  uint64_t x = index + (seed * 8 + stream + 1) * 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

constexpr int kQuantileBins = 1024;

// Quantiles of |z| for standard normal z, in units of 2^-16: entry i is the quantile of i / 1024;
// 4.25 ends the tail.
const int32_t* normal_quantiles();

struct Fill {
  enum class Kind { integers, normal, nan };
  Kind kind = Kind::normal;
  int range = 16;  // integers: uniform in [-range, range], or what the format has nearest to that
  uint64_t seed = 0;
  uint64_t stream = 0;  // one per tensor
};

// The value of element `index`; `quantiles` is normal_quantiles() or a copy of it in
// the machine's memory.
GG_HD inline float random_value(const Fill& fill, uint64_t index, const int32_t* quantiles) {
  const uint64_t bits = hash(fill.seed, fill.stream, index);
  if (fill.kind == Fill::Kind::integers) {
    return float(int((bits >> 32) * uint64_t(2 * fill.range + 1) >> 32) - fill.range);
  }
  const int bin = int(bits >> 22 & (kQuantileBins - 1));
  const int32_t low = quantiles[bin], high = quantiles[bin + 1];
  const int32_t magnitude = low + int32_t(int64_t(high - low) * int64_t(bits >> 32 & 0xFFFF) >> 16);
  return float(bits >> 63 ? -magnitude : magnitude) * (1.0f / 65536.0f);
}

// D before a launch that adds to it: element i of the buffer holds value i.
GG_HD inline Fill start_of_d() { return {Fill::Kind::integers, 16, 0, 9}; }

GG_HD inline uint32_t random_code(const Fill& fill, Format format, uint64_t index, const int32_t* quantiles) {
  if (fill.kind == Fill::Kind::nan) return 0xFFFFFFFFu;
  return encode(format, random_value(fill, index, quantiles));
}

// The code of scale `index`: for integers a power of two from 1 to 2^span, for normal data any
// significand that the format has and exponents from -2 to 2.
GG_HD inline uint32_t random_scale(const Fill& fill, Format scale, int span, uint64_t index) {
  if (fill.kind == Fill::Kind::nan) return 0xFF;
  const uint64_t bits = hash(fill.seed, fill.stream, index);
  const auto below = [&](int bound, int shift) {
    return int((bits >> shift & 0xFFFF) * uint64_t(bound) >> 16);
  };
  if (fill.kind == Fill::Kind::integers) return encode(scale, two_to_the(below(span + 1, 0)));
  return encode(scale, (8 + below(8, 16)) * two_to_the(below(5, 32) - 5));
}

}  // namespace gg
