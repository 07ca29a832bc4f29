// SPDX-License-Identifier: MIT
//
// Codes and values: every code of the 16-bit formats, CUDA's own conversions as the second opinion, and the
// verdict on one element.

#include "common/base/formats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "common/base/random.h"
#include "common/machine/compare.h"
#include "common/types.cuh"

namespace gg {
namespace {

constexpr Format kFormats[] = {Format::f32, Format::f16, Format::bf16};
constexpr Format kNarrow[] = {Format::f16, Format::bf16};
constexpr double kInfinity = std::numeric_limits<double>::infinity();

float float_of(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// CUDA's conversions, which decode and encode share nothing with.
float cuda_decode(Format format, uint32_t code) {
  if (format == Format::f16) return __half2float(__ushort_as_half(uint16_t(code)));
  return __bfloat162float(__ushort_as_bfloat16(uint16_t(code)));
}
uint32_t cuda_encode(Format format, float x) {
  if (format == Format::f16) return __half_as_ushort(__float2half_rn(x));
  return __bfloat16_as_ushort(__float2bfloat16_rn(x));
}

uint32_t infinity(Format format) { return infinity_code(format_info(format)); }
uint32_t sign(Format format) { return sign_bit(format_info(format)); }

TEST(Formats, EveryNarrowCodeMeansWhatCudaSaysAndComesBack) {
  for (Format format : kNarrow) {
    for (uint32_t code = 0; code < 65536; ++code) {
      const float value = decode(format, code), cuda = cuda_decode(format, code);
      ASSERT_EQ(is_nan(format, code), std::isnan(cuda)) << code;
      if (std::isnan(cuda)) {
        ASSERT_TRUE(std::isnan(value)) << code;
        ASSERT_TRUE(is_nan(format, encode(format, value))) << code;
      } else {
        ASSERT_EQ(bits_of(value), bits_of(cuda)) << code;
        ASSERT_EQ(encode(format, value), code);
      }
    }
  }
}

TEST(Formats, FloatCodesComeBack) {
  for (uint64_t code = 0; code < uint64_t(1) << 32; code += 4099) {
    const uint32_t bits = uint32_t(code);
    ASSERT_EQ(bits_of(decode(Format::f32, bits)), bits);
    if (!is_nan(Format::f32, bits)) {
      ASSERT_EQ(encode(Format::f32, float_of(bits)), bits);
    }
  }
}

// All upper halves of a float with the lower halves where rounding turns: just below a tie, the tie, above.
TEST(Formats, NarrowRoundingIsCudas) {
  for (Format format : kNarrow) {
    for (uint32_t upper = 0; upper < 65536; ++upper) {
      for (uint32_t lower : {0x0000, 0x0001, 0x0FFF, 0x1000, 0x1001, 0x2FFF, 0x3000, 0x3001, 0x7FFF, 0x8000,
                             0x8001, 0xF000, 0xFFFF}) {
        const float x = float_of(upper << 16 | lower);
        if (std::isnan(x)) continue;
        ASSERT_EQ(encode(format, x), cuda_encode(format, x)) << std::hexfloat << x;
      }
    }
  }
}

TEST(Formats, SubnormalTiesGoToEven) {
  for (Format format : kNarrow) {
    const double step = ulp(format, 0);
    for (uint32_t n = 0; n < 1u << format_info(format).mantissa_bits; ++n) {
      const float tie = float((n + 0.5) * step);
      ASSERT_EQ(encode(format, tie), n + n % 2);
      ASSERT_EQ(encode(format, std::nextafter(tie, 0.0f)), n);
      ASSERT_EQ(encode(format, -std::nextafter(tie, 1.0f)), sign(format) | (n + 1));
    }
  }
}

// Rounding once from double is what the processor's conversion does.
TEST(Formats, FloatRoundingIsTheProcessors) {
  for (uint64_t i = 0; i < 200000; ++i) {
    const uint64_t bits = hash(1, 0, i);
    const int exponent = int(bits >> 53) % 300 - 160;  // subnormal, normal and beyond the largest float
    double x = std::ldexp(1 + double(bits & 0xFFFFFFFFFFFFF) * 0x1p-52, exponent);
    if (i % 4 == 0)
      x = std::ldexp(std::floor(std::ldexp(x, 24 - exponent)), exponent - 24);  // ties, half of them
    if (bits >> 52 & 1) x = -x;
    ASSERT_EQ(encode(Format::f32, x), bits_of(float(x))) << std::hexfloat << x;
  }
}

TEST(Formats, BeyondTheLargestIsInfinity) {
  for (Format format : kFormats) {
    const uint32_t largest = infinity(format) - 1;
    const double value = decode(format, largest), tie = value + ulp(format, value) / 2;
    EXPECT_EQ(encode(format, std::nextafter(tie, 0)), largest);
    EXPECT_EQ(encode(format, tie), infinity(format));
    EXPECT_EQ(encode(format, -kInfinity), sign(format) | infinity(format));
    EXPECT_EQ(encode(format, 1e300), infinity(format));
    EXPECT_EQ(encode(format, -0.0), sign(format));
    EXPECT_EQ(encode(format, 1e-300), 0u);
    EXPECT_EQ(encode(format, 5e-324), 0u);
  }
}

TEST(Formats, TowardZeroCutsWhatLiesBetween) {
  for (Format format : kNarrow) {
    for (uint32_t code = 0; code + 1 < infinity(format); ++code) {
      const double low = decode(format, code), high = decode(format, code + 1);
      ASSERT_EQ(encode(format, low, Rounding::toward_zero), code);
      ASSERT_EQ(encode(format, low + 0.75 * (high - low), Rounding::toward_zero), code);
      ASSERT_EQ(encode(format, -std::nextafter(high, 0), Rounding::toward_zero), sign(format) | code);
    }
  }
}

TEST(Formats, UlpIsTheDistanceToTheNextCode) {
  for (Format format : kNarrow) {
    for (uint32_t code = 0; code + 1 < infinity(format); ++code) {
      const double low = decode(format, code), high = decode(format, code + 1);
      ASSERT_EQ(ulp(format, low), high - low) << code;
      ASSERT_EQ(ulp(format, -(low + high) / 2), high - low) << code;
    }
  }
  EXPECT_EQ(ulp(Format::f16, 1e-30), 0x1p-24);
  EXPECT_EQ(ulp(Format::bf16, 1e-300), 0x1p-133);
  EXPECT_EQ(ulp(Format::f32, 0), 0x1p-149);
  EXPECT_EQ(ulp(Format::f32, 1.5), 0x1p-23);
}

Limit exact(Format format) { return {format, true, 0, false}; }
Limit bounded(Format format) { return {format, false, 0x1p-19, false}; }

TEST(Judge, NanNeverPassesForANumber) {
  for (Format format : kFormats) {
    for (uint32_t nan : {infinity(format) + 1, sign(format) | (infinity(format) + 1), 2 * sign(format) - 1}) {
      for (Limit limit : {exact(format), bounded(format)}) {
        limit.nan_allowed = true;  // allowed where the reference is NaN, and only there
        for (double reference : {0.0, -1.0, 1e30, kInfinity}) {
          EXPECT_FALSE(judge(nan, reference, 1e30, limit).ok) << reference;
        }
      }
    }
  }
}

TEST(Judge, NanPassesWhereTheReferenceIsNanAndItIsAllowed) {
  for (Format format : kFormats) {
    const uint32_t nan = infinity(format) + 1, one = encode(format, 1.0);
    Limit limit = bounded(format);
    EXPECT_FALSE(judge(nan, NAN, NAN, limit).ok);
    limit.nan_allowed = true;
    EXPECT_TRUE(judge(nan, NAN, NAN, limit).ok);
    EXPECT_FALSE(judge(one, NAN, NAN, limit).ok);
    EXPECT_FALSE(judge(infinity(format), NAN, NAN, limit).ok);
  }
}

TEST(Judge, InfinityIsDemandedExactlyWhereTheReferenceRoundsToIt) {
  for (Format format : kFormats) {
    const uint32_t largest = infinity(format) - 1;
    const double value = decode(format, largest), tie = value + ulp(format, value) / 2;
    for (const Limit& limit : {exact(format), bounded(format)}) {
      const double magnitude = 1e6 * value;  // no limit, however wide, lets a number stand for infinity
      EXPECT_TRUE(judge(infinity(format), tie, magnitude, limit).ok);
      EXPECT_FALSE(judge(largest, tie, magnitude, limit).ok);
      EXPECT_FALSE(judge(sign(format) | infinity(format), tie, magnitude, limit).ok);
      EXPECT_TRUE(judge(largest, std::nextafter(tie, 0), magnitude, limit).ok);
      EXPECT_FALSE(judge(infinity(format), std::nextafter(tie, 0), magnitude, limit).ok);
      EXPECT_FALSE(judge(infinity(format), 1.0, kInfinity, limit).ok);
      EXPECT_TRUE(judge(sign(format) | infinity(format), -kInfinity, kInfinity, limit).ok);
    }
  }
}

TEST(Judge, ExactWantsTheRoundedAnswerBitForBit) {
  for (Format format : kFormats) {
    const double step = ulp(format, 1.0), tie = 1 + step / 2;
    const uint32_t one = encode(format, 1.0);
    EXPECT_TRUE(judge(one, tie, 1e9, exact(format)).ok);
    EXPECT_FALSE(judge(one + 1, tie, 1e9, exact(format)).ok);
    EXPECT_FALSE(judge(one - 1, 1.0, 1e9, exact(format)).ok);
    EXPECT_FALSE(judge(sign(format) | one, 1.0, 1e9, exact(format)).ok);
  }
}

TEST(Judge, BoundedAllowsOneUlpAndItsShareOfTheSum) {
  for (Format format : kFormats) {
    const double step = ulp(format, 1.0);
    const uint32_t one = encode(format, 1.0);
    const Limit limit = bounded(format);
    EXPECT_TRUE(judge(one + 1, 1.0, 0, limit).ok);
    EXPECT_EQ(judge(one + 1, 1.0, 0, limit).ratio, 1.0f);
    EXPECT_FALSE(judge(one + 2, 1.0, 0, limit).ok);
    const double magnitude = step / limit.sum_factor;  // its share is one more ulp
    EXPECT_TRUE(judge(one + 2, 1.0, magnitude, limit).ok);
    EXPECT_FALSE(judge(one + 3, 1.0, magnitude, limit).ok);
    EXPECT_FLOAT_EQ(judge(one + 3, 1.0, magnitude, limit).ratio, 1.5f);
    EXPECT_FLOAT_EQ(judge(one + 3, 1.0, magnitude, limit).factor, float(2.5 * limit.sum_factor));
    EXPECT_EQ(judge(one, 1.0, magnitude, limit).ratio, 0.0f);
  }
}

}  // namespace
}  // namespace gg
