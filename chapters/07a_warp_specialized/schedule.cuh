// SPDX-License-Identifier: MIT
//
// The tiles of all groups have numbers, group after group. `plan`, a launch of one block, writes the
// number of each group's first tile. In the product's launch, block b of W has tiles b, b + W ..
// Its loading warp finds where they are; its consumers run through the same numbers.

#pragma once

#include "config.cuh"

namespace chapter {

constexpr int MAX_GROUPS = 4096, PLANNERS = 1024;

// At a fixed address: a launch allocates nothing, and a graph can hold it. Launches overwrite each
// other's, so only one may run at a time.
__device__ struct {
  int first[MAX_GROUPS + 1];  // each group's first tile; [groups]: number of all tiles; [0] stays 0
} schedule;

// Who: one block, of at most PLANNERS threads. A thread counts the tiles of one group of a batch;
// then all make prefix sums, in steps of 1, 2, 4 .. groups. bm, bn: C::BM and C::BN of `Tiles`.
__global__ void __launch_bounds__(PLANNERS, 1)
    plan(const __grid_constant__ gg::Offsets offsets, int n, int groups, int bm, int bn) {
  const int thread = int(threadIdx.x), threads = int(blockDim.x);
  __shared__ int counts[PLANNERS];
  // `earlier`: tiles of the batches before.
  for (int batch = 0, earlier = 0; batch < groups; batch += threads) {
    const int g = batch + thread, rows = g < groups ? offsets[g + 1] - offsets[g] : 0;
    counts[thread] = (rows + bm - 1) / bm * ((n + bn - 1) / bn);
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

// This block's tiles, for the loading warp. multiply.cuh goes through the same numbers on its own.
template <class C>
class Tiles {
 public:
  __device__ Tiles(const gg::Offsets& offsets, int groups)
      : offsets_(offsets), groups_(groups), count_(schedule.first[groups]) {}

  // [next]
  // Who: a whole warp. False: this block has no other tile. Tiles of a group go column after column.
  __device__ bool next(Tile& tile) {
    if (index_ >= count_) return false;
    const int lane = int(threadIdx.x) % 32;
    unsigned after;  // bit l: group batch_ + l ends after this tile
    while (!(after = __ballot_sync(~0u, index_ < schedule.first[min(batch_ + lane + 1, groups_)]))) {
      batch_ += 32;  // never back: a block's numbers only grow
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
  const gg::Offsets& offsets_;   // the kernel's parameter, which outlives this
  int groups_, count_;           // how many groups and tiles there are
  int index_ = int(blockIdx.x);  // number of the next tile
  int batch_ = 0;                // the first of the 32 groups that are looked at
};

}  // namespace chapter
