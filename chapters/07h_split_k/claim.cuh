// SPDX-License-Identifier: MIT
//
// The worker that is done first takes the next tile, by a counter.

#pragma once

#include <atomic>

namespace chapter {

// A launch has one of these counters for its tiles: so many launches may be under way at the same time.
constexpr int COUNTERS = 4096;
static __device__ int claimed[COUNTERS];
inline int next_counter() {  // on the host
  static std::atomic<unsigned> launches = 0;
  return int(launches++ % COUNTERS);
}

// Tiles of fewer slices go in turn, for a claim is a way to the L2 and back: a guess that nobody has tuned.
constexpr int LEAST_SLICES = 32;

// By a whole warp: the index of the next tile that nobody has, behind the first one of each worker.
// Invariant: a counter is 0 at first and between launches. Each worker claims once behind each of its tiles
// and empty pieces: as many claims as `tiles`. The last `workers` of them find no tile, and the very last
// sets the counter back. All must count the same `tiles`: with too many the counter is not set back, and the
// next launch that has it leaves tiles out; with too few, tiles are made twice.
// [claim]
__device__ inline int claim(int counter, int workers, int tiles) {
  int index = 0;
  if (threadIdx.x % 32 == 0) {
    index = workers + atomicAdd(&claimed[counter], 1);
    if (index == workers + tiles - 1) atomicExch(&claimed[counter], 0);
  }
  return __shfl_sync(~0u, index, 0);
}
// [/claim]

}  // namespace chapter
