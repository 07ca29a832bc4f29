// SPDX-License-Identifier: MIT
//
// The plan of a launch: which tiles stay whole, and how those that fill no round are cut. Into pieces of
// rows, or into equal shares of their slices, runs, whose sums are added.

#pragma once

#include <climits>

#include "config.cuh"

namespace chapter {

// Cycles from the last write of a run's sums until the owner adds the first of them. Counted by hand, in
// ways to the L2 and back of some 700 cycles each: the fence that waits for the writes, the flag's store
// and the poll that misses it, the poll that sees it, and the first sums' load.
constexpr int FLAG_CYCLES = 2800;
// A run has so many slices at least: with fewer the pipeline does not fill.
constexpr int LEAST_OF_RUN = 4;
// There are runs where the last two rounds take this part of their cycles otherwise, or less: a tenth is
// about what the cycles above are known to.
constexpr float LEAST_GAIN = 0.9f;

// The cycles of a slice: the longest of its products, its loads, and the time until the next load lands.
template <class C>
__host__ __device__ constexpr int slice_cycles(int rows) {
  const int multiply = rows * C::BN * BK / 2048;                   // multiply-adds a cycle
  const int fetch = (rows / C::CLUSTER + C::BN) * ROW_BYTES / 56;  // bytes a cycle from the L2
  const int latency = 2600 / C::STAGES;
  const int longer = multiply > fetch ? multiply : fetch;
  return longer > latency ? longer : latency;
}

// The cycles in which a tile's sums go to the L2, or come from there: 4 bytes each, 56 a cycle.
template <class C>
__host__ __device__ constexpr int sums_cycles(int rows) {
  return rows * C::BN * 4 / 56;
}

// Into how many runs a tile of so many rows is cut, `most` at most: one more run makes runs shorter by
// 1 / (runs * (runs + 1)) of the tile's slices, and costs its owner the sums of one more.
template <class C>
__host__ __device__ constexpr int runs_of_tile(int slices, int rows, int most) {
  const int cycles = slices * slice_cycles<C>(rows), of_sums = sums_cycles<C>(rows);
  if (most > slices / LEAST_OF_RUN) most = slices / LEAST_OF_RUN;
  int runs = 1;
  while (runs < most && runs * (runs + 1) * of_sums < cycles) ++runs;
  return runs;
}

// The cycles of a tile that is cut into so many runs: the longest run's slices, its sums' writes, the flag,
// and the owner's reads. One run: its slices.
template <class C>
__host__ __device__ constexpr int cycles_in_runs(int slices, int rows, int runs) {
  const int multiply = ((slices - 1) / runs + 1) * slice_cycles<C>(rows);
  return runs > 1 ? multiply + FLAG_CYCLES + runs * sums_cycles<C>(rows) : multiply;
}

// What a worker has of a tile: some of its slices.
struct Segment {
  int tile;           // counted from the first tile that is cut
  int first, slices;  // slices 0: none
  int run, adds;      // as in Tile
};

// Indices 0 to whole_tiles - 1 are those of tiles that stay whole. Behind them: pieces, or runs.
struct Plan {
  int whole_tiles = INT_MAX;
  int indices = 0;
  int pieces = 1;  // of each tile after the whole ones; 1 where there are runs
  int runs = 0;    // of all tiles that are cut; 0: pieces
  int parts = 1;   // runs of a tile
  int slices = 0;  // of a tile

  // One in which all tiles stay whole: as far as it matters to who finds the first one.
  __device__ static Plan whole(int slices) {
    Plan plan;
    plan.slices = slices;
    return plan;
  }
  // The run of an index; no slices: there is none. The last run has the first index. So the worker that adds
  // up a tile waits for those whose indices are lower than its own: who takes indices in turn waits for
  // blocks of lower numbers, who claims for those who claimed before. A tile's first run is not longer than
  // the others.
  __device__ Segment segment(int index) const {
    const int run = runs - 1 - (index - whole_tiles);
    if (run < 0) return {0, 0, 0, 0, 0};
    const int tile = run / parts, part = run - tile * parts;
    const int first = part * slices / parts, end = (part + 1) * slices / parts;
    return {tile, first, end - first, run, part == 0 ? parts - 1 : 0};
  }
};

// Whether a launch may have runs, whatever its tiles.
template <class C>
__device__ bool may_share(int slices, int workers) {
  return C::SPLIT == 1 && slices >= 2 * LEAST_OF_RUN && slices < 1 << 20 &&
         workers * C::BLOCKS <= MOST_BLOCKS;  // places in the workspace
}

// Whether workers may begin with a run: with two workers a tile or more. Where it is false a worker begins
// with the tile of its own number, whatever the plan. No division.
template <class C>
__device__ bool begins_with_run(int all_tiles, int slices, int workers) {
  return all_tiles <= workers / 2 && may_share<C>(slices, workers);
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
  if (all_tiles == 0 || (all_tiles <= workers && !begins_with_run<C>(all_tiles, slices, workers)))
    return plan;
  // All rounds but the last, which has 1 to `workers` tiles: a full one counts as the last, too. Workers have
  // the tiles of full rounds whole, and so are at the same slices of K at about the same time: what one loads
  // of A or B the others find in the L2. Runs of several tiles dealt out one behind the other would have them
  // at all slices at once, and where A and B do not fit into the L2, load both from memory again and again.
  const int full_rounds = (all_tiles - 1) / workers, last_tiles = all_tiles - full_rounds * workers;
  const int most = workers / last_tiles;  // so many workers a tile
  // Each tile is taken to have the launch's average of rows. Into as many pieces as have room in one
  // round, of whole steps.
  const int steps = (rows - 1) / tiles_m / STEP + 1;
  const int steps_of_piece = full_rounds > 0 ? (steps + most - 1) / most : steps;
  if (most > 1 && may_share<C>(slices, workers)) {
    const int parts = runs_of_tile<C>(slices, steps * STEP, most);
    const float before = full_rounds > 0 ? float(slices * slice_cycles<C>(steps * STEP)) : 0;
    const float in_runs = before + float(cycles_in_runs<C>(slices, steps * STEP, parts));
    const float in_pieces = before + float(slices * slice_cycles<C>(steps_of_piece * STEP));
    if (parts > 1 && in_runs < LEAST_GAIN * in_pieces) {
      plan.whole_tiles = full_rounds * workers;
      plan.parts = parts;
      plan.runs = last_tiles * parts;
      plan.indices = plan.whole_tiles + plan.runs;
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
