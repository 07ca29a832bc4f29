// SPDX-License-Identifier: MIT
//
// The gated activations and the Hadamard transform on registers, against models in double.

#include "common/kernel/epilogue_glu.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>
#include <random>

namespace gg::epilogue {
namespace {

constexpr float kInf = INFINITY, kNan = NAN, kMax = std::numeric_limits<float>::max();

// ---- the scaled sum ----

TEST(Scaled, RoundsOnce) {
  const float alpha = 1 + 0x1p-12f, sum = 1 - 0x1p-12f;  // their product is 1 - 2^-24
  EXPECT_EQ(scaled(sum, alpha), 1 - 0x1p-24f);
  EXPECT_EQ(scaled(3 * sum, alpha, -3), -3 * 0x1p-24f);  // 3 (1 - 2^-24) has 26 bits
  EXPECT_TRUE(std::signbit(scaled(-0.0f, 1)));
  EXPECT_EQ(scaled(kInf, 1, 1), kInf);
  EXPECT_TRUE(std::isnan(scaled(kInf, 1, -kInf)));
  EXPECT_TRUE(std::isnan(scaled(kInf, 0)));
}

// ---- sigma ----

double exact_sigma(double t) { return 1 / (1 + std::exp(-t)); }

double sigma_error(double t) {  // relative
  const double s = exact_sigma(t);
  return (1 - s) * (std::fabs(t) * 0x1p-22 + 0x1p-21) + 0x1p-21;
}

TEST(Sigma, StaysWithinItsError) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> near(-87, 25), close(-1, 1);
  for (int i = 0; i < 100000; ++i) {
    const float t = i % 2 ? near(random) : close(random);
    ASSERT_NEAR(sigma(t), exact_sigma(t), sigma_error(t) * exact_sigma(t)) << t;
  }
}

TEST(Sigma, IsExactWhereItMustBe) {
  for (const float t : {20.0f, 20.5f, 88.0f, 1e4f, kMax, kInf}) EXPECT_EQ(sigma(t), 1) << t;
  for (const float t : {-87.5f, -88.0f, -89.5f, -104.0f, -1e4f, -kMax, -kInf}) {
    EXPECT_EQ(sigma(t), 0) << t;
    EXPECT_FALSE(std::signbit(sigma(t))) << t;
  }
  for (const float t : {0.0f, -0.0f, 1e-45f, -1e-45f}) EXPECT_EQ(sigma(t), 0.5f) << t;
  EXPECT_TRUE(std::isnan(sigma(kNan)));
}

// ---- activations ----

struct Model {
  float x;
  double error;  // relative
};
Model model(float gate, float up, float prob, bool geglu) {
  if (geglu) {
    if (gate > 7) gate = 7;
    if (up > 7) up = 7;
    if (up < -7) up = -7;
  }
  const float t = geglu ? float(1.702 * gate) : gate, factor = geglu ? up + 1 : up;
  double s = exact_sigma(t);
  if (s < 0x1p-126) s = 0;
  const float gated = float(gate * s), product = float(double(gated) * factor);
  return {float(double(product) * prob), (std::isfinite(t) ? sigma_error(t) : 0) + 0x1p-21};
}

void expect_model(float gate, float up, float prob, bool is_geglu) {
  const float got = is_geglu ? geglu(gate, up, prob) : swiglu(gate, up, prob);
  const auto [want, error] = model(gate, up, prob, is_geglu);
  const auto say = [&] {
    return testing::Message() << (is_geglu ? "geglu" : "swiglu") << " of gate " << gate << ", up " << up
                              << ", prob " << prob << ": " << got << " for " << want;
  };
  if (std::isnan(want)) {
    EXPECT_TRUE(std::isnan(got)) << say();
  } else if (want == 0 || std::isinf(want)) {
    EXPECT_EQ(got, want) << say();
    EXPECT_EQ(std::signbit(got), std::signbit(want)) << say();
  } else {
    // A product below 2^-126 was rounded to a multiple of 2^-149, before it was multiplied again.
    const double least =
        0x1p-149 * std::max(1.0, std::fabs(double(up) + 1)) * std::max(1.0, std::fabs(double(prob)));
    EXPECT_LE(std::fabs(double(got) - want), error * std::fabs(double(want)) + least) << say();
  }
}

TEST(Activations, FollowTheModelOnRandomNumbers) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal(0, 6);
  for (int i = 0; i < 100000; ++i) expect_model(normal(random), normal(random), normal(random), i % 2);
}

TEST(Activations, FollowTheModelOnSpecialValues) {
  const float special[] = {0,         -0.0f,  1,    -1,    0.5f,   7,     std::nextafter(7.0f, 8.0f),
                           -7,        -7.5f,  8,    -9,    20,     -20,   -87,
                           -88,       -90,    1e4f, -1e4f, 1e-30f, 1e30f, -1e30f,
                           0x1p-126f, 1e-45f, kMax, -kMax, kInf,   -kInf, kNan};
  for (const float gate : special) {
    for (const float up : special) {
      for (const float prob : special) {
        expect_model(gate, up, prob, false);
        expect_model(gate, up, prob, true);
      }
    }
  }
}

TEST(Activations, WorkedExamples) {
  EXPECT_NEAR(swiglu(1, 2, 0.5f), 0.7310586, 3e-7);
  EXPECT_EQ(to_float(from_float<bf16>(swiglu(1, 2, 0.5f))), 0.73046875f);
  EXPECT_NEAR(geglu(8, -9, 1), -41.99972, 2e-5);  // without clamps it would be -63.99992
  EXPECT_EQ(geglu(7, -7, 1), geglu(8, -9, 1));
  EXPECT_EQ(geglu(-30, 7, 1), geglu(-30, 100, 1));
  EXPECT_NE(geglu(-30, 1, 1), geglu(-7, 1, 1));  // a gate has no lower clamp
  EXPECT_TRUE(std::isnan(geglu(kNan, 1, 1)));
  EXPECT_TRUE(std::isnan(geglu(1, kNan, 1)));
  EXPECT_TRUE(std::isnan(swiglu(-kInf, 1, 1)));
  EXPECT_TRUE(std::signbit(swiglu(-1000, 1, 1)));  // -0
  EXPECT_EQ(swiglu(-1000, 1, 1), 0);
}

// Where sigma is 1, or taken as it is, x is a chain of f32 roundings, whose order can be seen.
TEST(Activations, RoundEachProductInTheirOrder) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> large(20, 40);
  std::normal_distribution<float> numbers(0, 3);
  const auto any = [&] { return std::clamp(numbers(random), -7.0f, 7.0f); };
  int others = 0, fused = 0;
  for (int i = 0; i < 10000; ++i) {
    const float gate = large(random), up = any(), prob = any();
    const float gated = gate * up;
    ASSERT_EQ(swiglu(gate, up, prob), gated * prob);
    const float late = up * prob;
    others += gated * prob != gate * late;

    const float small = any(), t = 1.702f * small, factor = up + 1;
    const float first = small * sigma(t), second = first * factor;
    ASSERT_EQ(geglu(small, up, prob), second * prob);
    fused += second != std::fma(first, up, first);
  }
  EXPECT_GT(others, 1000);
  EXPECT_GT(fused, 100);
}

TEST(GluColumns, GatesAndUpsTakeTurns) {
  EXPECT_EQ(gate_column(0), 0);
  EXPECT_EQ(up_column(0), 32);
  EXPECT_EQ(gate_column(31), 31);
  EXPECT_EQ(gate_column(32), 64);
  EXPECT_EQ(up_column(95), 191);
}

// ---- the Hadamard transform ----

TEST(Hadamard, MatrixIsSylvesters) {
  for (int j = 0; j < HADAMARD_SIZE; ++j) {
    for (int i = 0; i < HADAMARD_SIZE; ++i) {
      EXPECT_EQ(hadamard(j, i), std::popcount(unsigned(i & j)) % 2 ? -1 : 1);
      float square = 0;
      for (int k = 0; k < HADAMARD_SIZE; ++k) square += hadamard(j, k) * hadamard(k, i);
      EXPECT_EQ(square, i == j ? 16 : 0);
    }
  }
  for (int i = 0; i < HADAMARD_SIZE; ++i) EXPECT_EQ(hadamard(3, i), (i % 4 == 1 || i % 4 == 2) ? -1 : 1);
}

TEST(Hadamard, WorkedExamples) {
  float x[HADAMARD_SIZE], unit[HADAMARD_SIZE] = {0, 1};
  for (int i = 0; i < HADAMARD_SIZE; ++i) x[i] = float(i);
  hadamard_butterfly(x);
  hadamard_butterfly(unit);
  const float want[HADAMARD_SIZE] = {120, -8, -16, 0, -32, 0, 0, 0, -64};
  for (int j = 0; j < HADAMARD_SIZE; ++j) {
    EXPECT_EQ(x[j], want[j]) << j;
    EXPECT_EQ(unit[j], j % 2 ? -1 : 1) << j;
  }
}

TEST(Hadamard, TakesPairsOfBf16) {
  uint32_t words[HADAMARD_SIZE / 2];
  float x[HADAMARD_SIZE], y[HADAMARD_SIZE + 1];
  y[HADAMARD_SIZE] = 99;
  for (int i = 0; i < HADAMARD_SIZE; ++i) x[i] = float(i * i) - 100;  // bf16 has them all
  for (int i = 0; i < HADAMARD_SIZE; i += 2)
    words[i / 2] = std::bit_cast<uint32_t>(x[i]) >> 16 | (std::bit_cast<uint32_t>(x[i + 1]) & 0xFFFF0000);
  hadamard_butterfly(words, y);
  hadamard_butterfly(x);
  for (int i = 0; i < HADAMARD_SIZE; ++i) EXPECT_EQ(y[i], x[i]) << i;
  EXPECT_EQ(y[HADAMARD_SIZE], 99);
}

// NaN, infinities and zeros of the exact sum. A zero's sign is free.
void expect_transform(const float (&x)[HADAMARD_SIZE]) {
  float y[HADAMARD_SIZE];
  std::copy(std::begin(x), std::end(x), y);
  hadamard_butterfly(y);
  for (int j = 0; j < HADAMARD_SIZE; ++j) {
    double want = 0;
    for (int i = 0; i < HADAMARD_SIZE; ++i) want += double(hadamard(j, i)) * x[i];
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(y[j])) << j;
    } else {
      ASSERT_EQ(y[j], want) << j;
    }
  }
}

TEST(Hadamard, ButterflyIsTheExactSum) {  // of bf16 within 12 exponents
  std::mt19937 random(4);
  std::uniform_int_distribution<int> significand(-255, 255), exponent(-12, 0), scale(-100, 100);
  for (int n = 0; n < 20000; ++n) {
    float x[HADAMARD_SIZE];
    const int e = scale(random);
    for (float& each : x) each = std::ldexp(float(significand(random) | 128), e + exponent(random));
    for (const float each : x) ASSERT_EQ(to_float(from_float<bf16>(each)), each);
    expect_transform(x);
  }
}

TEST(Hadamard, NanAndInfinitiesGoWhereTheSignsSendThem) {
  for (int i = 0; i < HADAMARD_SIZE; ++i) {
    for (int k = 0; k < HADAMARD_SIZE; ++k) {
      for (const float other : {kInf, -kInf, kNan, 2.0f, 0.0f, -0.0f}) {
        float x[HADAMARD_SIZE];
        std::fill(std::begin(x), std::end(x), 1.0f);
        x[i] = kInf;
        x[k] = other;
        expect_transform(x);
      }
    }
  }
}

}  // namespace
}  // namespace gg::epilogue
