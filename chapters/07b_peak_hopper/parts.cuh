// SPDX-License-Identifier: MIT
//
// Chapter 07b: K in parts. Where there are fewer tiles than multiprocessors, the blocks of a cluster have a
// tile together, each its part of K. The first one gets the sums of the others through shared memory and
// adds them, always in the same order.

#pragma once

#include "common/ptx/barrier.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/shared.cuh"

namespace chapter {

// For a whole warpgroup of each block, which has 64 columns of tiles of up to ROWS rows.
template <int ROWS>
class Parts {
 public:
  static constexpr int FLOATS = ROWS * 64;                       // of one block
  static constexpr int THREADS = 128, STEP_BYTES = THREADS * 4;  // from a thread's sum to its next

  struct Barriers {
    uint64_t came;  // in the first block: bytes of the others' sums
    uint64_t room;  // in the others: their last sums were read
  };
  __device__ static void init(Barriers* bars) {  // by one thread
    gg::ptx::mbarrier_init(gg::ptx::shared_addr(&bars->came), 1);
    gg::ptx::mbarrier_init(gg::ptx::shared_addr(&bars->room), 1);
  }

  // `blocks`: those that have a part, from the first one on. `shared`: in the first block, FLOATS for each
  // other one. `barrier`: of this warpgroup's own.
  __device__ Parts(int rank, int blocks, Barriers* bars, float* shared, int barrier)
      : rank_(rank),
        blocks_(blocks),
        came_(gg::ptx::shared_addr(&bars->came)),
        room_(gg::ptx::shared_addr(&bars->room)),
        shared_(shared),
        barrier_(barrier) {}

  // Adds the sums of all blocks to those of the first.
  template <int SUMS>
  __device__ void add_up(float (&sums)[SUMS]) {
    if (rank_ == 0) {
      take(sums);
    } else {
      give(sums);
    }
    phase_ ^= 1;
  }

 private:
  __device__ static int thread() { return int(threadIdx.x) % THREADS; }
  __device__ float* sums_of(int rank) const { return shared_ + (rank - 1) * FLOATS + thread(); }

  template <int SUMS>
  __device__ void give(const float (&sums)[SUMS]) {
    gg::ptx::mbarrier_wait_parity(room_, phase_ ^ 1);
    const auto came = gg::ptx::mapa(came_, 0), to = gg::ptx::mapa(gg::ptx::shared_addr(sums_of(rank_)), 0);
#pragma unroll
    for (int i = 0; i < SUMS; ++i) gg::ptx::st_async({to.value + i * STEP_BYTES}, sums[i], came);
  }

  template <int SUMS>
  __device__ void take(float (&sums)[SUMS]) {
    if (thread() == 0) gg::ptx::mbarrier_arrive_expect_tx(came_, (blocks_ - 1) * SUMS * STEP_BYTES);
    gg::ptx::mbarrier_wait_parity(came_, phase_);
#pragma unroll 1
    for (int rank = 1; rank < blocks_; ++rank) {
      const float* from = sums_of(rank);
#pragma unroll
      for (int i = 0; i < SUMS; ++i) sums[i] += from[i * THREADS];
    }
    gg::ptx::bar_sync(barrier_, THREADS);  // all have read them
    const int rank = thread();
    if (rank > 0 && rank < blocks_) gg::ptx::mbarrier_arrive(gg::ptx::mapa(room_, rank));
  }

  int rank_, blocks_;
  uint32_t came_, room_;
  float* shared_;
  int barrier_, phase_ = 0;
};

}  // namespace chapter
