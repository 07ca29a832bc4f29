// SPDX-License-Identifier: MIT
//
// A worker takes the index of its next tile from a counter in global memory, at the time that
// schedule.cuh chooses. So workers with cheap tiles get more of them.

#pragma once

#include <atomic>

namespace chapter {

// Each launch has a counter for its tiles, so that many launches may be under way at the same time.
// Every COUNTERS-th launch has the same one, and these must not overlap. Nothing checks that.
constexpr int COUNTERS = 4096;
static __device__ int claimed[COUNTERS];  // the claims of its launch so far; 0 between launches

// On the host: the number of the next launch's counter. A recorded launch has it again in each replay.
inline int next_counter() {
  static std::atomic<unsigned> launches = 0;
  static_assert(~0u % COUNTERS == COUNTERS - 1u, "else a counter is reused too soon after 2^32 launches");
  return int(launches++ % COUNTERS);
}

// Who: a whole warp, one in each worker. Returns the next index that nobody has. Each worker has
// its own number as its first index, so claims begin at `workers`.
// `tiles`: how many indices have a tile: 0 to tiles - 1. All workers of a launch must pass the same.
// Before: griddepcontrol_wait, so that the 0 is visible that the counter's last launch wrote.
// Relies on: all workers of a launch claim, or none. One that took tiles in turn would take indices
// that others claim. Each claims once for each index below `tiles` that it got, its first one too,
// and not again. So there are `tiles` claims, also with more workers than tiles. They return
// `workers` to workers + tiles - 1, each once, and a worker's indices grow. The last one sets the
// counter to 0.
// Danger: nothing checks that. With `tiles` too large, or too few claims, the counter is not set
// to 0, and a later launch that has it may leave tiles out. With `tiles` too small, or too many
// claims, it is set to 0 while others still claim. Then tiles are made twice, which is wrong where
// a kernel adds to D, and a worker's indices go down, so schedule.cuh may find a tile outside D.
// With `tiles` too small by `workers` or more the launch never ends: the worker that sets the
// counter to 0 has a tile, and claims on.
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
