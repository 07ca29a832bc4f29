// SPDX-License-Identifier: MIT
//
// Number formats as bit patterns: what a code means (decode), how a real number rounds to a code (encode),
// and the distance between neighbours (ulp). Written from the fields of the format alone, so that the
// reference shares no conversion with the kernels it judges. IEEE 754-2019 section 3.4 for f16 and f32; bf16
// is f32 cut to 16 bits.

#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "common/check.h"

namespace gg {

enum class Format : uint8_t { f32, f16, bf16, i32, i64 };

struct FormatInfo {
  const char* name;
  const char* npy;  // type string in a .npy header; formats NumPy lacks travel as raw bits
  int bytes;
  int exponent_bits;  // 0 for integers
  int mantissa_bits;
  double sum_factor;  // of the sum of |a*b| that an fp32 accumulator may be off by, with this output
};

GG_HD constexpr FormatInfo format_info(Format format) {
  switch (format) {
    case Format::f32:
      return {"f32", "<f4", 4, 8, 23, 1.0 / (1 << 19)};
    case Format::f16:
      return {"f16", "<f2", 2, 5, 10, 1.0 / (1 << 19)};
    case Format::bf16:
      return {"bf16", "<u2", 2, 8, 7, 1.0 / (1 << 19)};
    case Format::i32:
      return {"i32", "<i4", 4, 0, 31, 0.0};
    case Format::i64:
      return {"i64", "<i8", 8, 0, 63, 0.0};
  }
  return {"?", "?", 0, 0, 0, 0.0};
}

GG_HD inline double two_to_the(int exponent) {  // exact for -1022 .. 1023
  const uint64_t bits = uint64_t(exponent + 1023) << 52;
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

GG_HD inline int exponent_of(double x) {  // floor(log2|x|) of a normal double; -1023 for zero and subnormals
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return int(bits >> 52 & 0x7FF) - 1023;
}

GG_HD inline int least_exponent(const FormatInfo& f) { return 2 - (1 << (f.exponent_bits - 1)); }
GG_HD inline uint32_t infinity_code(const FormatInfo& f) {
  return ((1u << f.exponent_bits) - 1) << f.mantissa_bits;
}
GG_HD inline uint32_t sign_bit(const FormatInfo& f) { return 1u << (f.exponent_bits + f.mantissa_bits); }

GG_HD inline bool is_nan(Format format, uint32_t code) {
  const FormatInfo f = format_info(format);
  return (code & (sign_bit(f) - 1)) > infinity_code(f);
}

// The value of a code, exactly.
GG_HD inline float decode(Format format, uint32_t code) {
  if (format == Format::bf16) code <<= 16;
  if (format != Format::f16) {
    float value;
    memcpy(&value, &code, sizeof value);
    return value;
  }
  const FormatInfo f = format_info(format);
  const uint32_t field = code >> f.mantissa_bits & ((1u << f.exponent_bits) - 1);
  const uint32_t fraction = code & ((1u << f.mantissa_bits) - 1);
  const bool negative = code & sign_bit(f);
  uint32_t bits;
  if (field == (1u << f.exponent_bits) - 1) {
    bits = 0x7F800000u | fraction << (23 - f.mantissa_bits);
  } else if (field == 0) {
    const float magnitude = float(fraction) * float(two_to_the(least_exponent(f) - f.mantissa_bits));
    memcpy(&bits, &magnitude, sizeof bits);
  } else {
    bits = uint32_t(int(field) - 1 + least_exponent(f) + 127) << 23 | fraction << (23 - f.mantissa_bits);
  }
  bits |= negative ? 0x80000000u : 0;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// Distance between neighbouring values of the format at |x|; below the least normal, the subnormal spacing.
GG_HD inline double ulp(Format format, double x) {
  const FormatInfo f = format_info(format);
  const int exponent = exponent_of(x);
  return two_to_the((exponent > least_exponent(f) ? exponent : least_exponent(f)) - f.mantissa_bits);
}

enum class Rounding { nearest_even, toward_zero };

// The code nearest to x (one rounding, from double); beyond the largest finite value, infinity.
GG_HD inline uint32_t encode(Format format, double x, Rounding rounding = Rounding::nearest_even) {
  const FormatInfo f = format_info(format);
  const uint32_t sign = x < 0 || (x == 0 && 1 / x < 0) ? sign_bit(f) : 0;
  if (x != x) return infinity_code(f) | 1u << (f.mantissa_bits - 1);
  const double magnitude = x < 0 ? -x : x;
  if (exponent_of(magnitude) > 1000) return sign | infinity_code(f);
  const double steps =
      magnitude / ulp(format, magnitude);  // exact: a power of two; below 2^(mantissa_bits + 1)
  uint32_t count = uint32_t(steps);
  const double rest = steps - count;
  if (rounding == Rounding::nearest_even && (rest > 0.5 || (rest == 0.5 && (count & 1)))) ++count;
  const int exponent = exponent_of(magnitude);
  const uint32_t field = exponent >= least_exponent(f) ? uint32_t(exponent - least_exponent(f)) : 0;
  // A normal number's count carries its implicit one, which is the + 1 that its exponent field lacks here.
  const uint64_t code = (uint64_t(field) << f.mantissa_bits) + count;
  return sign | (code > infinity_code(f) ? infinity_code(f) : uint32_t(code));
}

// Loads and stores of one element by index; the formats of a tensor are known only when run.
GG_HD inline uint32_t load_code(const void* tensor, Format format, int64_t index) {
  if (format_info(format).bytes == 2) return static_cast<const uint16_t*>(tensor)[index];
  return static_cast<const uint32_t*>(tensor)[index];
}
GG_HD inline void store_code(void* tensor, Format format, int64_t index, uint32_t code) {
  if (format_info(format).bytes == 2) {
    static_cast<uint16_t*>(tensor)[index] = uint16_t(code);
  } else {
    static_cast<uint32_t*>(tensor)[index] = code;
  }
}

}  // namespace gg
