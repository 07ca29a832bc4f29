// SPDX-License-Identifier: MIT
//
// Arithmetic that C++ has no operator for: parts of products, bit fields, carries, bytes picked and
// multiplied, roundings, and comparisons of numbers with NaN.

#include <algorithm>
#include <cmath>
#include <limits>

#include "probe.cuh"

namespace probe {
namespace alu {

constexpr int kThreads = 64;

// [probe]
// Each thread writes the results of its a, b, c one after the other.
__global__ void on_bits(const uint32_t* a, const uint32_t* b, const uint32_t* c, uint32_t* out) {
  const uint32_t x = a[threadIdx.x], y = b[threadIdx.x], z = c[threadIdx.x];
  uint32_t* r = out + 12 * threadIdx.x;
  asm("mul.hi.u32 %0, %1, %2;" : "=r"(r[0]) : "r"(x), "r"(y));
  asm("mad.lo.s32 %0, %1, %2, %3;" : "=r"(r[1]) : "r"(x), "r"(y), "r"(z));
  asm("mul24.lo.s32 %0, %1, %2;" : "=r"(r[2]) : "r"(x), "r"(y));
  asm("bfe.s32 %0, %1, %2, %3;" : "=r"(r[3]) : "r"(x), "r"(z & 31), "r"(z >> 5 & 31));
  asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(r[4]) : "r"(x), "r"(y), "r"(z & 31), "r"(z >> 5 & 31));
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r[5]) : "r"(x), "r"(y), "r"(z));
  asm("lop3.b32 %0, %1, %2, %3, 0xB2;" : "=r"(r[6]) : "r"(x), "r"(y), "r"(z));
  asm("shf.l.wrap.b32 %0, %1, %2, %3;" : "=r"(r[7]) : "r"(x), "r"(y), "r"(z));
  asm("dp4a.s32.u32 %0, %1, %2, %3;" : "=r"(r[8]) : "r"(x), "r"(y), "r"(z));
  asm("add.sat.s32 %0, %1, %2;" : "=r"(r[9]) : "r"(x), "r"(y));
  // {z, x} + {x, y}: the carry of the lower halves goes into the upper ones.
  asm("{ .reg .b32 low; add.cc.u32 low, %1, %2; addc.u32 %0, %3, %1; }"
      : "=r"(r[10])
      : "r"(x), "r"(y), "r"(z));
  asm("bfind.s32 %0, %1;" : "=r"(r[11]) : "r"(x));
}

// Roundings, extremes, and comparisons; -1 stands for a predicate that is true.
__global__ void on_numbers(const float* a, const float* b, const float* c, float* out, int* compared) {
  const float x = a[threadIdx.x], y = b[threadIdx.x], z = c[threadIdx.x];
  float* r = out + 8 * threadIdx.x;
  asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(r[0]) : "f"(x), "f"(y), "f"(z));
  asm("fma.rz.f32 %0, %1, %2, %3;" : "=f"(r[1]) : "f"(x), "f"(y), "f"(z));
  asm("add.rm.f32 %0, %1, %2;" : "=f"(r[2]) : "f"(x), "f"(y));
  asm("mul.rp.f32 %0, %1, %2;" : "=f"(r[3]) : "f"(x), "f"(y));
  asm("max.f32 %0, %1, %2;" : "=f"(r[4]) : "f"(x), "f"(y));
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(r[5]) : "f"(x), "f"(y));
  asm("mul.ftz.sat.f32 %0, %1, %2;" : "=f"(r[6]) : "f"(x), "f"(y));
  asm("div.rn.f32 %0, %1, %2;" : "=f"(r[7]) : "f"(x), "f"(y));
  int* p = compared + 3 * threadIdx.x;
  asm("set.lt.s32.f32 %0, %1, %2;" : "=r"(p[0]) : "f"(x), "f"(y));
  asm("set.geu.s32.f32 %0, %1, %2;" : "=r"(p[1]) : "f"(x), "f"(y));
  asm("{ .reg .pred p, q; setp.gt.f32 q, %1, %3; setp.ne.and.f32 p|q, %1, %2, q; selp.s32 %0, -1, 0, q; }"
      : "=r"(p[2])
      : "f"(x), "f"(y), "f"(z));
}
// [/probe]

class Alu : public Probe {};

uint32_t mixed(size_t i, uint32_t salt) {
  const uint32_t x = uint32_t(i + 1) * 2654435761u + salt * 0x9E3779B9u;
  return x ^ x >> 15;
}
int64_t low_bits(uint32_t x, int n) { return int64_t(uint64_t(x) << (64 - n)) >> (64 - n); }

std::vector<uint32_t> expected_bits(uint32_t x, uint32_t y, uint32_t z) {
  const int position = int(z & 31), length = int(z >> 5 & 31);
  uint32_t field = 0, inserted = y, picked = 0, looked_up = 0, dot = z;
  for (int i = 0; i < 32; ++i) {
    const int from = std::min(i < length ? position + i : position + length - 1, 31);
    field |= length ? (x >> from & 1) << i : 0;
    if (i < length && position + i < 32)
      inserted = (inserted & ~(1u << (position + i))) | (x >> i & 1) << (position + i);
    looked_up |= (0xB2u >> ((x >> i & 1) * 4 + (y >> i & 1) * 2 + (z >> i & 1)) & 1) << i;
  }
  for (int i = 0; i < 4; ++i) {
    const uint32_t pick = z >> 4 * i & 15, byte = (pick & 4 ? y : x) >> 8 * (pick & 3) & 0xFF;
    picked |= (pick & 8 ? (byte & 0x80 ? 0xFFu : 0u) : byte) << 8 * i;
    dot += uint32_t(int(int8_t(x >> 8 * i)) * int(uint8_t(y >> 8 * i)));
  }
  const int64_t sum = int64_t(int32_t(x)) + int32_t(y);
  int highest = 31;
  while (highest >= 0 && (x >> highest & 1) == x >> 31) --highest;
  const uint64_t both = uint64_t(y) << 32 | x;
  return {uint32_t(uint64_t(x) * y >> 32),
          x * y + z,
          uint32_t(low_bits(x, 24) * low_bits(y, 24)),
          field,
          inserted,
          picked,
          looked_up,
          uint32_t(both << (z & 31) >> 32),
          dot,
          uint32_t(std::min<int64_t>(std::max<int64_t>(sum, INT32_MIN), INT32_MAX)),
          uint32_t(z + x + ((uint64_t(x) + y) >> 32)),
          uint32_t(highest)};
}

TEST_F(Alu, Bits) {
  std::vector<uint32_t> a(kThreads), b(kThreads), c(kThreads);
  for (size_t i = 0; i < kThreads; ++i) a[i] = mixed(i, 1) >> i % 5, b[i] = mixed(i, 2), c[i] = mixed(i, 3);
  a[5] = 0, a[6] = 0xFFFFFFFF, b[7] = 0x80000000, a[7] = 0x80000001, a[8] = b[8] = 0x7FFFFFFF;
  const Array<uint32_t> a_array(a), b_array(b), c_array(c), out(std::vector<uint32_t>(12 * kThreads));
  on_bits<<<1, kThreads>>>(a_array.get(), b_array.get(), c_array.get(), out.get());
  const std::vector<uint32_t> got = out.read();
  for (size_t i = 0; i < kThreads; ++i) {
    const std::vector<uint32_t> want = expected_bits(a[i], b[i], c[i]);
    for (size_t k = 0; k < 12; ++k) EXPECT_EQ(got[12 * i + k], want[k]) << "thread " << i << " result " << k;
  }
}

// a + b is `high` in double and `low` more. The float next to `nearest` on the side of `limit` if
// that is where rounding toward it goes.
float toward(double a, double b, float nearest, float limit) {
  const double high = a + b, part = high - a, low = (a - (high - part)) + (b - part);
  if (std::isnan(high) || std::isinf(high)) return nearest;
  const double more = (high - nearest) + low;  // of the exact sum than of `nearest`
  const bool goes = limit == 0 ? (nearest > 0 ? more < 0 : more > 0) : limit > 0 ? more > 0 : more < 0;
  return goes ? std::nextafter(nearest, limit) : nearest;
}

TEST_F(Alu, Numbers) {
  const float inf = INFINITY, nan = NAN, tiny = 0x1p-130f;
  const float special[] = {0.0f, -0.0f, 1, -1, inf, -inf, nan, tiny, -tiny, 0x1p-126f, 0.1f, 3};
  std::vector<float> a(kThreads), b(kThreads), c(kThreads);
  for (size_t i = 0; i < kThreads; ++i) {
    a[i] = i < 24 ? special[i % 12] : float(int(mixed(i, 4))) * 0x1p-20f;
    b[i] = i < 24 ? special[(i * 5 + i / 12) % 12] : i % 7 == 0 ? a[i] : float(int(mixed(i, 5))) * 0x1p-31f;
    c[i] = float(int(mixed(i, 6))) * 0x1p-25f;
  }
  const Array<float> a_array(a), b_array(b), c_array(c), out(std::vector<float>(8 * kThreads));
  const Array<int> compared(std::vector<int>(3 * kThreads));
  on_numbers<<<1, kThreads>>>(a_array.get(), b_array.get(), c_array.get(), out.get(), compared.get());
  const std::vector<float> got = out.read();
  const std::vector<int> got_compared = compared.read();
  for (size_t i = 0; i < kThreads; ++i) {
    const float x = a[i], y = b[i], z = c[i];
    const double product = double(x) * y;  // exact
    const auto flushed = [](float v) { return std::fabs(v) < 0x1p-126f ? std::copysign(0.0f, v) : v; };
    const float scaled = flushed(flushed(x) * flushed(y));
    const float want[8] = {std::fma(x, y, z),
                           toward(product, z, std::fma(x, y, z), 0),
                           toward(x, y, x + y, -INFINITY),
                           toward(product, 0, x * y, INFINITY),
                           std::isnan(x)                           ? y
                           : std::isnan(y)                         ? x
                           : x > y || (x == y && !std::signbit(x)) ? x
                                                                   : y,
                           std::isnan(x) || std::isnan(y)         ? nan
                           : x < y || (x == y && std::signbit(x)) ? x
                                                                  : y,
                           scaled > 0 ? std::min(scaled, 1.0f) : 0.0f,
                           x / y};
    for (size_t k = 0; k < 8; ++k) {
      const float g = got[8 * i + k];
      if (k == 2 && want[k] == 0 && g == 0) continue;  // of either sign
      EXPECT_TRUE(std::isnan(want[k]) ? std::isnan(g)
                                      : g == want[k] && std::signbit(g) == std::signbit(want[k]))
          << "thread " << i << " result " << k << " of " << x << ", " << y << ", " << z << ": " << g
          << " for " << want[k];
    }
    EXPECT_EQ(got_compared[3 * i], x < y ? -1 : 0) << i;
    EXPECT_EQ(got_compared[3 * i + 1], !(x < y) ? -1 : 0) << i;
    const bool ordered_and_different = x < y || x > y;
    EXPECT_EQ(got_compared[3 * i + 2], !ordered_and_different && x > z ? -1 : 0) << i;
  }
}

}  // namespace alu
}  // namespace probe
