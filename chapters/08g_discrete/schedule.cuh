// SPDX-License-Identifier: MIT
//
// Chapter 08g: the list of all groups' tiles, as in chapter 07a: one block writes it, then every pair of
// blocks takes every W-th tile.

#pragma once

#include "common/check.h"

namespace chapter {

constexpr int MAX_GROUPS = 4096, PLANNERS = 1024;

// At a fixed place: a launch allocates nothing, and a graph can hold it. One launch at a time may use it.
__device__ struct {
  int first[MAX_GROUPS + 1];  // tile of each group in the list of all; behind them, how many; [0] stays 0
} schedule;

// One block writes the schedule: a thread counts its group's tiles; then all add them up, those of 1, 2, 4
// .. groups at a time.
__global__ void __launch_bounds__(PLANNERS, 1) plan(const int* ends, int n, int groups, int bm, int bn) {
  const int thread = int(threadIdx.x), threads = int(blockDim.x);
  __shared__ int counts[PLANNERS];
  for (int batch = 0, before = 0; batch < groups; batch += threads) {
    const int g = batch + thread, rows = g < groups ? ends[g] - (g > 0 ? ends[g - 1] : 0) : 0;
    GG_DEVICE_ASSERT(rows >= 0 && rows % 256 == 0);  // every tile has all its rows
    counts[thread] = rows / bm * ((n + bn - 1) / bn);
    for (int step = 1; step < threads; step *= 2) {
      __syncthreads();  // sums of `step` groups are there
      const int below = thread >= step ? counts[thread - step] : 0;
      __syncthreads();  // and have been read
      counts[thread] += below;
    }
    if (g < groups) schedule.first[g + 1] = before + counts[thread];
    __syncthreads();
    before += counts[threads - 1];
    __syncthreads();  // everybody knows where the next batch begins
  }
}

struct Place {  // of a tile
  int g;
  int row0;  // its first row, as A and D count
  int col0;
};
// Who: a whole warp. Tiles of a group go column after column. `batch`: the first group this warp looks at.
__device__ inline Place place_of(int tile, const int* ends, int groups, int bm, int bn, int& batch) {
  const int lane = int(threadIdx.x) % 32;
  unsigned after;  // which of 32 groups end after this tile: each lane looks at one
  while (!(after = __ballot_sync(~0u, tile < schedule.first[min(batch + lane + 1, groups)]))) batch += 32;
  const int g = batch + __ffs(after) - 1, in_group = tile - schedule.first[g];
  const int begin = g > 0 ? ends[g - 1] : 0, tiles_m = (ends[g] - begin) / bm;
  return {g, begin + in_group % tiles_m * bm, in_group / tiles_m * bn};
}

}  // namespace chapter
