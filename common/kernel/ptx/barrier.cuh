// SPDX-License-Identifier: MIT
//
// Named barriers: some warps of a block meet without the others. PTX ISA, "Parallel synchronization
// and communication instructions: bar, barrier".

#pragma once

namespace gg::ptx {

// Who: whole warps, `threads` of them in all, a multiple of 32; each names the same barrier, 1 to
//   15 (0 is __syncthreads).
// Does: waits until that many threads have come to barrier `id`.
// After: what they wrote to shared and global memory before it is visible to all of them, and what
//   they loaded before it has its value: it may be overwritten.
__device__ inline void bar_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// The same without waiting: for warps that have made ready what others wait for.
__device__ inline void bar_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

}  // namespace gg::ptx
