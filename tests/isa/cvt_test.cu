// SPDX-License-Identifier: MIT
//
// cvt: roundings to integers and to narrower floats, saturation, and pairs, of which the first
// operand goes to the upper half.

#include <algorithm>
#include <cmath>

#include "common/kernel/formats.h"
#include "probe.cuh"

namespace probe {
namespace cvt {

constexpr int kThreads = 64;

// [probe]
__global__ void convert(const float* numbers, const int* integers, uint32_t* out) {
  const float x = numbers[threadIdx.x], y = numbers[(threadIdx.x + 1) % kThreads];
  const int i = integers[threadIdx.x];
  uint32_t* r = out + 12 * threadIdx.x;
  asm("cvt.rni.s32.f32 %0, %1;" : "=r"(r[0]) : "f"(x));
  asm("cvt.rzi.u32.f32 %0, %1;" : "=r"(r[1]) : "f"(x));
  asm("cvt.rmi.s32.f32 %0, %1;" : "=r"(r[2]) : "f"(x));
  asm("cvt.rpi.f32.f32 %0, %1;" : "=r"(r[3]) : "f"(x));
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r[4]) : "f"(x), "f"(y));
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r[5]) : "f"(x), "f"(y));
  asm("cvt.rz.relu.bf16x2.f32 %0, %1, %2;" : "=r"(r[6]) : "f"(x), "f"(y));
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r[7]) : "f"(x));
  asm("cvt.rn.f32.s32 %0, %1;" : "=r"(r[8]) : "r"(i));
  asm("cvt.rz.f32.u32 %0, %1;" : "=r"(r[9]) : "r"(i));
  asm("cvt.sat.s16.s32 %0, %1;" : "=r"(r[10]) : "r"(i));
  asm("{ .reg .b16 h; cvt.rn.f16.f32 h, %1; cvt.f32.f16 %0, h; }" : "=r"(r[11]) : "f"(x));
}
// [/probe]

class Convert : public Probe {};

uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
// An integer type's range and the rounded number, a NaN being 0.
uint32_t clamped(double x, double least, double most) {
  return x != x ? 0 : uint32_t(int64_t(std::fmin(std::fmax(x, least), most)));
}
uint32_t code(gg::Format format, float x) { return x != x ? 0x7FFF : gg::encode(format, double(x)); }

TEST_F(Convert, RoundsAndSaturates) {
  const float special[] = {0.5f,       1.5f,      2.5f,      -0.5f,      -1.5f,      -2.5f,    0,
                           -0.0f,      INFINITY,  -INFINITY, NAN,        3e9f,       -3e9f,    5e9f,
                           65519,      65520,     -65520,    0x1p-25f,   0x1.8p-25f, 0x1p-24f, 0x1p-140f,
                           -0x1p-140f, 0x1.01p0f, 0x1.03p0f, 0x1.002p0f, 0x1.006p0f};
  constexpr size_t kSpecial = sizeof special / sizeof special[0];
  std::vector<float> numbers(kThreads);
  std::vector<int> integers(kThreads);
  for (size_t i = 0; i < kThreads; ++i) {
    const int mixed = int(uint32_t(i + 1) * 2654435761u);
    numbers[i] = i < kSpecial ? special[i] : float(mixed) * 0x1p-21f;
    integers[i] = i % 3 ? mixed : mixed >> 16;
  }
  const Array<float> numbers_array(numbers);
  const Array<int> integers_array(integers);
  const Array<uint32_t> out(std::vector<uint32_t>(12 * kThreads));
  convert<<<1, kThreads>>>(numbers_array.get(), integers_array.get(), out.get());
  const std::vector<uint32_t> got = out.read();
  for (size_t t = 0; t < kThreads; ++t) {
    const float x = numbers[t], y = numbers[(t + 1) % kThreads];
    const int i = integers[t];
    const auto relu = [](float v) { return v < 0 || v == 0 ? 0.0f : v; };
    const auto pair = [](uint32_t upper, uint32_t lower) { return upper << 16 | lower; };
    const auto rz_bf16 = [&](float v) { return v != v ? 0x7FFF : bits_of(relu(v)) >> 16; };
    const float rounded = float(uint32_t(i)),
                toward_zero = double(rounded) > uint32_t(i) ? std::nextafter(rounded, 0.0f) : rounded;
    const uint32_t want[12] = {
        clamped(std::nearbyint(x), -0x1p31, 0x1p31 - 1),
        clamped(std::trunc(x), 0, 0x1p32 - 1),
        clamped(std::floor(x), -0x1p31, 0x1p31 - 1),
        x != x ? 0x7FFFFFFF : bits_of(std::ceil(x)),
        pair(code(gg::Format::bf16, x), code(gg::Format::bf16, y)),
        pair(code(gg::Format::f16, x), code(gg::Format::f16, y)),
        pair(rz_bf16(x), rz_bf16(y)),
        (bits_of(x) + (std::isfinite(x) ? 0x1000 : 0)) & ~0x1FFFu,
        bits_of(float(i)),
        bits_of(toward_zero),
        uint32_t(std::min(std::max(i, -32768), 32767)),
        x != x ? 0x7FFFFFFF : bits_of(gg::decode(gg::Format::f16, code(gg::Format::f16, x)))};
    for (size_t k = 0; k < 12; ++k)
      EXPECT_EQ(got[12 * t + k], want[k]) << "thread " << t << " result " << k << " of " << x << ", " << i;
  }
}

}  // namespace cvt
}  // namespace probe
