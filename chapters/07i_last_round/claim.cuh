// SPDX-License-Identifier: MIT
//
// The worker that is done first takes the next tile, by a counter in global memory.

#pragma once

#include <atomic>

namespace chapter {

// Each launch has a counter for its tiles, so that many launches may be under way at the same time.
constexpr int COUNTERS = 4096;
static __device__ int claimed[COUNTERS];

// On the host: the counter of the next launch.
inline int next_counter() {
  static std::atomic<unsigned> launches = 0;
  return int(launches++ % COUNTERS);
}

// Tiles of fewer slices are handed out by their indices, for a claim is a way to the L2 and back. Nobody has
// tuned this number.
constexpr int LEAST_SLICES = 32;

// Who: a whole warp. Returns the index of the next tile that nobody has: the first `workers` tiles are taken.
// Invariant: a counter is 0 between launches. Each worker claims once behind each of its tiles, so there are
// `tiles` claims. The last `workers` of them find no tile, and the very last sets the counter back to 0.
// Where a change lets workers count different `tiles`, or claim more or less often, nothing here goes wrong:
// the next launch that has this counter leaves tiles out, or makes them twice.
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
