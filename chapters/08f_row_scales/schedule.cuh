// SPDX-License-Identifier: MIT
//
// The list of all groups' tiles, as in chapter 07a: one block writes it. Then each of W pairs of blocks takes
// every W-th tile, and each of its warps finds them for itself.

#pragma once

#include "config.cuh"

namespace chapter {

constexpr int MAX_GROUPS = 4096, PLANNERS = 1024;

// At a fixed address: a launch allocates nothing, and a graph can hold it. One launch at a time may use it.
__device__ struct {
  int first[MAX_GROUPS + 1];  // number of each group's first tile; [groups]: of all tiles; [0] stays 0
} schedule;

// One block writes the schedule. A thread counts the tiles of a group of the batch; then all make
// prefix sums, in steps of 1, 2, 4 .. groups.
__global__ void __launch_bounds__(PLANNERS, 1) plan(const int* ends, int n, int groups, int bm, int bn) {
  const int thread = int(threadIdx.x), threads = int(blockDim.x);
  __shared__ int counts[PLANNERS];
  for (int batch = 0, earlier = 0; batch < groups; batch += threads) {
    const int g = batch + thread, rows = g < groups ? ends[g] - (g > 0 ? ends[g - 1] : 0) : 0;
    if (rows < 0 || rows % PAD_ROWS != 0) __trap();  // else rows have no tile, or wrong scales
    counts[thread] = rows / bm * ((n + bn - 1) / bn);
    for (int step = 1; step < threads; step *= 2) {
      __syncthreads();  // sums of up to `step` groups are written
      const int below = thread >= step ? counts[thread - step] : 0;
      __syncthreads();  // and read, before they are overwritten
      counts[thread] += below;
    }
    if (g < groups) schedule.first[g + 1] = earlier + counts[thread];
    __syncthreads();  // the sum of the whole batch is written
    earlier += counts[threads - 1];
    __syncthreads();  // and read by all, before the next batch overwrites it
  }
}

struct Tile {
  int group;
  int row0;  // its first row, as A and D count
  int col0;
};

// This pair's tiles, for a warp that walks through them.
template <class C>
class Tiles {
 public:
  __device__ Tiles(const int* ends, int groups)
      : ends_(ends), groups_(groups), count_(schedule.first[groups]) {}

  // Who: a whole warp. False: there is no other tile. Tiles of a group go column after column.
  __device__ bool next(Tile& tile) {
    if (index_ >= count_) return false;
    const int lane = int(threadIdx.x) % 32;
    // Each lane looks at one of 32 groups: does it end after this tile? The last group always does.
    unsigned after;
    while (!(after = __ballot_sync(~0u, index_ < schedule.first[min(batch_ + lane + 1, groups_)]))) {
      batch_ += 32;  // never back: the numbers that a walk gets only grow
    }
    const int group = batch_ + __ffs(after) - 1, in_group = index_ - schedule.first[group];
    const int begin = group > 0 ? ends_[group - 1] : 0, tiles_m = (ends_[group] - begin) / BM;
    tile = {group, begin + in_group % tiles_m * BM, in_group / tiles_m * BN};
    index_ += int(gridDim.y);
    return true;
  }

 private:
  const int* ends_;
  int groups_, count_;  // how many groups, and tiles of all groups
  int index_ = int(blockIdx.y);
  int batch_ = 0;  // the first of the 32 groups that are looked at
};

}  // namespace chapter
