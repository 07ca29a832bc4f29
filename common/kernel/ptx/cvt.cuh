// SPDX-License-Identifier: MIT
//
// Floats become narrower numbers, several to a register. PTX ISA, "Data movement and
// conversion instructions: cvt". bf16 and f16 need sm_80, e4m3 and e5m2 need sm_89, e2m1 and
// ue8m0 need sm_100a.

#pragma once

#include <cstdint>

#include "common/kernel/types.cuh"

namespace gg::ptx {

// Who: any thread. Each to the nearest T, halfway to the even one; `low` comes first in memory.
template <class T>
__device__ inline uint32_t cvt_rn_x2(float low, float high);
template <>
__device__ inline uint32_t cvt_rn_x2<bf16>(float low, float high) {
  uint32_t both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
template <>
__device__ inline uint32_t cvt_rn_x2<f16>(float low, float high) {
  uint32_t both;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}

// cvt.rn.satfinite.e4m3x2.f32. Who: any thread. Each to the nearest e4m3, halfway to the even one;
// beyond 448 it is +-448, and NaN stays NaN. `low` is in bits 0 to 7, first in memory; `high` in
// bits 8 to 15.
__device__ inline uint16_t cvt_e4m3x2(float low, float high) {
  uint16_t both;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(both) : "f"(high), "f"(low));
  return both;
}

// cvt.rn.satfinite.e5m2x2.f32: the same for e5m2, whose largest number is 57344.
__device__ inline uint16_t cvt_e5m2x2(float low, float high) {
  uint16_t both;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(both) : "f"(high), "f"(low));
  return both;
}

// cvt.rn.satfinite.e2m1x2.f32, four times: its result is a register of 8 bits, which no operand of
// asm can be. Who: any thread. Each to the nearest e2m1 (0, 0.5, 1, 1.5, 2, 3, 4, 6), halfway to
// the even code; beyond 6 it is +-6, and NaN is 6. x[i] is in bits 4i to 4i + 3, so that x[0] comes
// first in memory.
__device__ inline uint32_t cvt_e2m1x8(const float (&x)[8]) {
  uint32_t all;
  asm("{ .reg .b8 b0, b1, b2, b3;\n"
      "cvt.rn.satfinite.e2m1x2.f32 b0, %2, %1;\n"
      "cvt.rn.satfinite.e2m1x2.f32 b1, %4, %3;\n"
      "cvt.rn.satfinite.e2m1x2.f32 b2, %6, %5;\n"
      "cvt.rn.satfinite.e2m1x2.f32 b3, %8, %7;\n"
      "mov.b32 %0, {b0, b1, b2, b3}; }"
      : "=r"(all)
      : "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]), "f"(x[4]), "f"(x[5]), "f"(x[6]), "f"(x[7]));
  return all;
}

// cvt.rp.satfinite.ue8m0x2.f32. Who: any thread. The least power of two that is no less: code e is
// 2^(e - 127). 2^-127 stands for what is below it, zero too, and 2^127 for what is beyond; NaN is
// 0xFF. No negative numbers. `low` is in bits 0 to 7.
__device__ inline uint16_t cvt_rp_ue8m0x2(float low, float high) {
  uint16_t both;
  asm("cvt.rp.satfinite.ue8m0x2.f32 %0, %1, %2;" : "=h"(both) : "f"(high), "f"(low));
  return both;
}

}  // namespace gg::ptx
