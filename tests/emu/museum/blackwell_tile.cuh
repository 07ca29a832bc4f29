// SPDX-License-Identifier: MIT
//
// The exhibits of tcgen05 share it: slices of A [M,K] and of B [N,K], how one thread loads and
// multiplies them, and the operands.

#pragma once

#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/tcgen05.cuh"
#include "common/kernel/ptx/tma.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "common/kernel/tensor_map.h"
#include "exhibit.h"

namespace museum {

constexpr int BM = 128, BN = 32, BK = 64;  // of a tile, of a slice
constexpr int A_BYTES = BM * BK * 2, B_BYTES = BN * BK * 2, SLICE_BYTES = A_BYTES + B_BYTES;

struct Maps {
  CUtensorMap a, b;
};

// Who: one thread. The slice of A and B from column k0 on, to `slice_addr`.
__device__ inline void load_slice(uint32_t slice_addr, const Maps& maps, int row0, int k0,
                                  uint32_t bar_addr) {
  gg::ptx::mbarrier_arrive_expect_tx(bar_addr, SLICE_BYTES);
  gg::ptx::tma_load_2d(slice_addr, &maps.a, k0, row0, bar_addr);
  gg::ptx::tma_load_2d(slice_addr + A_BYTES, &maps.b, k0, 0, bar_addr);
}

// Who: one thread, always the same. Starts sums = A * B, or sums += A * B, of a slice
// that has landed.
__device__ inline void multiply_slice(gg::ptx::TmemAddr sums, uint32_t slice_addr, bool accumulate) {
  const auto a = gg::ptx::tcgen05_desc_k_major_128b(slice_addr);
  const auto b = gg::ptx::tcgen05_desc_k_major_128b(slice_addr + A_BYTES);
  for (int kk = 0; kk < BK; kk += 16) {
    gg::ptx::tcgen05_mma_f16(sums, gg::ptx::tcgen05_advance(a, kk * 2), gg::ptx::tcgen05_advance(b, kk * 2),
                             gg::ptx::tcgen05_idesc_f16<bf16, BM, BN>(), accumulate || kk > 0);
  }
}

// Who: each of four warps; a thread has a row of the tile. Loads its sums, and waits for them.
__device__ inline void load_sums(uint32_t (&part)[BN], gg::ptx::TmemAddr sums) {
  gg::ptx::tcgen05_ld_32x32b_x32(part, gg::ptx::tmem_at(sums, int(threadIdx.x) / 32 % 4 * 32, 0));
  gg::ptx::tcgen05_wait_ld(part);
}

// A [rows,K] and B [BN,K] of small whole numbers on the device, their maps, and what A B^T is.
class Operands {
 public:
  Operands(int rows, int k)
      : k_(k),
        a_(whole_numbers<bf16>(rows * k)),
        b_(whole_numbers<bf16>(BN * k)),
        a_device_(a_),
        b_device_(b_),
        maps{gg::make_swizzled_map(a_device_.get(), {k, rows}, {BK, BM}),
             gg::make_swizzled_map(b_device_.get(), {k, BN}, {BK, BN})} {}

  // A row and a column of D, over K from `first` up to `last`.
  float sum(int row, int col, int first, int last) const {
    float sum = 0;
    for (int k = first; k < last; ++k)
      sum += float(a_[size_t(row * k_ + k)]) * float(b_[size_t(col * k_ + k)]);
    return sum;
  }

 private:
  int k_;
  std::vector<bf16> a_, b_;
  Array<bf16> a_device_, b_device_;

 public:
  const Maps maps;
};

// Who: the whole block, whose warp 0 owns tensor memory. The address of BN columns.
__device__ inline gg::ptx::TmemAddr allocate_sums(gg::ptx::TmemAddr& slot) {
  if (threadIdx.x < 32) {
    gg::ptx::tcgen05_alloc<BN>(gg::ptx::shared_addr(&slot));
    gg::ptx::tcgen05_relinquish_alloc_permit();
  }
  gg::ptx::tcgen05_fence_before();
  __syncthreads();  // tensor memory is there, and what was initialised before this call
  gg::ptx::tcgen05_fence_after();
  return slot;
}
__device__ inline void free_sums(gg::ptx::TmemAddr sums) {
  gg::ptx::tcgen05_fence_before();
  __syncthreads();  // all have read
  gg::ptx::tcgen05_fence_after();
  if (threadIdx.x < 32) gg::ptx::tcgen05_dealloc<BN>(sums);
}

}  // namespace museum
