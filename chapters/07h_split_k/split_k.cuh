// SPDX-License-Identifier: MIT
//
// Shares of K: the first block of a cluster gets the sums of the others and adds them, in the order of ranks.

#pragma once

#include "common/ptx/barrier.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/mbarrier.cuh"

namespace chapter {

// For a whole warpgroup of each block, which has 64 columns of tiles of up to ROWS rows.
template <int ROWS>
class SplitK {
 public:
  static constexpr int FLOATS = ROWS * 64;                       // of one block
  static constexpr int THREADS = 128, STEP_BYTES = THREADS * 4;  // from a thread's sum to its next

  // In the first block: the bytes of the others' sums have landed. In the others: it has read their last
  // sums.
  struct Barriers {
    uint64_t came, room;
  };
  // `blocks`: those that have a share, from the first one on. `shared`: in the first block, FLOATS for each
  // other one. `barrier`: a named barrier of this warpgroup's own.
  __device__ SplitK(int rank, int blocks, Barriers* bars, float* shared, int barrier)
      : rank_(rank), blocks_(blocks), barrier_(barrier), bars_(bars), shared_(shared) {}

  // Adds the sums of all blocks to those of the first. Invariant: no phase is overtaken. The first block
  // opens `room` when it has read all sums, and nobody sends the next tile's before. So `came` never counts
  // bytes of two tiles. Bytes before the `expect_tx` end no phase: its one arrival is still missing.
  // [add_up]
  template <int SUMS>
  __device__ void add_up(float (&sums)[SUMS]) {
    const uint32_t came_addr = gg::ptx::shared_addr(&bars_->came), room_addr = came_addr + 8;
    const int thread = int(threadIdx.x) % THREADS;
    if (rank_ > 0) {
      gg::ptx::mbarrier_wait_parity(room_addr, phase_ ^ 1);  // the sums of the tile before have been read
      const auto came = gg::ptx::mapa(came_addr, 0);
      const auto to = gg::ptx::mapa(gg::ptx::shared_addr(shared_ + (rank_ - 1) * FLOATS + thread), 0);
#pragma unroll
      for (int i = 0; i < SUMS; ++i) gg::ptx::st_async({to.value + i * STEP_BYTES}, sums[i], came);
    } else {
      if (thread == 0) gg::ptx::mbarrier_arrive_expect_tx(came_addr, (blocks_ - 1) * SUMS * STEP_BYTES);
      gg::ptx::mbarrier_wait_parity(came_addr, phase_);  // all sums of all other blocks are here
#pragma unroll 1
      for (int rank = 1; rank < blocks_; ++rank) {
        const float* from = shared_ + (rank - 1) * FLOATS + thread;
#pragma unroll
        for (int i = 0; i < SUMS; ++i) sums[i] += from[i * THREADS];
      }
      gg::ptx::bar_sync(barrier_, THREADS);  // all threads have read and added them
      if (thread > 0 && thread < blocks_) gg::ptx::mbarrier_arrive(gg::ptx::mapa(room_addr, thread));
    }
    phase_ ^= 1;
  }
  // [/add_up]

 private:
  int rank_, blocks_, barrier_, phase_ = 0;
  Barriers* bars_;
  float* shared_;
};

}  // namespace chapter
