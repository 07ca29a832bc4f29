// SPDX-License-Identifier: MIT
//
// Split-K: each block of a cluster multiplies some slices of K. The blocks of ranks 1 and up, the
// senders, send their sums to the block of rank 0. It adds them in the order of ranks, whichever
// landed first: with the same tile and SPLIT D has the same bits in every launch.

#pragma once

#include "cluster.cuh"
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

// The run of slices that the block of rank `k_rank` along K multiplies. The runs of all blocks have
// each slice of K once. No run is longer than rank 0's. Where there are too few slices for all
// blocks, the last blocks get none.
// [slices]
template <class C>
__device__ Slices slices_of(int k, int k_rank) {
  const int all = (k + BK - 1) / BK, each = (all + C::SPLIT - 1) / C::SPLIT, first = k_rank * each;
  return {first, max(0, min(each, all - first))};
}
// [/slices]

// The number of blocks that slices_of gives any: ranks 0 to this number - 1. `each` must be as
// there: else blocks wait for ever, or sums are left out. k is at least 1: no map has a size of 0.
template <class C>
__device__ int blocks_with_slices(int k) {
  const int all = (k + BK - 1) / BK, each = (all + C::SPLIT - 1) / C::SPLIT;
  return (all + each - 1) / each;
}

// Who: each of the 128 threads of a consumer, in each block that has slices. Thread t has the same
// elements of the tile in all blocks: thread t of rank 0 adds what the senders' threads t have sent.
// All call `send_or_add` once for each tile, in the same order.
template <class C>
class AddSums {
 public:
  // `ranks`: how many have slices. `landed_addr`, the same in all blocks: two mbarriers of one
  // arrival each, 8 bytes apart. Rank 0 waits for its `landed`: the sums of all senders are here. A
  // sender waits for its `read`: rank 0 has read what this block sent last. `sums`, the same in all
  // blocks: C::SUMS_BYTES, used in rank 0 only. `barrier`: a named barrier of these 128 threads.
  __device__ AddSums(int k_rank, int ranks, uint32_t landed_addr, float* sums, int barrier)
      : k_rank_(k_rank), ranks_(ranks), barrier_(barrier), landed_addr_(landed_addr), sums_(sums) {}

  // Rank 0 adds all senders' sums to its own. A sender sends its sums, and may change them at once.
  // Invariant: rank 0's room holds sums of one tile. All of its threads have read them before it
  // arrives at `read`, and a sender waits for that before it sends the next tile's. So `landed`
  // never counts bytes of two tiles, and no thread is two phases late.
  // Neither wait needs products or sums of a later tile, so blocks do not wait in a circle.
  template <int SUMS>
  __device__ void send_or_add(float (&sums)[SUMS]) {
    static_assert(SUMS * THREADS <= BLOCK_FLOATS, "else a sender writes into the next sender's room");
    if (k_rank_ > 0) {
      send(sums);
    } else {
      receive_and_add(sums);
    }
    phase_ ^= 1;
  }

 private:
  static_assert(C::CLUSTER == 1 || C::SPLIT == 1, "mapa and arrive_in get ranks along K");
  static constexpr int THREADS = 128;
  static_assert(C::SPLIT <= THREADS, "thread r of rank 0 arrives at the `read` of rank r");
  static constexpr int SUM_STRIDE = THREADS * 4;   // bytes of all threads' sums[i]
  static constexpr int BLOCK_FLOATS = C::BM * 64;  // room for one block's sums
  static_assert((C::SPLIT - 1) * BLOCK_FLOATS * 4 == C::SUMS_BYTES);

  // [send]
  template <int SUMS>
  __device__ void send(const float (&sums)[SUMS]) const {
    const int thread = int(threadIdx.x) % THREADS;
    gg::ptx::mbarrier_wait_parity(read_addr(), phase_ ^ 1);  // rank 0 has read what was sent before
    const auto landed = gg::ptx::mapa(landed_addr_, 0);
    const auto to = gg::ptx::mapa(gg::ptx::shared_addr(sums_ + (k_rank_ - 1) * BLOCK_FLOATS + thread), 0);
#pragma unroll
    for (int i = 0; i < SUMS; ++i) gg::ptx::st_async({to.value + i * SUM_STRIDE}, sums[i], landed);
  }
  // [/send]

  // [receive]
  template <int SUMS>
  __device__ void receive_and_add(float (&sums)[SUMS]) const {
    const int thread = int(threadIdx.x) % THREADS;
    // Bytes that land before this arrival end no phase: a phase wants one arrival, too.
    if (thread == 0) gg::ptx::mbarrier_arrive_expect_tx(landed_addr_, (ranks_ - 1) * SUMS * SUM_STRIDE);
    gg::ptx::mbarrier_wait_parity(landed_addr_, phase_);  // the sums of all senders are here
#pragma unroll 1
    for (int rank = 1; rank < ranks_; ++rank) {
      const float* from = sums_ + (rank - 1) * BLOCK_FLOATS + thread;
#pragma unroll
      for (int i = 0; i < SUMS; ++i) sums[i] += from[i * THREADS];
    }
    // bar_sync: all 128 threads have their values. Thread r says so to the sender of rank r.
    gg::ptx::bar_sync(barrier_, THREADS);
    if (thread > 0 && thread < ranks_) arrive_in<C::BLOCKS>(thread, read_addr());
  }
  // [/receive]

  __device__ uint32_t read_addr() const { return landed_addr_ + 8; }

  int k_rank_, ranks_, barrier_;
  int phase_ = 0;  // parity of the number of tiles sent or added
  uint32_t landed_addr_;
  float* sums_;
};

}  // namespace chapter
