// SPDX-License-Identifier: MIT
//
// Codes and values: every code of the formats of 4, 8 and 16 bits, with CUDA's own conversions and
// a search over all values as second opinions, and the verdict on one element.

#include "common/kernel/formats.h"

#include <cuda_fp4.h>
#include <cuda_fp8.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "common/harness/base/random.h"
#include "common/harness/machine/element_check.h"
#include "common/kernel/types.cuh"

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

// All upper halves of a float with the lower halves where rounding turns: just below a tie,
// the tie, above.
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
    // Subnormal, normal and beyond the largest float.
    const int exponent = int(bits >> 53) % 300 - 160;
    double x = std::ldexp(1 + double(bits & 0xFFFFFFFFFFFFF) * 0x1p-52, exponent);
    // Ties, half of them.
    if (i % 4 == 0) x = std::ldexp(std::floor(std::ldexp(x, 24 - exponent)), exponent - 24);
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

// The formats of block scaling.

constexpr Format kTiny[] = {Format::e4m3, Format::e5m2, Format::e2m1, Format::ue8m0, Format::ue4m3};
constexpr Format kTinyElements[] = {Format::e4m3, Format::e5m2, Format::e2m1};
constexpr float kHuge = std::numeric_limits<float>::max();

// A format as the tables of the specifications give it, apart from formats.h.
struct Model {
  Format format;
  int codes, exponent_bits, mantissa_bits, bias;
  bool sign;
  uint32_t largest, nan;  // codes; nan is what NaN becomes

  int magnitudes() const { return sign ? codes / 2 : codes; }
  double value(uint32_t code) const {  // of a magnitude that is a finite number
    if (format == Format::ue8m0) return std::ldexp(1.0, int(code) - 127);
    const int field = int(code >> mantissa_bits), fraction = int(code) & ((1 << mantissa_bits) - 1);
    if (field == 0) return std::ldexp(double(fraction), 1 - bias - mantissa_bits);
    return std::ldexp(double((1 << mantissa_bits) + fraction), field - bias - mantissa_bits);
  }
  // The magnitude's code: the nearest of all values, the even one of two as near; for UE8M0 the
  // next above. A magnitude beyond them all saturates.
  uint32_t rounded(double magnitude) const {
    if (magnitude > value(largest)) return largest;
    uint32_t best = 0;
    double distance = std::fabs(magnitude - value(0));
    for (uint32_t code = 1; code <= largest; ++code) {
      const double here = std::fabs(magnitude - value(code));
      if (format == Format::ue8m0 ? value(best) < magnitude
                                  : here < distance || (here == distance && code % 2 == 0)) {
        best = code;
        distance = here;
      }
    }
    return best;
  }
};
const Model kModels[] = {
    {Format::e4m3, 256, 4, 3, 7, true, 0x7E, 0x7F},   {Format::e5m2, 256, 5, 2, 15, true, 0x7B, 0x7F},
    {Format::e2m1, 16, 2, 1, 1, true, 0x7, 0x7},      {Format::ue8m0, 256, 8, 0, 127, false, 0xFE, 0xFF},
    {Format::ue4m3, 128, 4, 3, 7, false, 0x7E, 0x7F},
};

TEST(TinyFormats, EveryCodeMeansWhatTheTablesSayAndComesBack) {
  for (const Model& model : kModels) {
    const FormatInfo f = format_info(model.format);
    EXPECT_EQ(largest_code(f), model.largest) << f.name;
    EXPECT_EQ(nan_code(f), model.nan) << f.name;
    for (uint32_t code = 0; code < uint32_t(model.codes); ++code) {
      const uint32_t magnitude = code % uint32_t(model.magnitudes());
      const float value = decode(model.format, code);
      if (magnitude > model.largest) {
        const bool infinite = model.format == Format::e5m2 && magnitude == 0x7C;
        EXPECT_EQ(is_nan(model.format, code), !infinite) << f.name << " " << code;
        EXPECT_EQ(is_infinity(model.format, code), infinite) << f.name << " " << code;
        EXPECT_EQ(std::isnan(value), !infinite) << f.name << " " << code;
        EXPECT_EQ(std::isinf(value), infinite) << f.name << " " << code;
        continue;
      }
      EXPECT_FALSE(is_nan(model.format, code) || is_infinity(model.format, code)) << f.name << " " << code;
      const double wanted = code == magnitude ? model.value(code) : -model.value(magnitude);
      EXPECT_EQ(bits_of(value), bits_of(float(wanted))) << f.name << " " << code;
      EXPECT_EQ(encode(model.format, value), code) << f.name;
    }
  }
}

TEST(TinyFormats, RoundAsASearchOverAllValuesDoesAtEveryBoundary) {
  for (const Model& model : kModels) {
    std::vector<float> points = {0.0f, kHuge, std::numeric_limits<float>::min(),
                                 std::numeric_limits<float>::denorm_min()};
    for (uint32_t code = 0; code < model.largest; ++code) {
      const double low = model.value(code), high = model.value(code + 1);
      points.insert(points.end(), {float(low), float((low + high) / 2), float(high)});
    }
    const double top = model.value(model.largest), step = top - model.value(model.largest - 1);
    if (top + step < double(kHuge)) points.insert(points.end(), {float(top + step / 2), float(top + step)});
    for (const float point : points) {
      for (const float x : {point, std::nextafter(point, 0.0f), std::nextafter(point, kHuge)}) {
        const uint32_t wanted = model.rounded(double(x));
        ASSERT_EQ(encode(model.format, x), wanted) << format_info(model.format).name << " " << x;
        ASSERT_EQ(encode(model.format, -x), wanted | (model.sign ? uint32_t(model.magnitudes()) : 0u))
            << format_info(model.format).name << " " << -x;
      }
    }
    for (const double x : {double(INFINITY), 1e300}) EXPECT_EQ(encode(model.format, x), model.largest);
    for (const float nan : {NAN, -NAN}) EXPECT_EQ(encode(model.format, nan), model.nan);
  }
}

uint32_t cuda_encode_tiny(Format format, float x) {
  switch (format) {
    case Format::e4m3:
      return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3);
    case Format::e5m2:
      return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E5M2);
    case Format::e2m1:
      return __nv_cvt_float_to_fp4(x, __NV_E2M1, cudaRoundNearest);
    case Format::ue4m3:
      return __nv_cvt_float_to_fp8(std::fabs(x), __NV_SATFINITE, __NV_E4M3);
    default:
      return __nv_cvt_float_to_e8m0(x, __NV_SATFINITE, cudaRoundPosInf);
  }
}

// All upper halves of a float, the lower halves at both ends and around the middle; and what
// rounding turns on in formats with few bits lies in the upper half.
TEST(TinyFormats, RoundAsCudaDoes) {
  for (Format format : kTiny) {
    for (uint32_t upper = 0; upper < 65536; ++upper) {
      for (uint32_t lower : {0x0000, 0x0001, 0x7FFF, 0x8000, 0x8001, 0xFFFF}) {
        const float x = float_of(upper << 16 | lower);
        const uint32_t cuda = cuda_encode_tiny(format, x);
        ASSERT_EQ(encode(format, x), cuda) << format_info(format).name << " " << std::hexfloat << x;
      }
    }
  }
}

TEST(TinyFormats, CodesMeanWhatCudaSays) {
  for (uint32_t code = 0; code < 256; ++code) {
    const auto storage = static_cast<unsigned char>(code);
    const __half e4m3(__nv_cvt_fp8_to_halfraw(storage, __NV_E4M3)),
        e5m2(__nv_cvt_fp8_to_halfraw(storage, __NV_E5M2));
    const __nv_bfloat16 e8m0(__nv_cvt_e8m0_to_bf16raw(storage));
    const auto same = [](float x, float y) {
      return std::isnan(x) ? std::isnan(y) : bits_of(x) == bits_of(y);
    };
    EXPECT_TRUE(same(decode(Format::e4m3, code), __half2float(e4m3))) << code;
    EXPECT_TRUE(same(decode(Format::e5m2, code), __half2float(e5m2))) << code;
    EXPECT_TRUE(same(decode(Format::ue8m0, code), __bfloat162float(e8m0))) << code;
    EXPECT_TRUE(same(decode(Format::ue4m3, code), std::fabs(__half2float(e4m3)))) << code;
    if (code < 16) {
      const __half e2m1(__nv_cvt_fp4_to_halfraw(storage, __NV_E2M1));
      EXPECT_TRUE(same(decode(Format::e2m1, code), __half2float(e2m1))) << code;
    }
  }
}

TEST(TinyFormats, E2m1HasEightMagnitudesAndItsTiesGoToEven) {
  const float magnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (uint32_t code = 0; code < 8; ++code) {
    EXPECT_EQ(decode(Format::e2m1, code), magnitudes[code]);
    EXPECT_EQ(bits_of(decode(Format::e2m1, code | 8)), bits_of(-magnitudes[code]));
  }
  const float ties[][2] = {{0.25, 0}, {0.75, 1}, {1.25, 1}, {1.75, 2}, {2.5, 2}, {3.5, 4}, {5, 4}};
  for (const auto& [tie, value] : ties) {
    EXPECT_EQ(decode(Format::e2m1, encode(Format::e2m1, tie)), value) << tie;
    EXPECT_EQ(decode(Format::e2m1, encode(Format::e2m1, -tie)), -value) << tie;
  }
  EXPECT_EQ(encode(Format::e2m1, std::nextafter(5.0f, 6.0f)), 7u);
}

TEST(TinyFormats, Ue8m0RoundsUp) {
  const std::pair<float, uint32_t> cases[] = {
      {0.0f, 0x00},
      {0x1p-127f, 0x00},
      {std::nextafter(0x1p-127f, 1.0f), 0x01},
      {0x1p-126f, 0x01},
      {std::nextafter(0x1p-126f, 1.0f), 0x02},
      {1.0f, 0x7F},
      {1.0000001f, 0x80},
      {0.66964f, 0x7F},
      {0.0147321f, 0x79},
      {0x1p127f, 0xFE},
      {kHuge, 0xFE},
      {INFINITY, 0xFE},
      {NAN, 0xFF},
  };
  for (const auto& [x, code] : cases) {
    EXPECT_EQ(encode(Format::ue8m0, x), code) << std::hexfloat << x;
    EXPECT_EQ(encode(Format::ue8m0, -x), code) << std::hexfloat << x;
  }
  EXPECT_EQ(bits_of(decode(Format::ue8m0, 0)), 0x00400000u);
  EXPECT_EQ(encode(Format::ue8m0, 1.99f, Rounding::toward_zero), 0x7Fu);
}

TEST(TinyFormats, TowardZeroCutsWhatLiesBetween) {
  for (const Model& model : kModels) {
    for (uint32_t code = 0; code < model.largest; ++code) {
      const double low = model.value(code), high = model.value(code + 1);
      ASSERT_EQ(encode(model.format, low, Rounding::toward_zero), code);
      ASSERT_EQ(encode(model.format, low + 0.75 * (high - low), Rounding::toward_zero), code);
    }
  }
}

TEST(TinyFormats, UlpIsTheDistanceToTheNextCode) {
  for (const Model& model : kModels) {
    for (uint32_t code = 0; code < model.largest; ++code) {
      const double low = model.value(code), high = model.value(code + 1);
      ASSERT_EQ(ulp(model.format, low), high - low) << format_info(model.format).name << " " << code;
      ASSERT_EQ(ulp(model.format, -(low + high) / 2), high - low);
    }
  }
}

TEST(Elements, OfEachWidthAreStoredAndLoadedByIndex) {
  for (Format format : {Format::f32, Format::f16, Format::e4m3, Format::ue8m0, Format::e2m1}) {
    constexpr int64_t kElems = 37;
    const int bits = format_info(format).bits;
    std::vector<uint8_t> memory(bytes_of(format, kElems) + 1, 0xA5);
    ASSERT_EQ(bytes_of(format, kElems), size_t((kElems * bits + 7) / 8));
    const uint32_t mask = bits == 32 ? 0xFFFFFFFFu : (1u << bits) - 1;
    const auto code = [&](int64_t i) { return uint32_t(hash(5, 0, uint64_t(i))) & mask; };
    // Odd elements before even ones: neither may disturb the other.
    for (const int64_t first : {1, 0}) {
      for (int64_t i = first; i < kElems; i += 2) store_code(memory.data(), format, i, code(i));
    }
    for (int64_t i = 0; i < kElems; ++i) EXPECT_EQ(load_code(memory.data(), format, i), code(i)) << bits;
    EXPECT_EQ(memory.back(), 0xA5) << bits;
  }
}

TEST(Elements, TheEvenOneOfTwoInAByteIsTheLowHalf) {
  uint8_t byte = 0;
  store_code(&byte, Format::e2m1, 0, encode(Format::e2m1, 1.0));
  store_code(&byte, Format::e2m1, 1, encode(Format::e2m1, -3.0));
  EXPECT_EQ(byte, 0xD2);
  const __nv_fp4x2_storage_t cuda = __nv_cvt_float2_to_fp4x2({1.0f, -3.0f}, __NV_E2M1, cudaRoundNearest);
  EXPECT_EQ(byte, cuda);
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
      // No limit, however wide, lets a number stand for infinity.
      const double magnitude = 1e6 * value;
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

// Formats that saturate: a reference beyond the largest value asks for the largest, never for
// infinity or NaN.
TEST(Judge, SaturatingFormatsWantTheirLargestValue) {
  for (Format format : kTinyElements) {
    const FormatInfo f = format_info(format);
    const uint32_t largest = largest_code(f);
    const double value = decode(format, largest), step = value - decode(format, largest - 1);
    for (const double reference : {value, 2 * value, 1e30, double(INFINITY)}) {
      EXPECT_TRUE(judge(largest, reference, 0, exact(format)).ok) << f.name;
      EXPECT_FALSE(judge(largest - 1, reference, 0, exact(format)).ok) << f.name;
      EXPECT_TRUE(judge(largest, reference, 0, bounded(format)).ok) << f.name;
      EXPECT_TRUE(judge(largest - 1, reference, 0, bounded(format)).ok) << f.name;
      EXPECT_EQ(judge(largest - 1, reference, 0, bounded(format)).ratio, float(step / ulp(format, value)));
      EXPECT_FALSE(judge(largest - 2, reference, 0, bounded(format)).ok) << f.name;
      EXPECT_TRUE(judge(sign(format) | largest, -reference, 0, exact(format)).ok) << f.name;
      for (uint32_t code = largest + 1; code < sign(format); ++code) {  // infinity and NaN
        EXPECT_FALSE(judge(code, reference, 1e30, bounded(format)).ok) << f.name << " " << code;
      }
    }
  }
}

}  // namespace
}  // namespace gg
