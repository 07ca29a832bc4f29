// SPDX-License-Identifier: MIT
//
// Groups that share A and B and differ in K: the first and the last have none. One block takes
// their tiles one after the other.

#pragma once

#include "blackwell_tile.cuh"

namespace museum::no_slices {

constexpr int GROUPS = 3, THREADS = 128, SHARED_BYTES = SLICE_BYTES + 1024;
constexpr int OFFSETS[GROUPS + 1] = {0, 0, 2, 2};  // slices of K where each group's begin
constexpr int SLICES = OFFSETS[GROUPS];

// D [GROUPS,BM,BN]: of group g the product over its slices. Warp 0 loads and multiplies.
template <bool RIGHT>
__global__ void __launch_bounds__(THREADS)
    multiply(const __grid_constant__ Maps maps, const int* offsets, float* d) {
  extern __shared__ __align__(1024) unsigned char slice[];
  __shared__ uint64_t full, multiplied, complete;
  __shared__ gg::ptx::TmemAddr slot;
  const uint32_t full_addr = gg::ptx::shared_addr(&full), multiplied_addr = gg::ptx::shared_addr(&multiplied);
  const uint32_t complete_addr = gg::ptx::shared_addr(&complete), slice_addr = gg::ptx::shared_addr(slice);
  if (threadIdx.x == 0) {
    gg::ptx::mbarrier_init(full_addr, 1);
    gg::ptx::mbarrier_init(multiplied_addr, 1);
    gg::ptx::mbarrier_init(complete_addr, 1);
    gg::ptx::fence_mbarrier_init();
  }
  const gg::ptx::TmemAddr sums = allocate_sums(slot);
  for (int g = 0; g < GROUPS; ++g) {
    const int first = offsets[g], last = offsets[g + 1];
    if (threadIdx.x < 32 && gg::ptx::elect()) {
      for (int i = first; i < last; ++i) {
        load_slice(slice_addr, maps, 0, i * BK, full_addr);
        gg::ptx::mbarrier_wait_parity(full_addr, i & 1);  // the slice has landed
        multiply_slice(sums, slice_addr, i > first);
        gg::ptx::tcgen05_commit(multiplied_addr);
        gg::ptx::mbarrier_wait_parity(multiplied_addr, i & 1);  // and was multiplied
      }
      gg::ptx::tcgen05_commit(complete_addr);
    }
    __syncwarp();
    gg::ptx::mbarrier_wait_parity(complete_addr, g & 1);  // the tile's sums are complete
    gg::ptx::tcgen05_fence_after();
    uint32_t part[BN] = {};
    // [mistake]
    if (!RIGHT || last > first) load_sums(part, sums);  // of no slices the sums are 0, unwritten
    // [/mistake]
    for (int c = 0; c < BN; ++c) d[(g * BM + int(threadIdx.x)) * BN + c] = __uint_as_float(part[c]);
    gg::ptx::tcgen05_fence_before();
    __syncthreads();  // all have read
    gg::ptx::tcgen05_fence_after();
  }
  free_sums(sums);
}

template <bool RIGHT>
Verdict run() {
  const Operands operands(BM, SLICES * BK);
  const Array<int> offsets(std::vector<int>(OFFSETS, OFFSETS + GROUPS + 1));
  const Array<float> d{std::vector<float>(GROUPS * BM * BN)};
  GG_CHECK(cudaFuncSetAttribute(multiply<RIGHT>, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES));
  multiply<RIGHT><<<1, THREADS, SHARED_BYTES>>>(operands.maps, offsets.get(), d.get());
  std::vector<float> expected;
  for (int i = 0; i < GROUPS * BM * BN; ++i) {
    const int g = i / BN / BM;
    expected.push_back(operands.sum(i / BN % BM, i % BN, OFFSETS[g] * BK, OFFSETS[g + 1] * BK));
  }
  return compare(d.read(), expected);
}

}  // namespace museum::no_slices
