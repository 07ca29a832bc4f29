// SPDX-License-Identifier: MIT
//
// Number formats as bit patterns: what a code means (decode), how a real number rounds to a code
// (encode), and the distance between neighbours (ulp). Written from the fields of the format alone,
// so that the reference shares no conversion with the kernels it judges. Sources: IEEE 754-2019
// section 3.4 for f16 and f32; bf16 is f32 cut to 16 bits; PTX ISA "Alternate Floating-Point Data
// Formats" and the OCP Microscaling Formats (MX) Specification 1.0, section 5, for e4m3, e5m2, e2m1
// and ue8m0; ue4m3 is e4m3 without a sign.

#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/kernel/check.h"

namespace gg {

enum class Format : uint8_t { f32, f16, bf16, i32, i64, e4m3, e5m2, e2m1, ue8m0, ue4m3 };

// The meaning of the codes whose exponent bits are all ones.
enum class Top : uint8_t {
  ieee,     // infinity, and NaN where a mantissa bit is set
  one_nan,  // numbers, except for the code with every bit but the sign set, which is NaN
  numbers,  // numbers: the format has neither infinity nor NaN
};

struct FormatInfo {
  const char* name;
  const char* npy;    // type string in a .npy header; formats NumPy lacks travel as raw bits
  int bits;           // of one element in memory; two elements of 4 bits share a byte
  int exponent_bits;  // 0 for integers
  int mantissa_bits;
  // The share of the sum of |a*b| that an fp32 accumulator may be off by, with this output.
  double sum_factor;
  Top top = Top::ieee;
  bool saturates = false;  // a number too large becomes the largest finite one instead of infinity
  bool has_sign = true;
};

GG_HD constexpr FormatInfo format_info(Format format) {
  switch (format) {
    case Format::f32:
      return {"f32", "<f4", 32, 8, 23, 1.0 / (1 << 19)};
    case Format::f16:
      return {"f16", "<f2", 16, 5, 10, 1.0 / (1 << 19)};
    case Format::bf16:
      return {"bf16", "<u2", 16, 8, 7, 1.0 / (1 << 19)};
    case Format::i32:
      return {"i32", "<i4", 32, 0, 31, 0.0};
    case Format::i64:
      return {"i64", "<i8", 64, 0, 63, 0.0};
    case Format::e4m3:
      return {"e4m3", "|u1", 8, 4, 3, 1.0 / (1 << 19), Top::one_nan, true};
    case Format::e5m2:
      return {"e5m2", "|u1", 8, 5, 2, 1.0 / (1 << 19), Top::ieee, true};
    case Format::e2m1:
      return {"e2m1", "|u1", 4, 2, 1, 1.0 / (1 << 19), Top::numbers, true};
    case Format::ue8m0:
      return {"ue8m0", "|u1", 8, 8, 0, 0.0, Top::one_nan, true, false};
    case Format::ue4m3:
      return {"ue4m3", "|u1", 8, 4, 3, 0.0, Top::one_nan, true, false};
  }
  return {"?", "?", 0, 0, 0, 0.0};
}

// Bytes that hold so many elements; the last byte of an odd number of 4-bit elements is half used.
GG_HD constexpr size_t bytes_of(Format format, int64_t elems) {
  const int bits = format_info(format).bits;
  return bits >= 8 ? size_t(elems) * size_t(bits / 8) : (size_t(elems) * size_t(bits) + 7) / 8;
}

GG_HD inline double two_to_the(int exponent) {  // exact for -1022 .. 1023
  const uint64_t bits = uint64_t(exponent + 1023) << 52;
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// floor(log2|x|) of a normal double; -1023 for zero and subnormals.
GG_HD inline int exponent_of(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return int(bits >> 52 & 0x7FF) - 1023;
}

GG_HD inline int least_exponent(const FormatInfo& f) { return 2 - (1 << (f.exponent_bits - 1)); }
GG_HD inline uint32_t infinity_code(const FormatInfo& f) {
  return ((1u << f.exponent_bits) - 1) << f.mantissa_bits;
}
GG_HD inline uint32_t sign_bit(const FormatInfo& f) { return 1u << (f.exponent_bits + f.mantissa_bits); }

// All bits of a code but the sign's; a format without a sign ignores what lies above them.
GG_HD inline uint32_t magnitude_bits(const FormatInfo& f) { return sign_bit(f) - 1; }
GG_HD inline uint32_t largest_code(const FormatInfo& f) {  // of a finite number
  return f.top == Top::ieee ? infinity_code(f) - 1 : magnitude_bits(f) - (f.top == Top::one_nan ? 1 : 0);
}
// The code that NaN becomes. E2M1 has no NaN: it is 6, as cvt.rn.satfinite has it (PTX ISA "cvt").
GG_HD inline uint32_t nan_code(const FormatInfo& f) {
  return f.saturates ? magnitude_bits(f) : infinity_code(f) | 1u << (f.mantissa_bits - 1);
}

GG_HD inline bool is_nan(Format format, uint32_t code) {
  const FormatInfo f = format_info(format);
  const uint32_t magnitude = code & magnitude_bits(f);
  return f.top == Top::ieee ? magnitude > infinity_code(f)
                            : f.top == Top::one_nan && magnitude == magnitude_bits(f);
}

GG_HD inline bool is_infinity(Format format, uint32_t code) {
  const FormatInfo f = format_info(format);
  return f.top == Top::ieee && (code & magnitude_bits(f)) == infinity_code(f);
}

// The value of a code, exactly.
GG_HD inline float decode(Format format, uint32_t code) {
  if (format == Format::bf16) code <<= 16;
  float value;
  if (format == Format::bf16 || format == Format::f32) {
    memcpy(&value, &code, sizeof value);
    return value;
  }
  const FormatInfo f = format_info(format);
  const uint32_t field = code >> f.mantissa_bits & ((1u << f.exponent_bits) - 1);
  const uint32_t fraction = code & ((1u << f.mantissa_bits) - 1);
  uint32_t bits;
  if (is_nan(format, code) || is_infinity(format, code)) {
    bits = 0x7F800000u | (f.top == Top::ieee ? fraction << (23 - f.mantissa_bits) : 1u << 22);
  } else if (field == 0) {
    // UE8M0 has no zero: code 0 is 2^-127, half the least normal f32.
    const double steps = format == Format::ue8m0 ? 0.5 : fraction;
    const float magnitude = float(steps * two_to_the(least_exponent(f) - f.mantissa_bits));
    memcpy(&bits, &magnitude, sizeof bits);
  } else {
    bits = uint32_t(int(field) - 1 + least_exponent(f) + 127) << 23 | fraction << (23 - f.mantissa_bits);
  }
  if (f.has_sign && (code & sign_bit(f))) bits |= 0x80000000u;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// ulp is the distance between neighbouring values of the format at |x|, a power of two; below the
// least normal, the subnormal spacing.
GG_HD inline int ulp_exponent(Format format, double x) {
  const FormatInfo f = format_info(format);
  // The least value of UE8M0 is 2^-127.
  const int least = least_exponent(f) - (format == Format::ue8m0 ? 1 : 0);
  const int exponent = exponent_of(x);
  return (exponent > least ? exponent : least) - f.mantissa_bits;
}
GG_HD inline double ulp(Format format, double x) { return two_to_the(ulp_exponent(format, x)); }

enum class Rounding { nearest_even, toward_zero };

// The power of two next above |x|, or below it with toward_zero; below 2^-127, and of 0, code 0.
GG_HD inline uint32_t encode_ue8m0(double magnitude, Rounding rounding) {
  const int exponent = exponent_of(magnitude);
  if (exponent < -127) return 0;
  const int above = rounding == Rounding::nearest_even && magnitude > two_to_the(exponent) ? 1 : 0;
  const int code = exponent + 127 + above;
  return uint32_t(code < 254 ? code : 254);
}

// The code nearest to x (one rounding, from double). Beyond the largest finite value: infinity, or
// in formats that saturate the largest finite value. NaN: nan_code. Formats without a sign encode
// |x|. UE8M0 never rounds to nearest: the default rounds up, so that a block divided by its scale
// fits the element format.
GG_HD inline uint32_t encode(Format format, double x, Rounding rounding = Rounding::nearest_even) {
  const FormatInfo f = format_info(format);
  if (x != x) return nan_code(f);
  const uint32_t sign = f.has_sign && (x < 0 || (x == 0 && 1 / x < 0)) ? sign_bit(f) : 0;
  const uint32_t beyond = f.saturates ? largest_code(f) : infinity_code(f);
  const double magnitude = x < 0 ? -x : x;
  const int exponent = exponent_of(magnitude);
  if (exponent > 1000) return sign | beyond;
  if (format == Format::ue8m0) return encode_ue8m0(magnitude, rounding);
  // Exact, and below 2^(mantissa_bits + 1).
  const int leading = exponent > least_exponent(f) ? exponent : least_exponent(f);
  const double steps = magnitude * two_to_the(f.mantissa_bits - leading);
  uint32_t count = uint32_t(steps);
  const double rest = steps - count;
  if (rounding == Rounding::nearest_even && (rest > 0.5 || (rest == 0.5 && (count & 1)))) ++count;
  const uint32_t field = uint32_t(leading - least_exponent(f));
  // A normal number's count carries its implicit one: the + 1 that its exponent field lacks here.
  const uint64_t code = (uint64_t(field) << f.mantissa_bits) + count;
  return sign | (code > beyond ? beyond : uint32_t(code));
}

// Loads and stores of one element by index; the formats of a tensor are known only when run. In a
// tensor of 4-bit elements, element 2j is the low half of byte j. A store of one writes its whole
// byte back, so two threads must not store to the two halves of a byte.
GG_HD inline uint32_t load_code(const void* tensor, Format format, int64_t index) {
  switch (format_info(format).bits) {
    case 4:
      return static_cast<const uint8_t*>(tensor)[index / 2] >> (index % 2 * 4) & 0xF;
    case 8:
      return static_cast<const uint8_t*>(tensor)[index];
    case 16:
      return static_cast<const uint16_t*>(tensor)[index];
    default:
      return static_cast<const uint32_t*>(tensor)[index];
  }
}
GG_HD inline void store_code(void* tensor, Format format, int64_t index, uint32_t code) {
  switch (format_info(format).bits) {
    case 4: {
      uint8_t* const byte = static_cast<uint8_t*>(tensor) + index / 2;
      const int shift = int(index % 2 * 4);
      *byte = uint8_t((*byte & ~(0xF << shift)) | (code & 0xF) << shift);
      break;
    }
    case 8:
      static_cast<uint8_t*>(tensor)[index] = uint8_t(code);
      break;
    case 16:
      static_cast<uint16_t*>(tensor)[index] = uint16_t(code);
      break;
    default:
      static_cast<uint32_t*>(tensor)[index] = code;
  }
}

}  // namespace gg
