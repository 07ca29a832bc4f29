// SPDX-License-Identifier: MIT
//
// A ring of three stages. The barriers of the loads are one to a stage; the barrier that tells of
// products is a single one, which ends a phase at each slice.

#pragma once

#include "blackwell_tile.cuh"

namespace museum::parity_of_another_ring {

constexpr int STAGES = 3, SLICES = 7, THREADS = 128;
constexpr int SHARED_BYTES = STAGES * SLICE_BYTES + 1024;

// D [BM,BN] = A B^T over SLICES slices. Warp 0 loads and multiplies.
template <bool RIGHT>
__global__ void __launch_bounds__(THREADS) multiply(const __grid_constant__ Maps maps, float* d) {
  extern __shared__ __align__(1024) unsigned char slices[];
  __shared__ uint64_t full[STAGES], multiplied, complete;
  __shared__ gg::ptx::TmemAddr slot;
  const uint32_t full_addr = gg::ptx::shared_addr(full), multiplied_addr = gg::ptx::shared_addr(&multiplied);
  const uint32_t complete_addr = gg::ptx::shared_addr(&complete), slices_addr = gg::ptx::shared_addr(slices);
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; ++stage) gg::ptx::mbarrier_init(full_addr + stage * 8, 1);
    gg::ptx::mbarrier_init(multiplied_addr, 1);
    gg::ptx::mbarrier_init(complete_addr, 1);
    gg::ptx::fence_mbarrier_init();
  }
  const gg::ptx::TmemAddr sums = allocate_sums(slot);
  if (threadIdx.x < 32 && gg::ptx::elect()) {
    for (int i = 0; i < STAGES; ++i)
      load_slice(slices_addr + i * SLICE_BYTES, maps, 0, i * BK, full_addr + i * 8);
    for (int i = 0; i < SLICES; ++i) {
      const int stage = i % STAGES;
      gg::ptx::mbarrier_wait_parity(full_addr + stage * 8, i / STAGES & 1);  // the slice has landed
      gg::ptx::tcgen05_fence_after();
      multiply_slice(sums, slices_addr + stage * SLICE_BYTES, i > 0);
      gg::ptx::tcgen05_commit(multiplied_addr);
      // [mistake]
      gg::ptx::mbarrier_wait_parity(multiplied_addr, (RIGHT ? i : i / STAGES) & 1);  // multiplied
      // [/mistake]
      if (i + STAGES < SLICES)
        load_slice(slices_addr + stage * SLICE_BYTES, maps, 0, (i + STAGES) * BK, full_addr + stage * 8);
    }
    gg::ptx::tcgen05_commit(complete_addr);
  }
  __syncwarp();
  gg::ptx::mbarrier_wait_parity(complete_addr, 0);  // the sums are complete
  gg::ptx::tcgen05_fence_after();
  uint32_t part[BN];
  load_sums(part, sums);
  for (int c = 0; c < BN; ++c) d[threadIdx.x * BN + c] = __uint_as_float(part[c]);
  free_sums(sums);
}

template <bool RIGHT>
Verdict run() {
  constexpr int K = SLICES * BK;
  const Operands operands(BM, K);
  const Array<float> d{std::vector<float>(BM * BN)};
  GG_CHECK(cudaFuncSetAttribute(multiply<RIGHT>, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES));
  multiply<RIGHT><<<1, THREADS, SHARED_BYTES>>>(operands.maps, d.get());
  std::vector<float> expected;
  for (int i = 0; i < BM * BN; ++i) expected.push_back(operands.sum(i / BN, i % BN, 0, K));
  return compare(d.read(), expected);
}

}  // namespace museum::parity_of_another_ring
