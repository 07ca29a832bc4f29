// SPDX-License-Identifier: MIT
//
// Chapter 08h: the list of all groups' tiles, as in chapter 07a, and the warp that takes tiles from it for
// all warps of a pair of blocks.

#pragma once

#include "common/check.h"
#include "common/ptx/cluster.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/shared.cuh"
#include "common/ptx/warp.cuh"

namespace chapter {

constexpr int MAX_GROUPS = 4096, PLANNERS = 1024;

// At a fixed place: a launch allocates nothing, and a graph can hold it. One launch at a time may use it.
__device__ struct {
  int first[MAX_GROUPS + 1];  // tile of each group in the list of all; behind them, how many; [0] stays 0
  int next;                   // tile that nobody has claimed
} schedule;

// One block writes the schedule: a thread counts its group's tiles; then all add them up, those of 1, 2, 4
// .. groups at a time.
__global__ void __launch_bounds__(PLANNERS, 1) plan(const int* ends, int n, int groups, int bm, int bn) {
  const int thread = int(threadIdx.x), threads = int(blockDim.x);
  __shared__ int counts[PLANNERS];
  if (thread == 0) schedule.next = 0;
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

// How tiles get to the warps that work on them: a ring in each block. A number that is no tile's is the last.
struct Mailbox {
  static constexpr int AHEAD = 2;  // tiles that are known before they are begun
  uint64_t full[AHEAD];            // a number has come
  uint64_t empty[AHEAD];           // and all warps of all blocks have read it; rank 0's is used
  int tile[AHEAD];

  __device__ void init(int readers) {  // by one thread; `readers`: warps
    for (int i = 0; i < AHEAD; ++i) {
      gg::ptx::mbarrier_init(gg::ptx::shared_addr(&full[i]), 1);
      gg::ptx::mbarrier_init(gg::ptx::shared_addr(&empty[i]), readers);
    }
  }

  // Who: a whole warp of rank 0. Hands out tile after tile until there is none.
  template <int BLOCKS>
  __device__ void hand_out(int tiles, bool dynamic) {
    const int lane = int(threadIdx.x) % 32;
    for (int i = 0, number = -1; number < tiles; ++i) {
      const int slot = i % AHEAD;
      gg::ptx::mbarrier_wait_parity(gg::ptx::shared_addr(&empty[slot]), i / AHEAD % 2 ^ 1);
      __syncwarp();  // a slow lane could find the place two phases on
      // [claim]
      number = int(blockIdx.y) + i * int(gridDim.y);
      if (dynamic) {
        if (lane == 0) number = atomicAdd(&schedule.next, 1);
        number = __shfl_sync(~0u, number, 0);
      }
      if (lane < BLOCKS) {  // each lane to the block of this rank
        const auto bar = gg::ptx::mapa(gg::ptx::shared_addr(&full[slot]), lane);
        gg::ptx::mbarrier_arrive_expect_tx(bar, sizeof(int));
        gg::ptx::st_async(gg::ptx::mapa(gg::ptx::shared_addr(&tile[slot]), lane), uint32_t(number), bar);
      }
      // [/claim]
    }
  }

  // Who: a whole warp. Number i of this pair's tiles.
  __device__ int read(int i) {
    const int slot = i % AHEAD;
    gg::ptx::mbarrier_wait_parity(gg::ptx::shared_addr(&full[slot]), i / AHEAD % 2);
    const int number = tile[slot];
    __syncwarp();  // all lanes have read it
    // "Read" must not reach the first block before this load has been made: another number would be read
    // here.
    if (gg::ptx::elect() && gg::ptx::has_come(number)) {
      gg::ptx::mbarrier_arrive(gg::ptx::mapa(gg::ptx::shared_addr(&empty[slot]), 0));
    }
    return number;
  }
};

}  // namespace chapter
