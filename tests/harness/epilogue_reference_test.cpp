// SPDX-License-Identifier: MIT
//
// The reference of epilogues on worked examples: numbers computed by hand from the formulas.

#include "common/harness/verify/epilogue_reference.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <cstring>

#include "common/harness/base/random.h"
#include "common/harness/machine/random_operands.h"
#include "common/kernel/block_scales.h"
#include "common/kernel/epilogue_glu.cuh"

namespace gg {
namespace {

Range point(float x) { return {x, x}; }

struct Problem1 {  // one group of one row, and what it is made of
  Epilogue epilogue{};
  Formats formats{Format::e4m3, Format::e4m3, Format::e4m3, BlockFormat::mxfp8};
  EpilogueOperands operands{{1}, {1}, {}, {}};
  Layout layout = packed_layout({{1}, {64}, {32}}, BLayout::nk, BlockFormat::mxfp8);

  EpilogueReference reference() const { return {epilogue, formats, operands, layout}; }
};

TEST(Products, AreExactWhereEveryBitOfThemFits) {
  EXPECT_EQ(lowest_bit(1.0), 0);
  EXPECT_EQ(lowest_bit(-6.0), 1);
  EXPECT_EQ(lowest_bit(0.375), -3);
  EXPECT_GT(lowest_bit(0), 1000);
  EXPECT_TRUE(product_range(5, 16777215, 0).is_point());
  EXPECT_FALSE(product_range(5, 16777216, 0).is_point());
  EXPECT_TRUE(product_range(0.5, 16777215.0 / 4, -2).is_point());
  EXPECT_TRUE(product_range(0, 0, 1 << 20).is_point());
  EXPECT_TRUE(product_range(NAN, NAN, -(1 << 20)).is_nan());
  const Range range = product_range(1, 1024, -60);
  EXPECT_LT(range.lo, 1 - 0.9 * 1024 * 0x1p-19);
  EXPECT_GT(range.hi, 1 + 0.9 * 1024 * 0x1p-19);
}

// Each member of a range, and nothing between them, times each member of another.
TEST(Ranges, OfZeroTimesInfinityAreNanAndNotWhatLiesBetween) {
  const Range tiny = times(Range(-1e-38f, 0), Range(INFINITY));
  EXPECT_TRUE(tiny.nan && tiny.minus && !tiny.plus && !tiny.has_numbers());
  EXPECT_TRUE(fits(0xFF80, Format::bf16, tiny));
  EXPECT_TRUE(fits(0x7FC0, Format::bf16, tiny));
  for (const uint32_t wrong : {0x7F80u, 0x0000u, 0xFF7Fu}) EXPECT_FALSE(fits(wrong, Format::bf16, tiny));
  const Range around = times(Range(INFINITY), Range(-1, 1));
  EXPECT_TRUE(around.nan && around.minus && around.plus && !around.has_numbers());
  EXPECT_TRUE(times(Range(1, 2), Range(INFINITY)).is_point());
  const Range beyond = times(Range(1e38f, 2e38f), Range(2));
  EXPECT_TRUE(beyond.plus && !beyond.nan);
  EXPECT_EQ(beyond.lo, 2e38f);
  EXPECT_EQ(beyond.hi, FLT_MAX);
  Range either(1, 2);
  either.add(-INFINITY);
  const Range added = sum(either, Range(INFINITY));
  EXPECT_TRUE(added.plus && added.nan && !added.minus && !added.has_numbers());
}

TEST(Products, ThatMayOverflowOnTheirWayAreAlsoInfinite) {
  constexpr int kAnyBit = -(1 << 20);
  const Range up = product_range(1e38, 7e38, kAnyBit, {.up = true});
  EXPECT_TRUE(up.plus && !up.minus && !up.nan && up.has_numbers());
  const Range both = product_range(1e38, 9e38, kAnyBit, {true, true});
  EXPECT_TRUE(both.plus && both.minus && both.nan && both.hi < 1.01e38f);
  const Range beyond = product_range(5e38, 5e38, kAnyBit, {.up = true});
  EXPECT_TRUE(beyond.plus && beyond.is_point());
  const Range infinite = product_range(INFINITY, INFINITY, kAnyBit, {true, true});
  EXPECT_TRUE(infinite.plus && infinite.nan && !infinite.minus && !infinite.has_numbers());
}

// An element of a block whose largest magnitude is known, times the factor of its scale.
Range scaled(const EpilogueReference& reference, const Range& v, uint32_t code, const Range& largest) {
  return reference.scaled(v, code, reference.factor(code, largest));
}

// bmax, norm, code, S, q and D of the largest value.
TEST(Scales, OfWorkedBlocks) {
  struct Block {
    float largest, norm;
    uint32_t code;
    float q;
    uint32_t d;
  };
  const Block blocks[] = {{300, 1, 0x7F, 1, 0x79},
                          {448, 1, 0x7F, 1, 0x7E},
                          {449, 1, 0x80, 0.5f, 0x76},
                          {660, 0.01f, 0x79, 0.64f, 0x7D},
                          {0, 0.01f, 0x00, FLT_MAX, 0}};
  for (const Block& block : blocks) {
    Problem1 p;
    p.epilogue.norm_const = block.norm;
    const Codes codes = p.reference().codes(point(block.largest));
    EXPECT_EQ(codes.any(), block.code) << block.largest;
    EXPECT_TRUE(codes.is_one());
    const Range d = scaled(p.reference(), point(block.largest), block.code, point(block.largest));
    EXPECT_EQ(d.lo, block.largest * block.q);
    EXPECT_TRUE(fits(block.d, Format::e4m3, d));
    EXPECT_FALSE(fits(block.d + 1, Format::e4m3, d));
  }
}

TEST(Scales, RoundUp) {
  Problem1 p;
  p.epilogue.norm_const = 1;
  p.formats.d = Format::e5m2;  // RCP is 1/128, a power of two: raw is the largest value over it
  const std::pair<float, uint32_t> codes[] = {{0, 0x00},        {1, 0x7F},          {1.0000001f, 0x80},
                                              {0.66964f, 0x7F}, {0.0147321f, 0x79}, {INFINITY, 0xFE},
                                              {NAN, 0xFF}};
  for (const auto& [raw, code] : codes) EXPECT_EQ(p.reference().codes(point(raw * 128)).any(), code) << raw;
  p.epilogue.norm_const = 0x1p-60f;  // raw is 2^-67 of the largest value
  const std::pair<float, uint32_t> small[] = {{0x1p-60f, 0}, {0x1.000002p-60f, 0}, {0x1.8p-60f, 1},
                                              {0x1p-59f, 1}, {0x1.000002p-59f, 2}, {0x1p-58f, 2}};
  for (const auto& [largest, code] : small)
    EXPECT_EQ(p.reference().codes(point(largest)).any(), code) << largest;
}

TEST(Scales, NearAPowerOfTwoPassBothWaysWhereTheProductIsNotExact) {
  Problem1 p;
  p.epilogue.norm_const = 1;
  p.formats.d = Format::e5m2;
  const Codes both = p.reference().codes({127.99999f, 128.00002f});
  EXPECT_EQ(both.least, 0x7Fu);
  EXPECT_EQ(both.most, 0x80u);
  EXPECT_TRUE(p.reference().codes({127, 127.00001f}).is_one());
}

TEST(SpecialValues, OfABlock) {
  Problem1 p;
  p.epilogue.norm_const = 0.5f;
  const EpilogueReference reference = p.reference();
  const Range with_inf[] = {point(1), point(INFINITY)}, with_nan[] = {point(NAN), point(2)};
  Range largest = reference.largest(with_inf, 1, 2);
  EXPECT_TRUE(reference.codes(largest).has(0xFE));
  EXPECT_FALSE(reference.codes(largest).has(0xFF));
  EXPECT_EQ(scaled(reference, point(1), 0xFE, largest).lo, 0);
  EXPECT_TRUE(fits(0x7F, Format::e4m3, scaled(reference, point(INFINITY), 0xFE, largest)));
  largest = reference.largest(with_nan, 1, 2);
  EXPECT_TRUE(reference.codes(largest).has(0xFF));
  EXPECT_FALSE(reference.codes(largest).has(0xFE));
  EXPECT_TRUE(scaled(reference, point(2), 0xFF, largest).is_nan());
  // Exactly 0x7F.
  EXPECT_FALSE(fits(0xFF, Format::e4m3, scaled(reference, point(2), 0xFF, largest)));
}

TEST(Zero, HasEitherSignOnlyWhereTheValueMayBeZero) {
  EXPECT_TRUE(fits(0x80, Format::e4m3, point(0)));
  EXPECT_TRUE(fits(0x00, Format::e4m3, point(-0.0f)));
  EXPECT_TRUE(fits(0x80, Format::e4m3, point(-1e-9f)));
  EXPECT_FALSE(fits(0x00, Format::e4m3, point(-1e-9f)));
  EXPECT_FALSE(fits(0x00, Format::e4m3, point(1)));
}

TEST(Values, WithABiasAreAnyContraction) {
  Problem1 p;
  p.epilogue = {.op = Operator::quant, .bias = true, .bias_format = Format::f32};
  p.operands.alpha = {1.1f};
  p.operands.prob = {0.7f};
  const float bias = 3.3f;
  p.operands.bias.resize(64 * 4);
  std::memcpy(p.operands.bias.data(), &bias, 4);
  const Range v = p.reference().value(point(7), 0, 0, 0);
  for (const float each :
       {std::fma(1.1f, 7.0f, 0.7f * 3.3f), 1.1f * 7.0f + 0.7f * 3.3f, std::fma(0.7f, 3.3f, 1.1f * 7.0f)}) {
    EXPECT_LE(v.lo, each);
    EXPECT_GE(v.hi, each);
  }
  EXPECT_LT(v.hi - v.lo, 4e-6f);
}

TEST(Activations, OfWorkedExamples) {
  Problem1 p;
  p.epilogue.op = Operator::glu_hadamard;
  p.operands.prob = {0.5f};
  const Range x = p.reference().activated(point(1), point(2), 0, 0);
  EXPECT_NEAR(x.lo, 0.7310586f, 1e-6);
  EXPECT_LE(x.lo, 0.7310586f);
  EXPECT_GE(x.hi, 0.7310585f);
  p.epilogue.activation = Activation::geglu;
  p.operands.prob = {1};
  EXPECT_NEAR(p.reference().activated(point(8), point(-9), 0, 0).hi, -41.99972f, 1e-4);
  p.epilogue.activation = Activation::swiglu;
  const Range saturated = p.reference().activated(point(21), point(1), 0, 0);
  EXPECT_EQ(saturated.lo, 21);
  EXPECT_EQ(saturated.hi, 21);
  EXPECT_EQ(p.reference().activated(point(-90), point(1), 0, 0).hi, 0);
  EXPECT_TRUE(p.reference().activated(point(-INFINITY), point(1), 0, 0).is_nan());
}

TEST(Columns, OfGateAndUp) {
  const Problem1 p;
  EXPECT_EQ(p.reference().gate_column(33, 128), 65);
  EXPECT_EQ(p.reference().up_column(33, 128), 97);
}

TEST(Transform, OfWorkedExamples) {
  Problem1 p;
  p.epilogue.op = Operator::glu_hadamard;
  p.operands.hadamard = sylvester_matrix();
  Range x[16], y[16];
  for (int i = 0; i < 16; ++i) x[i] = point(float(i));
  p.reference().transformed(x, y);
  const float wanted[16] = {120, -8, -16, 0, -32, 0, 0, 0, -64};
  for (int i = 0; i < 16; ++i) {
    EXPECT_LE(y[i].lo, wanted[i]);
    EXPECT_GE(y[i].hi, wanted[i]);
    EXPECT_LT(y[i].hi - y[i].lo, 3e-4f);
  }
  for (int i = 0; i < 16; ++i) x[i] = point(i == 1 ? 1 : 0);
  p.reference().transformed(x, y);
  for (int i = 0; i < 16; ++i) EXPECT_NEAR(y[i].lo, i % 2 ? -1 : 1, 1e-5);
  // W is not its own transpose: Y_j is the sum over i of X_i W_ji.
  p.operands.hadamard.assign(256, 0);
  p.operands.hadamard[3 * 16 + 1] = uint16_t(encode(Format::bf16, 5));
  p.reference().transformed(x, y);
  EXPECT_NEAR(y[3].lo, 5, 1e-4);
  EXPECT_NEAR(y[1].lo, 0, 1e-4);
  x[7] = point(NAN);
  p.reference().transformed(x, y);
  for (int i = 0; i < 16; ++i) EXPECT_TRUE(y[i].is_nan());
}

// Whatever the butterfly of the kernels makes of any X is right with `butterfly`, and the sum
// of 16 products at once is right in both forms; the butterfly's own NaN and infinities are
// not right without.
TEST(Transform, OfLargeValuesIsWhatItsFormMakesOfThem) {
  Problem1 p;
  p.epilogue.op = Operator::glu_hadamard;
  p.operands.hadamard = sylvester_matrix();
  const float values[] = {0,      1,        -1,        2.4e38f, -2.4e38f, 0.96e38f,
                          -1e38f, INFINITY, -INFINITY, NAN,     3e38f,    -3e38f};
  int only_of_the_butterfly = 0;
  for (uint64_t draw = 0; draw < 4000; ++draw) {
    // All; no infinity; fewer signs.
    const uint64_t kinds = draw % 3 == 0 ? 12 : draw % 3 == 1 ? 7 : 5;
    float v[16];
    Range x[16], of_tensor[16], of_butterfly[16];
    for (uint64_t i = 0; i < 16; ++i) {
      v[i] = hash(draw, 2, i) % 3 ? 0 : values[hash(draw, 1, i) % kinds];
      v[i] = decode(Format::bf16, encode(Format::bf16, double(v[i])));
      x[i] = Range(v[i]);
    }
    double sums[16] = {};
    for (int j = 0; j < 16; ++j)
      for (int i = 0; i < 16; ++i) sums[j] += double(epilogue::hadamard(j, i)) * double(v[i]);
    epilogue::hadamard_butterfly(v);
    p.epilogue.butterfly = false;
    p.reference().transformed(x, of_tensor);
    p.epilogue.butterfly = true;
    p.reference().transformed(x, of_butterfly);
    for (int j = 0; j < 16; ++j) {
      const uint32_t got = encode(Format::f32, double(v[j])), at_once = encode(Format::f32, sums[j]);
      EXPECT_TRUE(fits(got, Format::f32, of_butterfly[j])) << draw << " " << j << ": " << v[j];
      EXPECT_TRUE(fits(at_once, Format::f32, of_butterfly[j])) << draw << " " << j << ": " << sums[j];
      EXPECT_TRUE(fits(at_once, Format::f32, of_tensor[j])) << draw << " " << j << ": " << sums[j];
      if (std::isfinite(sums[j])) {
        EXPECT_FALSE(of_tensor[j].nan) << draw << " " << j;
      }
      only_of_the_butterfly += !fits(got, Format::f32, of_tensor[j]);
      EXPECT_EQ(of_butterfly[j].nan && !of_tensor[j].nan, v[j] != v[j] && sums[j] == sums[j]);
    }
  }
  EXPECT_GT(only_of_the_butterfly, 1000);
}

}  // namespace
}  // namespace gg
