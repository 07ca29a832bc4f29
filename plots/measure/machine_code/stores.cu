// SPDX-License-Identifier: MIT
//
// How long four warps take to store a tile of 128 rows by 256 columns of bf16, a row to a thread as
// sums lie in tensor memory: by 16-byte stores straight to global memory, or through shared memory
// and TMA. Prints cycles per tile, with one block and with one on each multiprocessor; D stays in
// the L2. Compiled by clocked.py --stores.

#include <algorithm>
#include <cstdio>
#include <vector>

#include "common/kernel/check.h"
#include "common/kernel/ptx/barrier.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/tma.cuh"
#include "common/kernel/tensor_map.h"

namespace {

// TILES: of a block, one after another.
constexpr int ROWS = 128, COLS = 256, PART = 32, THREADS = 128, TILES = 64;
constexpr int PART_BYTES = PART * 2, BOX_BYTES = ROWS * PART_BYTES, BOXES = 2;

__device__ uint32_t cycles_of[256];

__device__ inline uint32_t now() {
  uint32_t cycles;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(cycles)::"memory");
  return cycles;
}

// A row of a part: 64 bytes, four stores of 16, each in a sector of its own half.
__global__ void __launch_bounds__(THREADS, 1) store_straight(uint4* d) {
  uint4* const row = d + (int64_t(blockIdx.x) * ROWS + threadIdx.x) * (COLS * 2 / 16);
  __syncthreads();
  const uint32_t begin = now();
  for (int tile = 0; tile < TILES; ++tile) {
#pragma unroll
    for (int part = 0; part < COLS / PART; ++part) {
#pragma unroll
      for (int i = 0; i < 4; ++i) row[part * 4 + i] = make_uint4(tile, part, i, threadIdx.x);
    }
    asm volatile("" ::: "memory");  // each tile is stored, though the next one overwrites it
  }
  const uint32_t end = now();
  if (threadIdx.x == 0) cycles_of[blockIdx.x] = end - begin;
}

// The same through two boxes of shared memory, swizzled by 64 bytes as TMA wants it, so that
// no bank conflicts.
__global__ void __launch_bounds__(THREADS, 1) store_by_tma(const __grid_constant__ CUtensorMap map) {
  __shared__ __align__(1024) unsigned char boxes[BOXES][BOX_BYTES];
  const int row = int(threadIdx.x);
  __syncthreads();
  const uint32_t begin = now();
  for (int tile = 0; tile < TILES; ++tile) {
#pragma unroll
    for (int part = 0; part < COLS / PART; ++part) {
      unsigned char* const box = boxes[part % BOXES];
      if (threadIdx.x == 0) gg::ptx::bulk_wait_group_read<BOXES - 1>();
      gg::ptx::bar_sync(1, THREADS);  // what this box held has been read
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        *reinterpret_cast<uint4*>(box + row * PART_BYTES + (i ^ row / 2 % 4) * 16) =
            make_uint4(tile, part, i, threadIdx.x);
      }
      gg::ptx::fence_proxy_async();
      gg::ptx::bar_sync(1, THREADS);  // all rows are there, for TMA too
      if (threadIdx.x == 0) {
        gg::ptx::tma_store_2d(&map, part * PART, int(blockIdx.x) * ROWS, gg::ptx::shared_addr(box));
        gg::ptx::bulk_commit_group();
      }
    }
  }
  const uint32_t end = now();
  if (threadIdx.x == 0) {
    gg::ptx::bulk_wait_group_read<0>();
    cycles_of[blockIdx.x] = end - begin;
  }
}

void print(const char* how, int blocks) {
  std::vector<uint32_t> cycles(256);
  GG_CHECK(cudaMemcpyFromSymbol(cycles.data(), cycles_of, cycles.size() * 4));
  cycles.resize(size_t(blocks));
  std::sort(cycles.begin(), cycles.end());
  std::printf("stores: %-9s %3d blocks, cycles per tile: least %.0f median %.0f most %.0f\n", how, blocks,
              double(cycles.front()) / TILES, double(cycles[cycles.size() / 2]) / TILES,
              double(cycles.back()) / TILES);
}

}  // namespace

int main() {
  int device = 0, multiprocessors = 0;
  GG_CHECK(cudaGetDevice(&device));
  GG_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  const int64_t rows = int64_t(multiprocessors) * ROWS;
  void* d = nullptr;
  GG_CHECK(cudaMalloc(&d, size_t(rows) * COLS * 2));
  const CUtensorMap map = gg::make_tensor_map({.data = d,
                                               .dims = {COLS, rows},
                                               .stride_bytes = {COLS * 2},
                                               .box = {PART, ROWS},
                                               .swizzle = CU_TENSOR_MAP_SWIZZLE_64B});
  for (const int blocks : {1, multiprocessors}) {
    for (int round = 0; round < 2; ++round) {  // the first one warms up
      store_straight<<<blocks, THREADS>>>(static_cast<uint4*>(d));
      GG_CHECK(cudaGetLastError());
      GG_CHECK(cudaDeviceSynchronize());
      if (round == 1) print("straight", blocks);
      store_by_tma<<<blocks, THREADS>>>(map);
      GG_CHECK(cudaGetLastError());
      GG_CHECK(cudaDeviceSynchronize());
      if (round == 1) print("by TMA", blocks);
    }
  }
  GG_CHECK(cudaFree(d));
  return 0;
}
