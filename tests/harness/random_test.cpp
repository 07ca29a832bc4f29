// SPDX-License-Identifier: MIT
//
// The test data: in range, spread as they should be, different for every seed, tensor and index.

#include "common/harness/base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "common/harness/verify/trials.h"

namespace gg {
namespace {

std::vector<double> values(const Fill& fill, int count) {
  std::vector<double> all;
  for (int i = 0; i < count; ++i) all.push_back(random_value(fill, uint64_t(i), normal_quantiles()));
  return all;
}
Fill integers(int range) { return {Fill::Kind::integers, range, 5, 1}; }
Fill normal(uint64_t seed, uint64_t stream) { return {Fill::Kind::normal, 0, seed, stream}; }

double correlation(const std::vector<double>& x, const std::vector<double>& y) {
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    xy += x[i] * y[i];
    xx += x[i] * x[i];
    yy += y[i] * y[i];
  }
  return xy / std::sqrt(xx * yy);
}

TEST(Random, IntegersAreUniformFromEndToEnd) {
  constexpr int kCount = 200000;
  for (int range : {16, 8, 4, 2, 1}) {
    std::map<double, int> counts;
    for (double value : values(integers(range), kCount)) ++counts[value];
    const double expected = double(kCount) / (2 * range + 1);
    ASSERT_EQ(counts.size(), size_t(2 * range + 1));
    EXPECT_EQ(counts.begin()->first, -range);
    EXPECT_EQ(counts.rbegin()->first, range);
    for (const auto& [value, count] : counts) {
      EXPECT_EQ(value, std::floor(value));
      EXPECT_LT(std::fabs(count - expected), 5 * std::sqrt(expected)) << value << " of +-" << range;
    }
  }
}

TEST(Random, NormalsHaveTheMomentsAndTailsOfANormal) {
  const int count = 1000000;
  double sum = 0, squares = 0, fourth = 0, largest = 0;
  int negative = 0, beyond[4] = {};
  for (double z : values(normal(9, 1), count)) {
    sum += z;
    squares += z * z;
    fourth += z * z * z * z;
    negative += z < 0;
    largest = std::max(largest, std::fabs(z));
    for (int limit : {1, 2, 3}) beyond[limit] += std::fabs(z) > limit;
  }
  EXPECT_NEAR(sum / count, 0, 0.005);
  EXPECT_NEAR(squares / count, 1, 0.01);
  EXPECT_NEAR(fourth / count, 3, 0.1);
  EXPECT_NEAR(double(negative) / count, 0.5, 0.003);
  EXPECT_NEAR(double(beyond[1]) / count, 0.3173, 0.003);
  EXPECT_NEAR(double(beyond[2]) / count, 0.0455, 0.002);
  EXPECT_NEAR(double(beyond[3]) / count, 0.0027, 0.0005);
  EXPECT_GT(largest, 4);
  EXPECT_LE(largest, 4.25);
}

TEST(Random, SeedsStreamsAndIndicesDiffer) {
  std::set<uint64_t> seen;
  for (uint64_t seed = 0; seed < 64; ++seed) {
    for (uint64_t stream = 0; stream < 8; ++stream) {
      for (uint64_t index = 0; index < 64; ++index) seen.insert(hash(seed, stream, index));
    }
  }
  EXPECT_EQ(seen.size(), 64u * 8 * 64);
}

TEST(Random, SeedsStreamsAndNeighboursAreUncorrelated) {
  const std::vector<double> x = values(normal(1, 1), 100000);
  EXPECT_LT(std::fabs(correlation(x, values(normal(1, 2), 100000))), 0.015);
  EXPECT_LT(std::fabs(correlation(x, values(normal(2, 1), 100000))), 0.015);
  EXPECT_LT(std::fabs(correlation(x, {x.begin() + 1, x.end()})), 0.015);
}

TEST(Random, CodesAreTheRoundedValues) {
  for (Format format : {Format::f32, Format::f16, Format::bf16}) {
    for (uint64_t i = 0; i < 1000; ++i) {
      const float value = random_value(normal(3, 1), i, normal_quantiles());
      ASSERT_EQ(random_code(normal(3, 1), format, i, normal_quantiles()), encode(format, value));
      ASSERT_TRUE(is_nan(format, random_code({Fill::Kind::nan, 0, 3, 1}, format, i, nullptr)));
    }
  }
}

TEST(Random, IntegerRangeHalvesForEachFourfoldK) {
  EXPECT_EQ(integer_range(1), 16);
  EXPECT_EQ(integer_range(8192), 16);
  EXPECT_EQ(integer_range(8193), 8);
  EXPECT_EQ(integer_range(32768), 8);
  EXPECT_EQ(integer_range(32769), 4);
  EXPECT_EQ(integer_range(INT32_MAX), 1);
  for (int64_t k = 1; k <= 1 << 24; k *= 2) {  // every partial sum is an exact fp32
    EXPECT_LE(k * integer_range(int(k)) * integer_range(int(k)), 1 << 24) << k;
  }
}

}  // namespace
}  // namespace gg
