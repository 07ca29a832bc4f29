// SPDX-License-Identifier: MIT
//
// A worker takes its next tile from a counter in global memory, so the one that is done first is first.

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

// With fewer slices tiles go in turn, for a claim is a way to the L2 and back. Nobody has tuned this number.
constexpr int LEAST_SLICES = 32;

// Who: a whole warp. Returns the index of the next tile that nobody has: the first `workers` tiles are taken.
// Invariant: a counter is 0 between launches. After each of its tiles a worker claims once, and once more for
// each index that it skips, so there are `tiles` claims. The last `workers` of them find no tile, and the
// very last sets the counter back to 0. Danger: no error is reported here. With `tiles` too large, or too few
// claims, a later launch with this counter leaves tiles out. With `tiles` too small, or too many claims,
// tiles are made twice in this launch.
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
