// SPDX-License-Identifier: MIT
//
// Arithmetic of compute capability 10.0: floats to e4m3, e5m2, e2m1 and ue8m0, back from e2m1, and
// fma of two f32 at once. Each thread has operands of its own.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "blackwell.cuh"
#include "common/kernel/ptx/cvt.cuh"

namespace probe {
namespace alu_blackwell {

constexpr int kThreads = 96, kSources = 8, kResults = 9;

// [probe]
__global__ void narrow(const float* numbers, uint32_t* out) {
  float x[kSources];
  for (int i = 0; i < kSources; ++i) x[i] = numbers[threadIdx.x * kSources + i];
  uint32_t* r = out + threadIdx.x * kResults;
  r[0] = gg::ptx::cvt_e4m3x2(x[0], x[1]);
  r[1] = gg::ptx::cvt_e2m1x8(x);
  r[2] = gg::ptx::cvt_rp_ue8m0x2(x[2], x[3]);
  asm("{ .reg .b16 scales; cvt.rz.ue8m0x2.f32 scales, %1, %2; cvt.u32.u16 %0, scales; }"
      : "=r"(r[3])
      : "f"(x[4]), "f"(x[5]));
  asm("{ .reg .b8 b0, b1, b2, b3; mov.b32 {b0, b1, b2, b3}, %1; cvt.rn.f16x2.e2m1x2 %0, b3; }"
      : "=r"(r[4])
      : "r"(r[1]));
  uint64_t a, b, c, d;
  memcpy(&a, &x[0], 8);
  memcpy(&b, &x[2], 8);
  memcpy(&c, &x[4], 8);
  asm("fma.rn.f32x2 %0, %1, %2, %3;" : "=l"(d) : "l"(a), "l"(b), "l"(c));
  r[5] = uint32_t(d);
  r[6] = uint32_t(d >> 32);
  asm("max.f32 %0, %1, %2, %3;" : "=r"(r[7]) : "r"(__float_as_uint(x[5])), "f"(x[6]), "f"(x[7]));
  r[8] = gg::ptx::cvt_e5m2x2(x[6], x[7]);
}
// [/probe]

class AluBlackwell : public BlackwellProbe {};

uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return x != x ? 0x7FFFFFFF : bits;
}

// The code of the nearest of a format's magnitudes, ties to the even code; NaN is `nan`.
template <class Value>
uint32_t nearest(float x, int codes, uint32_t sign, uint32_t nan, Value value) {
  if (x != x) return nan;
  int best = 0;
  const double magnitude = std::fmin(std::fabs(double(x)), value(codes - 1));
  for (int code = 1; code < codes; ++code) {
    const double d = std::fabs(value(code) - magnitude), least = std::fabs(value(best) - magnitude);
    if (d < least || (d == least && code % 2 == 0)) best = code;
  }
  return uint32_t(best) | (std::signbit(x) ? sign : 0);
}
uint32_t e4m3(float x) {
  return nearest(x, 127, 0x80, 0x7F, [](int code) {
    const int field = code >> 3, fraction = code & 7;
    return std::ldexp(field ? 8 + fraction : fraction, std::max(field, 1) - 10);
  });
}
uint32_t e5m2(float x) {
  return nearest(x, 124, 0x80, 0x7F, [](int code) {
    const int field = code >> 2, fraction = code & 3;
    return std::ldexp(field ? 4 + fraction : fraction, std::max(field, 1) - 17);
  });
}
constexpr double kE2M1[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
uint32_t e2m1(float x) {
  return nearest(x, 8, 8, 7, [](int code) { return kE2M1[code]; });
}
uint32_t half_of_e2m1(uint32_t code) {
  constexpr uint32_t kHalves[] = {0, 0x3800, 0x3C00, 0x3E00, 0x4000, 0x4200, 0x4400, 0x4600};
  return kHalves[code & 7] | (code & 8) << 12;
}
// The largest; a NaN loses against a number, and +0 is more than -0.
float largest(float a, float b) {
  if (a != a || b != b) return a != a ? b : a;
  return a > b || (a == b && std::signbit(b)) ? a : b;
}
// .rp if `up`, else .rz; beyond the largest power of two the largest if `finite`, else NaN.
uint32_t ue8m0(float x, bool up, bool finite) {
  if (x != x) return 0xFF;
  int code = 0;
  if (up) {
    while (code < 255 && std::ldexp(1.0, code - 127) < x) ++code;
  } else {
    while (code < 255 && std::ldexp(1.0, code - 126) <= x) ++code;
  }
  return uint32_t(finite ? std::min(code, 254) : code);
}

TEST_F(AluBlackwell, NarrowFormatsAndPairs) {
  constexpr size_t kNumbers = kThreads * kSources;
  const float special[] = {0,     -0.0f,   INFINITY, -INFINITY, NAN,       0.25f, 0.75f, 1.25f, 1.75f,
                           2.5f,  3.5f,    5,        6,         7,         448,   464,   465,   0x1p-10f,
                           0.25f, 0x1p-9f, -0.75f,   -5,        0x1p-127f, 3e38f, -448,  1e-45f};
  std::vector<float> numbers(kNumbers);
  for (size_t i = 0; i < kNumbers; ++i) {
    const int mixed = int(uint32_t(i + 1) * 2654435761u);
    const size_t which = uint32_t(mixed) >> 8;
    numbers[i] = i % 2 ? special[which % (sizeof special / sizeof special[0])] : float(mixed) * 0x1p-28f;
    // Where scales are made, numbers have no sign.
    if (i % kSources >= 2 && i % kSources < 6) numbers[i] = std::fabs(numbers[i]);
  }
  const Array<float> in(numbers);
  const Array<uint32_t> out(std::vector<uint32_t>(kThreads * kResults));
  narrow<<<1, kThreads>>>(in.get(), out.get());
  const std::vector<uint32_t> got = out.read();
  for (size_t t = 0; t < kThreads; ++t) {
    const float* x = &numbers[t * kSources];
    uint32_t nibbles = 0;
    for (int i = 0; i < kSources; ++i) nibbles |= e2m1(x[i]) << (4 * i);
    const uint32_t want[kResults] = {e4m3(x[1]) << 8 | e4m3(x[0]),
                                     nibbles,
                                     ue8m0(x[3], true, true) << 8 | ue8m0(x[2], true, true),
                                     ue8m0(x[4], false, false) << 8 | ue8m0(x[5], false, false),
                                     half_of_e2m1(nibbles >> 28) << 16 | half_of_e2m1(nibbles >> 24),
                                     bits_of(std::fma(x[0], x[2], x[4])),
                                     bits_of(std::fma(x[1], x[3], x[5])),
                                     bits_of(largest(x[5], largest(x[6], x[7]))),
                                     e5m2(x[7]) << 8 | e5m2(x[6])};
    for (size_t k = 0; k < kResults; ++k)
      EXPECT_EQ(got[t * kResults + k], want[k]) << "thread " << t << " result " << k;
  }
}

}  // namespace alu_blackwell
}  // namespace probe
