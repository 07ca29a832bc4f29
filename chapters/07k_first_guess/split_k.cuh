// SPDX-License-Identifier: MIT
//
// Split-K: each block of a cluster multiplies some slices of K, and the first one gets the sums of the others
// and adds them, in the order of ranks.

#pragma once

#include "common/kernel/ptx/barrier.cuh"
#include "common/kernel/ptx/cluster.cuh"
#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "config.cuh"

namespace chapter {

// The slices of K that a block multiplies.
struct Slices {
  int first, count;
};

// Those of the block of this rank along K. Where there are too few for all, the last blocks get none.
// [slices]
template <class C>
__device__ Slices slices_of(int k, int rank) {
  const int all = (k + BK - 1) / BK, each = (all + C::SPLIT - 1) / C::SPLIT, first = rank * each;
  return {first, max(0, min(each, all - first))};
}
// [/slices]

// Blocks that get any: ranks 0 and up.
template <class C>
__device__ int blocks_with_slices(int k) {
  const int all = (k + BK - 1) / BK, each = (all + C::SPLIT - 1) / C::SPLIT;
  return (all + each - 1) / each;
}

// Who: a whole consumer of each block that has slices. It has the same 64 columns of the tile in all of them.
template <class C>
class AddSums {
 public:
  static constexpr int THREADS = 128, STEP_BYTES = THREADS * 4;  // from a thread's sum to its next

  // `blocks`: those that have slices. `bars_addr`: two barriers. In the first block: the bytes of the others'
  // sums have landed. In the others: it has read their last sums. `shared`: in the first block,
  // C::SUMS_BYTES / (SPLIT - 1) for each other one. `barrier`: a named barrier of this warpgroup's own.
  __device__ AddSums(int rank, int blocks, uint32_t bars_addr, float* shared, int barrier)
      : rank_(rank), blocks_(blocks), barrier_(barrier), landed_addr_(bars_addr), shared_(shared) {}

  // Adds the sums of all blocks to those of the first. Invariant: no phase is overtaken. The first block
  // opens `read` when it has read all sums, and nobody sends the next tile's before. So `landed` never counts
  // bytes of two tiles. Bytes before the `expect_tx` end no phase: its one arrival is still missing.
  // [add]
  template <int SUMS>
  __device__ void add(float (&sums)[SUMS]) {
    const uint32_t read_addr = landed_addr_ + 8;
    const int thread = int(threadIdx.x) % THREADS;
    if (rank_ > 0) {
      gg::ptx::mbarrier_wait_parity(read_addr, phase_ ^ 1);  // the sums of the tile before have been read
      const auto landed = gg::ptx::mapa(landed_addr_, 0);
      const auto to = gg::ptx::mapa(gg::ptx::shared_addr(shared_ + (rank_ - 1) * FLOATS + thread), 0);
#pragma unroll
      for (int i = 0; i < SUMS; ++i) gg::ptx::st_async({to.value + i * STEP_BYTES}, sums[i], landed);
    } else {
      if (thread == 0) gg::ptx::mbarrier_arrive_expect_tx(landed_addr_, (blocks_ - 1) * SUMS * STEP_BYTES);
      gg::ptx::mbarrier_wait_parity(landed_addr_, phase_);  // all sums of all other blocks are here
#pragma unroll 1
      for (int rank = 1; rank < blocks_; ++rank) {
        const float* from = shared_ + (rank - 1) * FLOATS + thread;
#pragma unroll
        for (int i = 0; i < SUMS; ++i) sums[i] += from[i * THREADS];
      }
      gg::ptx::bar_sync(barrier_, THREADS);  // all threads have read and added them
      if (thread > 0 && thread < blocks_) gg::ptx::mbarrier_arrive(gg::ptx::mapa(read_addr, thread));
    }
    phase_ ^= 1;
  }
  // [/add]

 private:
  static constexpr int FLOATS = C::BM * 64;  // of one block

  int rank_, blocks_, barrier_, phase_ = 0;
  uint32_t landed_addr_;
  float* shared_;
};

}  // namespace chapter
