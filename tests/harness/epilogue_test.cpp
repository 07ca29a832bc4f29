// SPDX-License-Identifier: MIT
//
// The arithmetic of epilogues against a model in double that shares no code with it: every formula,
// its order of roundings, and every special value. A product of two f32 is exact in double, so
// (float)(double) rounds once.

#include "common/kernel/epilogue.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "common/harness/base/random.h"
#include "tests/quad.h"

namespace gg::epilogue {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kMost = std::numeric_limits<float>::max();

// ---- the model ----

float rounded(double x) { return float(x); }

// The least power of two that is no less; the spec's table of special values.
int model_scale_code(double x) {
  if (std::isnan(x)) return 255;
  int code = 0;
  while (code < 254 && std::ldexp(1.0, code - 127) < x) ++code;
  return code;
}
float model_raw(float largest, float reciprocal, float norm) {
  return rounded(double(rounded(double(largest) * double(reciprocal))) * double(norm));
}
float model_factor(int code, float norm) {
  if (code == 255) return kNaN;
  // 1 / 2^-127: the operand counts as 0, the result is capped.
  if (code == 0) return norm > 0 ? kMost : kNaN;
  if (code == 254) return std::isinf(norm) ? kNaN : 0.0f;  // 1 / 2^127: the result counts as 0
  return std::min(rounded(double(norm) / std::ldexp(1.0, code - 127)), kMost);
}

// The values of the codes of an FP8 format without sign, counted up to the largest finite one.
std::vector<double> magnitudes(Format format) {
  const bool e4m3 = format == Format::e4m3;
  const int mantissa = e4m3 ? 3 : 2, bias = e4m3 ? 7 : 15;
  std::vector<double> all;
  for (int code = 0; code <= (e4m3 ? 0x7E : 0x7B); ++code) {
    const int field = code >> mantissa, fraction = code & ((1 << mantissa) - 1);
    all.push_back(
        std::ldexp(field ? (1 << mantissa) + fraction : fraction, std::max(field, 1) - bias - mantissa));
  }
  return all;
}
uint32_t model_fp8(Format format, float x) {
  if (std::isnan(x)) return 0x7F;
  const std::vector<double> all = magnitudes(format);
  const double size = std::min(std::fabs(double(x)), all.back());
  uint32_t best = 0;
  for (uint32_t code = 1; code < all.size(); ++code) {
    const double d = std::fabs(all[code] - size), least = std::fabs(all[best] - size);
    if (d < least || (d == least && code % 2 == 0)) best = code;
  }
  return best | (std::signbit(x) ? 0x80 : 0);
}

// Floats of all sizes, and those between which something changes.
std::vector<float> many_floats() {
  std::vector<float> all = {0.0f,      0x1p-149f, 0x1p-128f, 0x1p-127f, 0x1.000002p-127f,
                            0x1p-126f, 0x1p-125f, 1e-3f,     0.5f,      1.0f,
                            448.0f,    449.0f,    464.0f,    465.0f,    57344.0f,
                            61440.0f,  65536,     0x1p125f,  0x1p126f,  0x1p127f,
                            kMost,     kInfinity, kNaN};
  for (int e = -149; e <= 127; ++e) {
    const float power = std::ldexp(1.0f, e);
    for (const float x : {power, std::nextafter(power, 0.0f), std::nextafter(power, kInfinity)})
      all.push_back(x);
  }
  for (uint64_t i = 0; i < 5000; ++i) all.push_back(float_of(uint32_t(hash(3, 0, i)) & 0x7FFFFFFF));
  return all;
}

bool same(float a, float b) { return bits_of(a) == bits_of(b) || (std::isnan(a) && std::isnan(b)); }

// ---- v ----

TEST(Value, WithoutABiasIsTwoProducts) {
  for (uint64_t i = 0; i < 20000; ++i) {
    const float sum = float_of(uint32_t(hash(1, 0, i))), alpha = float_of(uint32_t(hash(1, 1, i))),
                prob = float_of(uint32_t(hash(1, 2, i)));
    const float want = rounded(double(rounded(double(alpha) * double(sum))) * double(prob));
    EXPECT_TRUE(same(value_of(sum, alpha, prob), want)) << sum << " " << alpha << " " << prob;
  }
  // The other order of the same product overflows.
  EXPECT_EQ(value_of(0x1p100f, 0x1p-100f, 0x1p100f), 0x1p100f);
  EXPECT_EQ(value_of(0x1p100f, 0x1p100f, 0x1p-100f), kInfinity);
  EXPECT_TRUE(std::isnan(value_of(kInfinity, 0, 1)));
  EXPECT_TRUE(std::signbit(value_of(-1.0f, 1, 0)));
}

TEST(Value, WithABiasRoundsTheProductAndTheSumOnce) {
  for (uint64_t i = 0; i < 20000; ++i) {
    float of[4];
    for (uint64_t j = 0; j < 4; ++j) {  // from 2^-16 to 2^15: the exact sum has less than 113 bits
      of[j] = float_of((uint32_t(hash(2, j, i)) & 0x807FFFFF) | uint32_t(111 + hash(2, j + 4, i) % 32) << 23);
    }
    const auto [sum, alpha, prob, bias] = of;
    const Quad exact = Quad(alpha) * Quad(sum) + Quad(rounded(double(prob) * double(bias)));
    EXPECT_TRUE(same(value_of(sum, alpha, prob, bias), float(exact)));
  }
  // prob gates the bias alone; 1 + 2^-24 + 2^-48 is lost where the product is rounded by itself.
  EXPECT_EQ(value_of(3, 2, 0, 5), 6.0f);
  EXPECT_EQ(value_of(0x1.000002p0f, 0x1.000002p0f, 1, -0x1.000004p0f), 0x1p-46f);
}

TEST(Value, ABiasIsExact) {
  const float floats[] = {1, -0x1.234568p-3f};
  const bf16 bf16s[] = {from_float<bf16>(2), from_float<bf16>(-0x1.02p-100f)};
  const f16 f16s[] = {from_float<f16>(3), from_float<f16>(0x1p-24f)};
  EXPECT_EQ(bias_of(Format::f32, load_bias(floats, Format::f32, 1)), -0x1.234568p-3f);
  EXPECT_EQ(bias_of(Format::bf16, load_bias(bf16s, Format::bf16, 0)), 2.0f);
  EXPECT_EQ(bias_of(Format::bf16, load_bias(bf16s, Format::bf16, 1)), -0x1.02p-100f);
  EXPECT_EQ(bias_of(Format::f16, load_bias(f16s, Format::f16, 1)), 0x1p-24f);
}

// ---- maxima ----

TEST(Maxima, AreThoseOfTheNumbersAndKeepNaN) {
  const std::vector<float> all = many_floats();
  for (size_t i = 0; i + 1 < all.size(); ++i) {
    const float a = all[i], b = -all[i + 1];
    const float got = float_of(larger(magnitude(a), magnitude(b)));
    EXPECT_TRUE(same(got, std::isnan(a) || std::isnan(b) ? kNaN : std::max(a, -b))) << a << " " << b;
  }
}

TEST(Maxima, AmaxLeavesABlockWithNaNOut) {
  EXPECT_EQ(float_of(amax_with(magnitude(-3), magnitude(2))), 3.0f);
  EXPECT_EQ(float_of(amax_with(magnitude(3), magnitude(-kInfinity))), kInfinity);
  EXPECT_EQ(float_of(amax_with(magnitude(3), magnitude(-kNaN))), 3.0f);
  EXPECT_EQ(amax_with(0, 0x7F800001), 0u);  // the least NaN
  // As integers all magnitudes lie above -infinity, from which amax starts.
  EXPECT_LT(int32_t(bits_of(-kInfinity)), int32_t(0));
}

// ---- scales ----

TEST(ScaleCode, RoundsUp) {
  struct Case {
    float x;
    uint32_t code;
  };
  for (const auto& [x, code] : {Case{0, 0},
                                {0x1p-127f, 0},
                                {0x1.000008p-127f, 1},
                                {1, 0x7F},
                                {1.0000001f, 0x80},
                                {0.66964f, 0x7F},
                                {0.0147321f, 0x79},
                                {0x1p127f, 0xFE},
                                {0x1.8p127f, 0xFE},
                                {kInfinity, 0xFE},
                                {kNaN, 0xFF}}) {
    EXPECT_EQ(ue8m0_above(x), code) << x;
  }
  for (const float x : many_floats()) EXPECT_EQ(int(ue8m0_above(x)), model_scale_code(double(x))) << x;
}

TEST(ScaleCode, AndItsFactorAreThoseOfTheModel) {
  for (const Format d : {Format::e4m3, Format::e5m2}) {
    const float reciprocal = reciprocal_for(d);
    EXPECT_EQ(reciprocal, d == Format::e4m3 ? 1.0f / 448 : 0x1p-7f);
    for (const float norm : {1.0f, 0.01f, 3.7f, 1024.0f, 0x1p-20f}) {
      for (const float largest : many_floats()) {
        const uint32_t code = scale_code(bits_of(largest), reciprocal, norm);
        ASSERT_EQ(int(code), model_scale_code(double(model_raw(largest, reciprocal, norm))))
            << largest << " " << norm;
        ASSERT_TRUE(same(factor_of_code(code, norm), model_factor(int(code), norm))) << code << " " << norm;
      }
    }
  }
  for (uint32_t code = 0; code < 256; ++code) {
    EXPECT_TRUE(same(factor_of_code(code, 0.3f), model_factor(int(code), 0.3f))) << code;
  }
}

// The harness quantises operands with common/kernel/block_scales.h: the same scales.
TEST(ScaleCode, IsTheHarnesss) {
  for (const BlockFormat format : {BlockFormat::mxfp8, BlockFormat::mxfp8_e5m2}) {
    const BlockScaling scaling = block_scaling(format);
    for (const float largest : many_floats()) {
      const uint32_t code = scale_code(bits_of(largest), reciprocal_for(scaling.element), 0.01f);
      EXPECT_EQ(code, scale_of_block(scaling, largest, 0.01f)) << largest;
      EXPECT_TRUE(same(factor_of_code(code, 0.01f), factor_of_block(scaling, code, 0.01f))) << code;
    }
  }
}

// ---- D ----

template <Format D>
void expect_words() {
  const std::vector<float> all = many_floats();
  for (size_t i = 0; i + 4 < all.size(); ++i) {
    const float v[] = {all[i], -all[i + 1], all[i + 2], -all[i + 3]};
    uint32_t want = 0;
    for (int j = 0; j < 4; ++j) want |= model_fp8(D, v[j]) << (8 * j);
    ASSERT_EQ(word_of<D>(v), want) << v[0] << " " << v[1] << " " << v[2] << " " << v[3];
  }
  // Halfway between neighbours: to the even one.
  const std::vector<double> codes = magnitudes(D);
  for (uint32_t code = 0; code + 1 < codes.size(); ++code) {
    const float between = float((codes[code] + codes[code + 1]) / 2);
    const float v[] = {between, std::nextafter(between, 0.0f), std::nextafter(between, kInfinity), -between};
    const uint32_t even = code + code % 2;
    EXPECT_EQ(word_of<D>(v), even | code << 8 | (code + 1) << 16 | (even | 0x80) << 24);
  }
}
TEST(Words, OfFp8Saturate) {
  expect_words<Format::e4m3>();
  expect_words<Format::e5m2>();
}

TEST(Words, OfWiderFormats) {
  const float v[] = {1.0f + 0x1p-9f, -kInfinity, 65520, -0.0f};
  EXPECT_EQ(word_of<Format::f32>(v), 0x3F804000u);
  EXPECT_EQ(word_of<Format::bf16>(v), 0xFF803F80u);
  EXPECT_EQ(word_of<Format::f16>(v), 0xFC003C02u);
  EXPECT_EQ(word_of<Format::f16>(v + 2), 0x80007C00u);
  EXPECT_EQ(VALUES_IN_WORD<Format::f32> + VALUES_IN_WORD<Format::bf16> + VALUES_IN_WORD<Format::e5m2>, 7);
}

// ---- whole blocks ----

struct Block {
  uint32_t code;
  std::vector<uint32_t> d;
};
// A block of 32 as a kernel quantises it.
Block quantised(const std::vector<float>& values, float norm, Format d = Format::e4m3) {
  std::vector<float> v(32, 0.0f);
  std::copy(values.begin(), values.end(), v.begin());
  uint32_t largest = 0;
  for (const float each : v) largest = larger(largest, magnitude(each));
  const uint32_t code = scale_code(largest, reciprocal_for(d), norm);
  const float factor = factor_of_code(code, norm);
  for (float& each : v) each *= factor;
  Block block{code, {}};
  for (int i = 0; i < 32; i += 4) {
    const uint32_t word =
        d == Format::e4m3 ? word_of<Format::e4m3>(&v[size_t(i)]) : word_of<Format::e5m2>(&v[size_t(i)]);
    for (int j = 0; j < 4; ++j) block.d.push_back(word >> (8 * j) & 0xFF);
  }
  return block;
}

TEST(Blocks, AsWorkedOut) {
  struct Case {
    float largest, norm;
    uint32_t code, d;
  };
  for (const auto& [largest, norm, code, d] : {Case{300, 1, 0x7F, 0x79},
                                               {448, 1, 0x7F, 0x7E},
                                               {449, 1, 0x80, 0x76},
                                               {660, 0.01f, 0x79, 0x7D},
                                               {0, 0.01f, 0x00, 0x00}}) {
    const Block block = quantised({-0.0f, largest}, norm);
    EXPECT_EQ(block.code, code) << largest;
    EXPECT_EQ(block.d[1], d) << largest;
    EXPECT_EQ(block.d[0], 0x80u) << "the sign of a zero is kept";
  }
  EXPECT_EQ(factor_of_code(0x79, 0.01f), 0.64f);
  EXPECT_EQ(factor_of_code(0x00, 0.01f), kMost);
}

TEST(Blocks, OfSpecialValues) {
  // raw underflows: the factor is capped, and elements come out too large until they saturate.
  const Block tiny = quantised({0x1p-140f, -0x1p-149f}, 1);
  EXPECT_EQ(tiny.code, 0u);
  EXPECT_EQ(tiny.d[0], model_fp8(Format::e4m3, rounded(0x1p-140 * double(kMost))));
  EXPECT_EQ(tiny.d[1], model_fp8(Format::e4m3, rounded(-0x1p-149 * double(kMost))));
  // raw above 2^126: a factor of 0.
  const Block huge = quantised({0x1p126f, -1}, 1024);
  EXPECT_EQ(huge.code, 0xFEu);
  EXPECT_EQ(huge.d[0], 0x00u);
  EXPECT_EQ(huge.d[1], 0x80u);
  // Infinity times that factor is NaN.
  for (const Format d : {Format::e4m3, Format::e5m2}) {
    const Block infinite = quantised({1, -kInfinity, 2}, 1, d);
    EXPECT_EQ(infinite.code, 0xFEu);
    EXPECT_EQ(infinite.d[0], 0x00u);
    EXPECT_EQ(infinite.d[1], 0x7Fu);
    // NaN in a block: all of it.
    const Block nan = quantised({1, -kNaN, kInfinity}, 0.01f, d);
    EXPECT_EQ(nan.code, 0xFFu);
    for (const uint32_t each : nan.d) EXPECT_EQ(each, 0x7Fu);
  }
}

// Nothing saturates: S is at least raw. And D * S / norm is v but for the rounding of D.
TEST(Blocks, ComeBack) {
  for (const Format d : {Format::e4m3, Format::e5m2}) {
    const std::vector<double> values = magnitudes(d);
    for (uint64_t i = 0; i < 500; ++i) {
      std::vector<float> v(32);
      for (uint64_t j = 0; j < 32; ++j)
        v[j] = float(int(hash(5, i, j) % 2001) - 1000) * std::ldexp(1.0f, int(i % 40) - 20);
      const float norm = i % 2 ? 0.01f : 1.0f;
      const Block block = quantised(v, norm, d);
      const double scale = std::ldexp(1.0, int(block.code) - 127) / double(norm);
      for (size_t j = 0; j < 32; ++j) {
        const double element = values.at(block.d[j] & 0x7F), size = std::fabs(double(v[j]));
        EXPECT_LE(element, d == Format::e4m3 ? 448 : 128);
        const double step = (d == Format::e4m3 ? 0x1p-4 : 0x1p-3) * size, least = values[1] / 2 * scale;
        EXPECT_NEAR(element * scale, size, std::max(step, least) * (1 + 1e-6)) << v[j];
        EXPECT_EQ(block.d[j] >> 7, std::signbit(v[j]) ? 1u : 0u);
      }
    }
  }
}

}  // namespace
}  // namespace gg::epilogue
