// SPDX-License-Identifier: MIT
//
// The list of all groups' tiles: a launch of one block writes it, then each block takes every W-th of W
// blocks' tiles. Its loading warp finds them.

#pragma once

#include "config.cuh"

namespace chapter {

constexpr int MAX_GROUPS = 4096, PLANNERS = 1024;

// At a fixed place: a launch allocates nothing, and a graph can hold it. One launch at a time may use it.
__device__ struct {
  int first[MAX_GROUPS + 1];  // number of each group's first tile; [groups]: of all tiles; [0] stays 0
} schedule;

// One block writes the schedule: a thread counts its group's tiles; then all add them up, those of 1, 2, 4
// .. groups at a time.
__global__ void __launch_bounds__(PLANNERS, 1)
    plan(const __grid_constant__ gg::Offsets offsets, int n, int groups, int bm, int bn) {
  // [plan]
  const int thread = int(threadIdx.x), threads = int(blockDim.x);
  __shared__ int counts[PLANNERS];
  for (int batch = 0, earlier = 0; batch < groups; batch += threads) {
    const int g = batch + thread, rows = g < groups ? offsets[g + 1] - offsets[g] : 0;
    counts[thread] = (rows + bm - 1) / bm * ((n + bn - 1) / bn);
    for (int step = 1; step < threads; step *= 2) {
      __syncthreads();  // sums of `step` groups are there
      const int below = thread >= step ? counts[thread - step] : 0;
      __syncthreads();  // and have been read
      counts[thread] += below;
    }
    if (g < groups) schedule.first[g + 1] = earlier + counts[thread];
    __syncthreads();
    earlier += counts[threads - 1];
    __syncthreads();  // everybody knows where the next batch begins
  }
  // [/plan]
}

// This block's tiles, for a warp that walks through them.
template <class C>
class Tiles {
 public:
  __device__ Tiles(const gg::Offsets& offsets, int groups)
      : offsets_(offsets), groups_(groups), count_(schedule.first[groups]) {}

  // [next]
  // Who: a whole warp. False: there is no other tile. Tiles of a group go column after column.
  __device__ bool next(Tile& tile) {
    if (index_ >= count_) return false;
    const int lane = int(threadIdx.x) % 32;
    unsigned after;  // which of 32 groups end after this tile: each lane looks at one
    while (!(after = __ballot_sync(~0u, index_ < schedule.first[min(batch_ + lane + 1, groups_)]))) {
      batch_ += 32;  // never back: the numbers that a walk gets only grow
    }
    const int group = batch_ + __ffs(after) - 1, in_group = index_ - schedule.first[group];
    const int begin = offsets_[group], rows = offsets_[group + 1] - begin;
    const int tiles_m = (rows + C::BM - 1) / C::BM, r0 = in_group % tiles_m * C::BM;
    tile = {group, begin + r0, min(C::BM, rows - r0), in_group / tiles_m * C::BN};
    index_ += int(gridDim.x);
    return true;
  }
  // [/next]

 private:
  const gg::Offsets& offsets_;
  int groups_, count_;  // of groups, of all tiles
  int index_ = int(blockIdx.x);
  int batch_ = 0;  // the first of the 32 groups that are looked at
};

}  // namespace chapter
