// SPDX-License-Identifier: MIT
//
// A worker's first tile if all groups have as many rows as the caller says, computed without a look
// at memory; and the check of that by the offsets.

#pragma once

#include "common/kernel/types.cuh"
#include "config.cuh"
#include "even_tiles.cuh"

namespace chapter {

template <class C>
struct Guess {
  int rows_each;  // rows of every group, as the caller says; 0: groups differ, or nobody knows
  int groups;
  Tile tile = {-1, 0, 0, 0};  // this block's: col0 is the first of its own columns
  // So many of the tile's slices are loaded before the block knows whether the guess holds.
  // - At most STAGES: load_tiles waits for no `empty` before them.
  // - The same in both blocks of a pair, which load rows of A for each other: both multiply all of K.
  // - If the guess does not hold, multiply_tiles releases as many stages without a product, and its
  //   rings go on from the stage that load_tiles goes on from.
  int slices = 0;
  bool one_each = false;  // if the guess holds, no worker has a second tile

  // n_rank: this block's rank along N. block_slices: how many slices of K it multiplies.
  // For equal groups this must be the tile that TileFinder finds for this worker, since the check
  // compares offsets, not tiles: the same numbers of tiles, and worker w begins with tile w.
  // [guess]
  __device__ Guess(int rows_each, int groups, int n, int n_rank, int block_slices)
      : rows_each(rows_each), groups(groups) {
    if (rows_each == 0) return;
    const int worker = int(blockIdx.x) / C::BLOCKS, workers = int(gridDim.x) / C::BLOCKS;
    const int tiles_m = tiles_in_column<C>(rows_each), tiles_n = (n + C::COLUMNS - 1) / C::COLUMNS;
    const int of_group = tiles_m * tiles_n;
    one_each = groups * of_group <= workers;
    const int group = worker / of_group;
    if (group >= groups) return;
    tile = tile_of_group<C>(group, group * rows_each, rows_each, tiles_m, tiles_n, worker - group * of_group);
    tile.col0 += n_rank * C::BN;
    slices = min(C::STAGES, block_slices);
  }
  // [/guess]
  // [holds]
  // Who: a whole warp. Whether all groups have rows_each rows. All warps of the worker get the same
  // answer, for nobody writes to offsets while the kernel runs.
  __device__ bool holds(const gg::Offsets& offsets) const {
    if (rows_each == 0) return false;
    bool equal = true;
    for (int group = int(threadIdx.x) % 32; group <= groups; group += 32) {
      equal &= offsets[group] == group * rows_each;
    }
    return __all_sync(~0u, equal);
  }
  // [/holds]
  // Whether nothing is sent through the mailbox, not even the end. schedule_tiles and TileReceiver
  // must both go by this: a receiver that waited for what is never sent would wait for ever.
  __device__ bool nothing_sent(bool holds) const { return holds && one_each; }
};

}  // namespace chapter
