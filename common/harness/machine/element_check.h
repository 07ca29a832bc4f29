// SPDX-License-Identifier: MIT
//
// When an output element is right. Exact sums must give the rounded answer bit for bit; random data
// may be off by one ulp of the output format plus a fraction of sum |a*b|, which is what an fp32
// accumulator can lose. Where a partial sum may leave the range of f32, its infinity is right too.

#pragma once

#include <cstdint>

#include "common/kernel/formats.h"

namespace gg {

struct Limit {
  Format format = Format::bf16;
  // Every sum is a whole number that fp32 holds, whatever the order of adding.
  bool exact = true;
  double sum_factor = 0;     // of sum |a*b|; unused when exact
  bool nan_allowed = false;  // where a sum may be NaN (operands read from files)
};

// Infinities that a partial sum may reach, in some order of adding (overflow.h).
struct Overflow {
  bool up = false, down = false;
};

struct Verdict {
  bool ok;
  float ratio;  // error over limit; 0 when exact
  // The error beyond half an ulp of rounding, over the sum of |a*b|: what sum_factor must cover.
  float factor;
};

// An infinity that a partial sum has reached stays, unless it meets the other one; a whole sum that
// is itself infinite has a term that is, and its partial sums do not end in the other infinity.
GG_HD inline bool is_overflow(uint32_t code, double reference, const Limit& limit, Overflow overflow) {
  if (overflow.up && overflow.down && is_nan(limit.format, code)) return limit.nan_allowed;
  const double infinity = two_to_the(1023) * 2;
  return (overflow.up && reference != -infinity && code == encode(limit.format, infinity)) ||
         (overflow.down && reference != infinity && code == encode(limit.format, -infinity));
}

GG_HD inline Verdict judge(uint32_t code, double reference, double magnitude, const Limit& limit,
                           Overflow overflow = {}) {
  if (reference != reference) return {limit.nan_allowed && is_nan(limit.format, code), 0, 0};
  if (!limit.exact && is_overflow(code, reference, limit, overflow)) return {true, 0, 0};
  const uint32_t nearest = encode(limit.format, reference);
  if (code == nearest) return {true, 0, 0};
  const FormatInfo f = format_info(limit.format);
  // NaN never passes, and a reference that rounds to infinity demands infinity.
  if (limit.exact || is_nan(limit.format, code) || is_infinity(limit.format, nearest) ||
      is_infinity(limit.format, code)) {
    return {false, 1e30f, 0};
  }
  if (f.saturates) {  // a reference beyond the largest finite value asks for the largest
    const double largest = decode(limit.format, largest_code(f));
    reference = reference < -largest ? -largest : reference > largest ? largest : reference;
  }
  const double error = std::fabs(double(decode(limit.format, code)) - reference);
  const double step = ulp(limit.format, reference);
  const double allowed = step + limit.sum_factor * magnitude;
  const double beyond = error > 0.5 * step ? error - 0.5 * step : 0;
  return {error <= allowed, float(error / allowed), magnitude > 0 ? float(beyond / magnitude) : 0};
}

struct Comparison {
  int64_t checked = 0, failures = 0;
  int64_t first = -1;  // least element of D that failed
  float worst_ratio = 0, worst_factor = 0;
  int64_t beyond_exact = 0;  // references larger than the output format counts exactly
  int64_t beyond_2048 = 0;   // references larger than a half-precision accumulator counts exactly

  void add(int64_t element, const Verdict& verdict, double reference, const Limit& limit);
  void merge(const Comparison& other);
};

}  // namespace gg
