// SPDX-License-Identifier: MIT
//
// Two floats become two 16-bit numbers in one register. PTX ISA, "Data movement and conversion instructions:
// cvt". Needs sm_80.

#pragma once

#include <cstdint>

#include "common/types.cuh"

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

}  // namespace gg::ptx
