// SPDX-License-Identifier: MIT
//
// Approximations of 2^x and 1 / x: errors, and what is exact. Each thread has its own number.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "common/kernel/ptx/floating.cuh"
#include "probe.cuh"

namespace probe {
namespace floating {

constexpr int kThreads = 1024;

// [probe]
__global__ void approximate(const float* x, float* powers, float* reciprocals) {
  powers[threadIdx.x] = gg::ptx::ex2_approx_ftz(x[threadIdx.x]);
  reciprocals[threadIdx.x] = gg::ptx::rcp_approx_ftz(x[threadIdx.x]);
}
// [/probe]

class Floating : public Probe {};

float flushed(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }

// `want` is what the function gives in double precision.
void expect_near(const char* name, float x, float got, double want, double error) {
  if (std::isnan(want)) {
    EXPECT_TRUE(std::isnan(got)) << name << " of " << x;
  } else if (std::isinf(float(want)) || flushed(float(want)) == 0) {
    EXPECT_EQ(got, flushed(float(want))) << name << " of " << x;
    EXPECT_EQ(std::signbit(got), std::signbit(want)) << name << " of " << x;
  } else {
    EXPECT_LE(std::fabs(got - want), error * std::fabs(want)) << name << " of " << x;
  }
}

void expect_within_errors(const std::vector<float>& numbers) {
  const std::vector<float> none(kThreads);
  const Array<float> in(numbers), powers(none), reciprocals(none);
  approximate<<<1, kThreads>>>(in.get(), powers.get(), reciprocals.get());
  const std::vector<float> got_powers = powers.read(), got_reciprocals = reciprocals.read();
  for (size_t i = 0; i < kThreads; ++i) {
    const float x = flushed(numbers[i]);
    expect_near("2^x", numbers[i], got_powers[i], std::exp2(double(x)), 0x1p-22);
    expect_near("1/x", numbers[i], got_reciprocals[i], 1 / double(x), 0x1p-23);
  }
}

TEST_F(Floating, StaysWithinTheErrorsOfTheIsa) {
  std::vector<float> numbers(kThreads);
  // From -128 to 128.
  for (size_t i = 0; i < kThreads; ++i) numbers[i] = float(int(uint32_t(i + 1) * 2654435761u)) * 0x1p-24f;
  const float inf = INFINITY;
  const float special[] = {0,        -0.0f,     inf,      -inf,  NAN,     0x1p-127f, -0x1p-127f, 0x1p-149f,
                           0x1p127f, -0x1p127f, -126,     -127,  127,     128,       -149.5f,    127.99999f,
                           1,        -1,        0x1p126f, 1e38f, 3.4e38f, 0x1p-126f, -126.5f,    1e-30f};
  std::copy(std::begin(special), std::end(special), numbers.begin() + 100);
  expect_within_errors(numbers);
}

TEST_F(Floating, ReciprocalsOfPowersOfTwoAreExact) {
  std::vector<float> numbers(kThreads, 1.0f);
  for (int e = -126; e <= 126; ++e) numbers[size_t(e + 126)] = std::ldexp(1.0f, e);
  const std::vector<float> none(kThreads);
  const Array<float> in(numbers), powers(none), reciprocals(none);
  approximate<<<1, kThreads>>>(in.get(), powers.get(), reciprocals.get());
  const std::vector<float> got = reciprocals.read();
  for (int e = -126; e <= 126; ++e) EXPECT_EQ(got[size_t(e + 126)], std::ldexp(1.0f, -e)) << "2^" << e;
}

__global__ void maxima(const float* a, const float* b, float* larger) {
  larger[threadIdx.x] = gg::ptx::max_nan(a[threadIdx.x], b[threadIdx.x]);
}

TEST_F(Floating, MaximumKeepsNan) {
  const float inf = INFINITY, nan = NAN;
  const float special[] = {0, -0.0f, 1, -1, inf, -inf, nan, -nan, 0x1p-149f, -0x1p-149f, 3.4e38f, -3.4e38f};
  std::vector<float> a(kThreads), b(kThreads);
  for (size_t i = 0; i < kThreads; ++i) {
    const auto pick = [&](size_t at) {
      return at < 12 ? special[at] : float(int(uint32_t(i * at + 1) * 2654435761u)) * 0x1p-24f;
    };
    a[i] = pick(i / 13 % 13);
    b[i] = pick(i % 13);
  }
  const Array<float> in_a(a), in_b(b), out(std::vector<float>(kThreads, 0));
  maxima<<<1, kThreads>>>(in_a.get(), in_b.get(), out.get());
  const std::vector<float> got = out.read();
  for (size_t i = 0; i < kThreads; ++i) {
    uint32_t bits, want;
    const bool is_nan = std::isnan(a[i]) || std::isnan(b[i]);
    const float larger = std::signbit(a[i]) && a[i] == b[i] ? b[i] : std::max(a[i], b[i]);
    std::memcpy(&bits, &got[i], 4);
    std::memcpy(&want, &larger, 4);
    EXPECT_EQ(bits, is_nan ? 0x7FFFFFFFu : want) << a[i] << " and " << b[i];
  }
}

}  // namespace floating
}  // namespace probe
