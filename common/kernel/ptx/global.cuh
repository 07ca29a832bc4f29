// SPDX-License-Identifier: MIT
//
// Flags in global memory, by which a block tells another that it has written something. PTX ISA,
// "Memory Consistency Model: Release and Acquire Patterns"; probe: tests/isa/global_test.cu.

#pragma once

namespace gg::ptx {

// Who: any thread.
// Does: writes the flag. Who reads this value by ld_acquire_gpu finds all that this thread wrote before,
//   and what other threads wrote whom it met at a barrier since.
__device__ inline void st_release_gpu(int* flag, int value) {
  asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(__cvta_generic_to_global(flag)), "r"(value)
               : "memory");
}

// Who: any thread.
// Does: reads the flag. After: see st_release_gpu. So do threads that meet this one at a barrier since.
__device__ inline int ld_acquire_gpu(const int* flag) {
  int value;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];"
               : "=r"(value)
               : "l"(__cvta_generic_to_global(flag))
               : "memory");
  return value;
}

}  // namespace gg::ptx
