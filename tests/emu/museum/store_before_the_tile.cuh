// SPDX-License-Identifier: MIT
//
// The epilogue of a grouped GEMM: 128 threads write a tile to shared memory, and one of them starts
// its copy to D.

#pragma once

#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/tma.cuh"
#include "exhibit.h"

namespace museum::store_before_the_tile {

constexpr int THREADS = 128, COLUMNS = 16;

// D [blocks*THREADS,COLUMNS]: a thread has a row of sums; here they are numbers of its own.
template <bool RIGHT>
__global__ void __launch_bounds__(THREADS) store(float* d) {
  __shared__ __align__(128) float tile[THREADS][COLUMNS];
  const int row = int(blockIdx.x) * THREADS + int(threadIdx.x);
  for (int c = 0; c < COLUMNS; ++c) tile[threadIdx.x][c] = float(row * COLUMNS + c);
  // [mistake]
  if (RIGHT) {
    gg::ptx::fence_proxy_async();  // what this thread wrote, TMA sees
    __syncthreads();               // and all have written
  }
  // [/mistake]
  if (threadIdx.x == 0) {
    gg::ptx::bulk_store(d + row * COLUMNS, gg::ptx::shared_addr(tile), int(sizeof tile));
    gg::ptx::bulk_commit_group();
    gg::ptx::bulk_wait_group<0>();
  }
}

template <bool RIGHT>
Verdict run() {
  constexpr int BLOCKS = 2;
  const Array<float> d{std::vector<float>(BLOCKS * THREADS * COLUMNS)};
  store<RIGHT><<<BLOCKS, THREADS>>>(d.get());
  std::vector<float> expected;
  for (int i = 0; i < BLOCKS * THREADS * COLUMNS; ++i) expected.push_back(float(i));
  return compare(d.read(), expected);
}

}  // namespace museum::store_before_the_tile
