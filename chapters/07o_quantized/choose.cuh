// SPDX-License-Identifier: MIT
//
// The choice of a configuration: a problem gets the one that is estimated to take the fewest cycles.

#pragma once

#include <algorithm>
#include <cmath>

#include "config.cuh"

namespace chapter {

// A problem as far as the host knows it without reading the offsets. m_total: rows of all groups.
// rows_each: rows of every group, or 0 if groups differ or nobody knows. If either is wrong, D is
// right all the same, but may be later. Neither may be negative, and an int must hold
// groups * rows_each.
struct Sizes {
  int64_t m_total;
  int groups, n, k, rows_each;
};

// The next launch's blocks may start early where groups have fewer rows than this on the average
// (`early` in kernel.cuh). Fitted to 61 timed problems: early was quicker at 38 rows, late at 128.
// Why, is not proven. It changes times, never D.
constexpr int EARLY_ROWS = 48;

// Rows of a group over the average, of a sixth of the groups each: about as routers deal rows out.
constexpr double SIXTHS[] = {0.4, 0.6, 0.8, 0.9, 1.2, 2.1};
static_assert(sizeof(SIXTHS) == 6 * sizeof(double), "estimate divides by 6");

// A device as far as the choice depends on it.
struct Device {
  int multiprocessors;
  double memory_bandwidth;  // bytes a second, by the memory's clock and bus: launch.h
};

// Cycles a second, fitted: with it (5) compares with (1) to (4). It is no clock that was measured.
constexpr double FITTED_CLOCK = 1.5e9;

// Cycles of the launch, as far as they tell configurations apart: parts (1) to (5). 2048 is physical,
// 10 / 11 was measured, SIXTHS was chosen; how (3) counts a last round, and 1 / 100, are assumed.
// All others were fitted to timed problems, so that the least estimate is that of the quickest
// configuration: none of them is a duration that was measured.
// [tile]
template <class C>
double estimate(const Sizes& sizes, const Device& device) {
  const bool equal = sizes.rows_each > 0;  // all groups have as many rows
  const double average = std::max(1.0, 1.0 * sizes.m_total / sizes.groups),
               slices = std::ceil(sizes.k / double(BK * C::SPLIT));
  // Where K is an odd multiple of 8, every other row of A and of B begins within a sector of 32 bytes.
  const double misaligned = sizes.k % 16 == 0 ? 1 : 1.6;
  const double per_tile = C::SPLIT > 2 ? 2000 : C::CLUSTER > 1 ? 700 : 1000;
  // Six groups, one of each kind: tiles in a column, their cycles together, the longest one's.
  double tiles = 0, cycles = 0, longest = 0;
  for (const double of_average : SIXTHS) {
    const double group_rows = (equal ? 1 : of_average) * average, tiles_m = std::ceil(group_rows / C::BM);
    // The group's widest tile, in whole steps: so many are loaded and multiplied.
    const int rows = round_up(int(std::ceil(group_rows / tiles_m)), STEP);
    // (1) A block's slice: the longest of products, loads, a stage's 2600 cycles shared by STAGES, and
    // 330 cycles: while all multiprocessors load, no slice takes less.
    const double multiply = rows * C::BN * BK / 2048.0;  // 2048 multiply-adds a cycle
    const double fetch = (rows / C::CLUSTER + C::BN) * ROW_BYTES / 56.0 * misaligned;  // 56 bytes a cycle
    const double latency = 2600.0 / C::STAGES;
    // (2) A block's part of a tile: its slices, and `per_tile`, fitted: all else that a tile costs.
    const double tile_cycles = slices * std::max({multiply, fetch, latency, 330.0}) + per_tile;
    tiles += tiles_m;
    cycles += tiles_m * tile_cycles;
    longest = std::max(longest, tile_cycles);
  }
  // [/tile]
  // [rounds]
  // (3) All tiles: rounds of them. `workers` are those resident at a time: of a grid's 33 clusters
  // of four blocks 30 on an H200, as all blocks of a cluster run in one GPC, a fixed part of the
  // chip. On 4 multiprocessors 10 / 11 leaves none, `rounds` is infinite, and four splits are not
  // chosen, as no estimate is larger.
  const int workers = (C::BLOCKS > 2 ? device.multiprocessors * 10 / 11 : device.multiprocessors) / C::BLOCKS;
  // The number of rounds: tiles of all groups, in all columns, for each worker.
  const double rounds = tiles * sizes.groups / 6 * ((sizes.n - 1) / C::COLUMNS + 1) / workers;
  // In cycles; the average tile takes cycles / tiles. A last round that is not full counts as the
  // mean of its share and a whole round.
  const double all_tiles = rounds <= 1 ? longest : (rounds + std::ceil(rounds)) / 2 * cycles / tiles;
  // [/rounds]
  // [launch]
  // (4) The launch: its tiles and `per_launch`, fitted: what a launch costs once.
  const double per_launch = (C::BLOCKS > 1 ? 2000 : 0) + (C::HOLDS_ROWS ? 3500 : 300);
  const double by_tiles = per_launch + all_tiles;
  // (5) Memory: a second bound. `bytes` are the same for all configurations: where they take
  // longest, the other two terms decide. The BN term is a fit. In splits too it has the slices of
  // all of K, rounded down: with a block's own, splits were chosen that took longer.
  const double bytes = 2.0 * sizes.groups * sizes.n * sizes.k + 2.0 * sizes.m_total * (sizes.k + sizes.n);
  const double bytes_a_cycle = device.memory_bandwidth / FITTED_CLOCK;
  const double by_memory = bytes / bytes_a_cycle + C::BN * (sizes.k / BK) + by_tiles / 100;
  return std::max(by_tiles, by_memory);
  // [/launch]
}

// Calls f(C()) for each configuration. Of equal estimates launch.cuh takes the later one's. A new line
// may change the choice for any problem. It belongs into main.cu's list, too: else --tile does not
// know it and --tune does not time it.
template <class F>
void for_each_config(F f) {
  f(Config<2, 256, 4>());
  f(Config<2, 256, 4, 2>());
  f(Config<2, 128, 6>());
  f(Config<2, 64, 8>());
  f(Config<1, 128, 8>());
  f(Config<1, 64, 13>());
  f(Config<1, 64, 7, 1, 2>());
  f(Config<1, 64, 6, 1, 4>());
}

}  // namespace chapter
