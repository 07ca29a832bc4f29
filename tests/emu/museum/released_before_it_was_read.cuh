// SPDX-License-Identifier: MIT
//
// Two tiles, one accumulator: warp 4 multiplies, warps 0 to 3 read the sums and give
// the accumulator back.

#pragma once

#include "blackwell_tile.cuh"

namespace museum::released_before_it_was_read {

constexpr int TILES = 2, STORE_WARPS = 4, THREADS = 32 * (STORE_WARPS + 1);
constexpr int SHARED_BYTES = TILES * SLICE_BYTES + 1024;

// D [TILES*BM,BN] = A B^T over one slice.
template <bool RIGHT>
__global__ void __launch_bounds__(THREADS) multiply(const __grid_constant__ Maps maps, float* d) {
  extern __shared__ __align__(1024) unsigned char slices[];
  __shared__ uint64_t full[TILES], ready, taken;
  __shared__ gg::ptx::TmemAddr slot;
  const uint32_t full_addr = gg::ptx::shared_addr(full), ready_addr = gg::ptx::shared_addr(&ready);
  const uint32_t taken_addr = gg::ptx::shared_addr(&taken), slices_addr = gg::ptx::shared_addr(slices);
  if (threadIdx.x == 0) {
    for (int tile = 0; tile < TILES; ++tile) gg::ptx::mbarrier_init(full_addr + tile * 8, 1);
    gg::ptx::mbarrier_init(ready_addr, 1);
    gg::ptx::mbarrier_init(taken_addr, STORE_WARPS);
    gg::ptx::fence_mbarrier_init();
  }
  const gg::ptx::TmemAddr sums = allocate_sums(slot);
  const int warp = int(threadIdx.x) / 32;
  if (warp == STORE_WARPS && gg::ptx::elect()) {
    for (int tile = 0; tile < TILES; ++tile)
      load_slice(slices_addr + tile * SLICE_BYTES, maps, tile * BM, 0, full_addr + tile * 8);
    for (int tile = 0; tile < TILES; ++tile) {
      gg::ptx::mbarrier_wait_parity(full_addr + tile * 8, 0);     // the slice has landed
      gg::ptx::mbarrier_wait_parity(taken_addr, (tile & 1) ^ 1);  // the sums before have been read
      gg::ptx::tcgen05_fence_after();
      multiply_slice(sums, slices_addr + tile * SLICE_BYTES, false);
      gg::ptx::tcgen05_commit(ready_addr);
    }
  } else if (warp < STORE_WARPS) {
    for (int tile = 0; tile < TILES; ++tile) {
      gg::ptx::mbarrier_wait_parity(ready_addr, tile & 1);  // the sums are complete
      gg::ptx::tcgen05_fence_after();
      uint32_t part[BN];
      // [mistake]
      if (RIGHT) load_sums(part, sums);
      gg::ptx::tcgen05_fence_before();
      if (gg::ptx::elect()) gg::ptx::mbarrier_arrive(taken_addr);  // have they been read?
      if (!RIGHT) load_sums(part, sums);
      // [/mistake]
      for (int c = 0; c < BN; ++c) d[(tile * BM + int(threadIdx.x)) * BN + c] = __uint_as_float(part[c]);
    }
  }
  __syncwarp();
  free_sums(sums);
}

template <bool RIGHT>
Verdict run() {
  const Operands operands(TILES * BM, BK);
  const Array<float> d{std::vector<float>(TILES * BM * BN)};
  GG_CHECK(cudaFuncSetAttribute(multiply<RIGHT>, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES));
  multiply<RIGHT><<<1, THREADS, SHARED_BYTES>>>(operands.maps, d.get());
  std::vector<float> expected;
  for (int i = 0; i < TILES * BM * BN; ++i) expected.push_back(operands.sum(i / BN, i % BN, 0, BK));
  return compare(d.read(), expected);
}

}  // namespace museum::released_before_it_was_read
