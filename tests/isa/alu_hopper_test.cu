// SPDX-License-Identifier: MIT
//
// Arithmetic that came with Hopper or just before it: conversions to and from fp8, sums of bf16,
// extremes of pairs of integers that stop at zero, a fused product that gives 0 where a factor lies
// outside its tensor, and elect.

#include <algorithm>
#include <cmath>

#include "common/kernel/formats.h"
#include "common/kernel/ptx/warp.cuh"
#include "probe.cuh"

namespace probe {
namespace alu_hopper {

constexpr int kThreads = 64;

// [probe]
__global__ void hopper(const float* numbers, const uint32_t* words, uint32_t members, uint32_t* out) {
  const float x = numbers[threadIdx.x], y = numbers[(threadIdx.x + 1) % kThreads];
  const uint32_t v = words[threadIdx.x], w = words[(threadIdx.x + 1) % kThreads],
                 z = words[(threadIdx.x + 2) % kThreads];
  uint32_t* r = out + 8 * threadIdx.x;
  asm("{ .reg .b16 h; cvt.rn.satfinite.e4m3x2.f32 h, %1, %2; cvt.u32.u16 %0, h; }"
      : "=r"(r[0])
      : "f"(x), "f"(y));
  asm("{ .reg .b16 h; cvt.rn.satfinite.relu.e5m2x2.f32 h, %1, %2; cvt.u32.u16 %0, h; }"
      : "=r"(r[1])
      : "f"(x), "f"(y));
  asm("{ .reg .b16 h; cvt.u16.u32 h, %1; cvt.rn.f16x2.e4m3x2 %0, h; }" : "=r"(r[2]) : "r"(v));
  asm("add.rn.bf16x2 %0, %1, %2;" : "=r"(r[3]) : "r"(v), "r"(w));
  asm("min.relu.s16x2 %0, %1, %2;" : "=r"(r[4]) : "r"(v), "r"(w));
  asm("fma.rn.oob.bf16x2 %0, %1, %2, %3;" : "=r"(r[5]) : "r"(v), "r"(w), "r"(z));
  if (!(members >> threadIdx.x % 32 & 1)) return;
  asm volatile("{ .reg .pred p; elect.sync %0|p, %2; selp.u32 %1, 1, 0, p; }"
               : "=r"(r[6]), "=r"(r[7])
               : "r"(members));
}

// Each lane stores whether it is the one chosen.
__global__ void chosen(uint32_t* out) { out[threadIdx.x] = gg::ptx::elect(); }
// [/probe]

class AluHopper : public Probe {
 protected:
  AluHopper() : Probe(gg::Arch::sm_90a) {}
};

double fp8_value(uint32_t code, int mantissa_bits) {
  const int bias = mantissa_bits == 3 ? 7 : 15,
            field = int(code >> mantissa_bits & (mantissa_bits == 3 ? 15 : 31));
  const double significand = (code & ((1u << mantissa_bits) - 1)) + (field ? 1 << mantissa_bits : 0);
  return std::ldexp(significand, std::max(field, 1) - bias - mantissa_bits);
}
// By trying all codes up to the largest number; of two that are equally near, the even one.
uint32_t fp8_code(float x, int mantissa_bits, uint32_t largest) {
  if (x != x) return 0x7F;
  uint32_t best = 0;
  for (uint32_t code = 1; code <= largest; ++code) {
    const double near = std::fabs(fp8_value(code, mantissa_bits) - std::fabs(x)),
                 before = std::fabs(fp8_value(best, mantissa_bits) - std::fabs(x));
    if (near < before || (near == before && code % 2 == 0) || std::isinf(x)) best = code;
  }
  return best | (std::signbit(x) ? 0x80 : 0);
}
uint32_t bf16_sum(uint32_t a, uint32_t b, uint32_t c, bool product) {
  const auto value = [](uint32_t code) { return double(gg::decode(gg::Format::bf16, code & 0xFFFF)); };
  const double sum = product ? value(a) * value(b) + value(c) : value(a) + value(b);
  return sum != sum ? 0x7FFF : gg::encode(gg::Format::bf16, sum);
}

TEST_F(AluHopper, Computes) {
  const float special[] = {448,   464,   465,   -1e9f, INFINITY, NAN, 0x1p-10f, 0x1.1p-10f,
                           -0.0f, 57344, 61440, 61441, 0x1p-17f, 17,  19,       -21};
  std::vector<float> numbers(kThreads);
  std::vector<uint32_t> words(kThreads);
  for (size_t i = 0; i < kThreads; ++i) {
    const uint32_t mixed = uint32_t(i + 3) * 2654435761u;
    numbers[i] = i < 16 ? special[i] : std::ldexp(float(int(mixed)), -31 + int(i) % 20 - 10);
    // Halves that are bf16 numbers near one, of either sign.
    words[i] = (mixed & 0x80FF80FF) + 0x3F003F00;
  }
  words[9] = 0x7FF73F80, words[30] = 0x3F807FF7, words[40] = 0xFF80FF7F;
  const uint32_t members = 0x00FFF0A0;
  const Array<float> numbers_array(numbers);
  const Array<uint32_t> words_array(words), out(std::vector<uint32_t>(8 * kThreads, 7777));
  hopper<<<1, kThreads>>>(numbers_array.get(), words_array.get(), members, out.get());
  const std::vector<uint32_t> got = out.read();
  for (size_t t = 0; t < kThreads; ++t) {
    const float x = numbers[t], y = numbers[(t + 1) % kThreads];
    const uint32_t v = words[t], w = words[(t + 1) % kThreads], z = words[(t + 2) % kThreads];
    const auto relu = [](float f) { return f != f || f > 0 ? f : 0.0f; };
    const auto e4m3 = [](uint32_t code) {  // to f16
      code &= 0xFF;
      if ((code & 0x7F) == 0x7F) return 0x7FFFu;
      return gg::encode(gg::Format::f16, fp8_value(code & 0x7F, 3)) | (code & 0x80) << 8;
    };
    const auto halves = [&](auto f) {
      return f(v >> 16, w >> 16, z >> 16) << 16 | f(v & 0xFFFF, w & 0xFFFF, z & 0xFFFF);
    };
    const bool member = members >> t % 32 & 1;
    const uint32_t want[8] = {
        fp8_code(x, 3, 0x7E) << 8 | fp8_code(y, 3, 0x7E),
        fp8_code(relu(x), 2, 0x7B) << 8 | fp8_code(relu(y), 2, 0x7B),
        e4m3(v >> 8) << 16 | e4m3(v),
        halves([](uint32_t a, uint32_t b, uint32_t) { return bf16_sum(a, b, 0, false); }),
        halves([](uint32_t a, uint32_t b, uint32_t) {
          return uint32_t(std::max(0, std::min(int(int16_t(a)), int(int16_t(b)))));
        }),
        halves([](uint32_t a, uint32_t b, uint32_t c) {
          return a == 0x7FF7 || b == 0x7FF7 ? 0 : bf16_sum(a, b, c, true);
        }),
        member ? 5u : 7777u,
        member ? uint32_t(t % 32 == 5) : 7777u};
    for (size_t k = 0; k < 8; ++k)
      EXPECT_EQ(got[8 * t + k], want[k])
          << "thread " << t << " result " << k << " of " << x << ", " << std::hex << v;
  }
}

TEST_F(AluHopper, ElectsOneLaneOfEachWarp) {
  const Array<uint32_t> out(std::vector<uint32_t>(kThreads, 7777));
  chosen<<<1, kThreads>>>(out.get());
  const std::vector<uint32_t> got = out.read();
  for (size_t first = 0; first < kThreads; first += 32) {
    EXPECT_EQ(std::count(got.begin() + int(first), got.begin() + int(first) + 32, 1u), 1);
    EXPECT_EQ(std::count(got.begin() + int(first), got.begin() + int(first) + 32, 0u), 31);
  }
}

}  // namespace alu_hopper
}  // namespace probe
