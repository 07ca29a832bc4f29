// SPDX-License-Identifier: MIT
//
// The plan of a launch: which tiles stay whole, and how those that fill no round are cut. Into pieces, or
// their slices are numbered through, tile by tile, and dealt out in runs of equal length. A run may begin
// inside a tile, contain whole ones, and end inside another.

#pragma once

#include <climits>

#include "config.cuh"

namespace chapter {

// Runs cost a tile's sums on their way through the workspace, and the wait for them: as much as so many
// slices. A launch with fewer slices a tile has no runs.
constexpr int OVERHEAD_SLICES = 8;

// The cycles of a slice: the longest of its products, its loads, and the time until the next load lands.
template <class C>
__host__ __device__ constexpr int slice_cycles(int rows) {
  const int multiply = rows * C::BN * BK / 2048;                   // multiply-adds a cycle
  const int fetch = (rows / C::CLUSTER + C::BN) * ROW_BYTES / 56;  // bytes a cycle from the L2
  const int latency = 2600 / C::STAGES;
  const int longer = multiply > fetch ? multiply : fetch;
  return longer > latency ? longer : latency;
}

// What a worker has of a tile: some of its slices.
struct Segment {
  int tile;           // counted from the first tile that is dealt out
  int first, slices;  // slices 0: none
  int run, adds;      // as in Tile
};

// Indices 0 to whole_tiles - 1 are those of tiles that stay whole. Behind them: pieces, or runs.
struct Plan {
  int whole_tiles = INT_MAX;
  int indices = 0;
  int pieces = 1;                  // of each tile after the whole ones; 1 where there are runs
  int runs = 0;                    // 0: pieces
  int slices = 0;                  // of a tile
  int run_slices = 0, longer = 0;  // of a run; so many runs have one more: the first ones

  // One in which all tiles stay whole: as far as it matters to who finds the first one.
  __device__ static Plan whole(int slices) {
    Plan plan;
    plan.slices = slices;
    return plan;
  }
  // The first slice of a run, counted from the first tile that is dealt out.
  __device__ int begin_of(int run) const { return run * run_slices + min(run, longer); }
  // The run that has this slice.
  __device__ int run_of(int slice) const {
    const int in_longer = longer * (run_slices + 1);
    // Where run_slices is 0 all slices are in longer runs.
    return slice < in_longer ? slice / (run_slices + 1) : longer + (slice - in_longer) / run_slices;
  }
  // The part-th segment of an index that is a run's; no slices: there is none. The last run has the first
  // index. So the worker that adds up a tile waits for those whose indices are lower than its own: who
  // takes indices in turn waits for blocks of lower numbers, who claims for those who claimed before.
  __device__ Segment segment(int index, int part) const {
    const int run = runs - 1 - (index - whole_tiles);
    if (run < 0) return {0, 0, 0, 0, 0};
    const int begin = begin_of(run), end = begin_of(run + 1);
    const int tile = begin / slices + part, tile_begin = tile * slices, tile_end = tile_begin + slices;
    const int from = max(begin, tile_begin), to = min(end, tile_end);
    if (from >= to) return {0, 0, 0, 0, 0};
    const int adds = from == tile_begin && to < tile_end ? run_of(tile_end - 1) - run : 0;
    return {tile, from - tile_begin, to - from, run, adds};
  }
};

// Whether a launch may have runs, whatever its tiles.
template <class C>
__device__ bool may_share(int slices, int workers) {
  return C::SPLIT == 1 && slices > OVERHEAD_SLICES && slices < 1 << 20 &&
         workers * C::BLOCKS <= MOST_BLOCKS;  // places in the workspace
}

// Whether workers may begin with a run: there is one full round at most, and it would be dealt out too. Where
// it is false a worker begins with the tile of its own number, whatever the plan. No division.
template <class C>
__device__ bool begins_with_run(int all_tiles, int slices, int workers) {
  const int rounds = all_tiles <= workers ? 1 : 2;
  return may_share<C>(slices, workers) && all_tiles <= 2 * workers &&
         all_tiles * slices < (rounds * slices - OVERHEAD_SLICES) * workers;
}

// The plan for tiles_m tiles in all columns of tiles that stand in one row, tiles_n columns; rows: of all
// groups; slices: of a tile. All workers must call it with the same numbers, and so must a guess that holds.
// [plan]
template <class C>
__device__ Plan make_plan(int tiles_m, int tiles_n, int rows, int slices, int workers) {
  const int all_tiles = tiles_m * tiles_n;
  Plan plan;
  plan.indices = all_tiles;
  plan.slices = slices;
  const bool shares = all_tiles <= 2 * workers ? begins_with_run<C>(all_tiles, slices, workers)
                                               : may_share<C>(slices, workers);
  if (all_tiles == 0 || (all_tiles <= workers && !shares)) return plan;
  // All rounds but the last, which has 1 to `workers` tiles: a full one counts as the last, too.
  const int full_rounds = (all_tiles - 1) / workers, last_tiles = all_tiles - full_rounds * workers;
  // Each tile is taken to have the launch's average of rows. Into as many pieces as have room in one
  // round, of whole steps.
  const int steps = (rows - 1) / tiles_m / STEP + 1;
  int steps_of_piece = steps;
  if (full_rounds > 0) {
    const int most = workers / last_tiles;
    steps_of_piece = (steps + most - 1) / most;
  }
  if (shares && last_tiles < workers) {
    // The last full round is dealt out too, so that a run has a tile's slices at least and a tile is in two
    // runs at most. Without a full round there are more.
    const int whole_tiles = max(0, full_rounds - 1) * workers,
              all_slices = (all_tiles - whole_tiles) * slices;
    const int share = (all_slices - 1) / workers + 1, adds = (slices - 1) / share;
    const int of_slice = slice_cycles<C>(steps * STEP);
    const int of_add = steps * STEP * C::BN * 4 / 56;  // the sums of a tile, from the L2
    const float cut =
        float(slices) * float((full_rounds > 0 ? of_slice : 0) + slice_cycles<C>(steps_of_piece * STEP));
    if (float(share + OVERHEAD_SLICES) * float(of_slice) + float(adds) * float(of_add) < cut) {
      plan.whole_tiles = whole_tiles;
      plan.runs = workers;
      plan.run_slices = all_slices / workers;
      plan.longer = all_slices % workers;
      plan.indices = whole_tiles + workers;
      return plan;
    }
  }
  if (full_rounds > 0) {
    plan.whole_tiles = full_rounds * workers;
    plan.pieces = (steps + steps_of_piece - 1) / steps_of_piece;
    plan.indices = plan.whole_tiles + last_tiles * plan.pieces;
  }
  return plan;
}
// [/plan]

}  // namespace chapter
