// SPDX-License-Identifier: MIT
//
// How the sums of a tile come together whose slices are in several runs. All but the run with the tile's
// slice 0 write theirs to a place in global memory, and raise a flag. The worker that has slice 0 adds them
// to its own in the order of slices: D has the same bits in each launch with the same plan, whoever takes
// which run.

#pragma once

#include "common/kernel/ptx/barrier.cuh"
#include "common/kernel/ptx/global.cuh"
#include "config.cuh"

namespace chapter {

// A place and a flag for each run, block of the worker, and consumer. A run has slices of one tile, so each
// is used once in a launch at most.
// Danger: all launches have the same. So two must not overlap: griddepcontrol_wait keeps apart those of
// one stream, and nothing keeps apart those of different streams, or two instances of a recorded graph.
static __device__ float workspace[MOST_BLOCKS * WORKSPACE_FLOATS];
static __device__ int flags[MOST_BLOCKS * MOST_CONSUMERS];  // 1: the sums are there; 0 between launches

// Who: each of the 128 threads of a consumer. Thread t has the same elements of the tile in all blocks.
template <class C>
class Workspace {
 public:
  // `barrier`: a named barrier that only these threads use.
  __device__ Workspace(int n_rank, int consumer, int barrier)
      : in_worker_(n_rank * C::CONSUMERS + consumer), barrier_(barrier) {}

  // Writes the sums of this run. They may be changed then. Their flag waits for `proceed`.
  // [give]
  template <int SUMS>
  __device__ void give(const float (&sums)[SUMS], int run) {
    float* const to = workspace + place(run) * PLACE + thread();
#pragma unroll
    for (int i = 0; i < SUMS; ++i) __stcg(to + i * THREADS, sums[i]);
    given_ = place(run);
  }
  // [/give]

  // Raises the flag of what `give` wrote, if it is not raised yet. Until the writes are there that takes as
  // long as a way to the L2 and back, so it is called while the next tile's products are queued.
  // [proceed]
  __device__ void proceed() {
    if (given_ < 0) return;
    gg::ptx::bar_sync(barrier_, THREADS);  // all have written, and the release is for what all wrote
    if (thread() == 0) gg::ptx::st_release_gpu(&flags[given_], 1);
    given_ = -1;
  }
  // [/proceed]

  // Adds the sums of `runs` runs behind this one, in their order.
  // Ends: who has one of them waits for nobody in it, and its index is lower. Each worker takes its indices in
  // order, so each wait is for lower ones and there is no cycle. And each worker runs: the grid has a block
  // for each multiprocessor at most, and all are there at the same time.
  // [add]
  template <int SUMS>
  __device__ void add(float (&sums)[SUMS], int run, int runs) {
    if (runs == 0) return;
    proceed();  // what others wait for comes first
    for (int other = run + 1 + thread(); other <= run + runs; other += THREADS) {
      while (gg::ptx::ld_acquire_gpu(&flags[place(other)]) == 0) {
      }
      flags[place(other)] = 0;  // nobody else reads it, and nobody raises it again in this launch
    }
    gg::ptx::bar_sync(barrier_, THREADS);  // all sums of all these runs are there, for all threads
    // Where a tile is narrow, the sums of several runs are under way at a time: as many as registers have
    // room for. Blocks of 32x64 want few, so that one of the next launch fits beside one of this.
    constexpr int UNROLL = (C::CONSUMERS == 1 && C::BM > 32 ? 128 : 64) / SUMS;
#pragma unroll(UNROLL < 1 ? 1 : UNROLL)
    for (int other = run + 1; other <= run + runs; ++other) {
      const float* const from = workspace + place(other) * PLACE + thread();
#pragma unroll
      for (int i = 0; i < SUMS; ++i) sums[i] += __ldcg(from + i * THREADS);
    }
  }
  // [/add]

 private:
  static constexpr int THREADS = 128;
  // Floats of a place. A thread's are THREADS apart, so that a warp's are neighbours. (Four neighbours for a
  // thread, in one instruction, would want registers side by side: ptxas spilled some.)
  static constexpr int PLACE = C::BM * 64;
  static_assert(C::CONSUMERS * PLACE <= WORKSPACE_FLOATS && C::CONSUMERS <= MOST_CONSUMERS);

  __device__ static int thread() { return int(threadIdx.x) % THREADS; }
  __device__ int place(int run) const { return run * C::CLUSTER * C::CONSUMERS + in_worker_; }

  int in_worker_, barrier_;
  int given_ = -1;  // the place whose flag is to be raised
};

}  // namespace chapter
