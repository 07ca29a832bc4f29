// SPDX-License-Identifier: MIT
//
// Two readings of the clock around a piece of a chapter's kernel: clocked.py puts the calls into
// a copy of it. Each warp keeps the cycles of its last pass; the program prints them behind what
// it prints anyway.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "common/kernel/check.h"

namespace clocked {

constexpr int BLOCKS = 256, WARPS = 32;
__device__ uint32_t passes[BLOCKS][WARPS];  // cycles; 0: this warp came to no reading

// Who: any thread. The clock of its multiprocessor in cycles; what stands before it in the program
// has been issued.
__device__ inline uint32_t now() {
  uint32_t cycles;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(cycles)::"memory");
  return cycles;
}

// Who: a whole warp. Keeps the cycles since `begin`.
__device__ inline void keep(uint32_t begin) {
  const uint32_t end = now();
  const uint32_t block = blockIdx.x + gridDim.x * blockIdx.y;
  if (threadIdx.x % 32 == 0 && block < BLOCKS) passes[block][threadIdx.x / 32] = end - begin;
}

// One line: "clocked: 1056 warps, cycles least 812 median 840 most 903".
inline void print() {
  static uint32_t all[BLOCKS][WARPS];
  GG_CHECK(cudaMemcpyFromSymbol(all, passes, sizeof all));
  std::vector<uint32_t> cycles;
  for (const auto& block : all)
    for (const uint32_t one : block)
      if (one > 0) cycles.push_back(one);
  if (cycles.empty()) {
    std::printf("clocked: no warp came to both readings\n");
    return;
  }
  std::sort(cycles.begin(), cycles.end());
  std::printf("clocked: %zu warps, cycles least %u median %u most %u\n", cycles.size(), cycles.front(),
              cycles[cycles.size() / 2], cycles.back());
}

}  // namespace clocked
