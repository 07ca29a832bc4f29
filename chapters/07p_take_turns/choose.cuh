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
// (`early` in kernel.cuh). It changes times, never D.
constexpr int EARLY_ROWS = 48;

// Rows of a group over the average, of a sixth of the groups each: about as routers deal rows out.
constexpr double SIXTHS[] = {0.4, 0.6, 0.8, 0.9, 1.2, 2.1};
static_assert(sizeof(SIXTHS) == 6 * sizeof(double), "estimate divides by 6");

// Cycles of the launch, as far as they tell configurations apart: parts (1) to (4), a shorter form
// of 07l's. `shared`, `per_tile`, `end` and the half in (2) are new and assumed. `per_tile` is a
// guess: 07l has 700 and 1000, with its epilogue. Of `end` only the sum for 192 rows, 4,924, has a
// source: 07m's epilogue took 3,300 cycles (stamped once, taken to be of 256 rows), with twice the
// warps, and 3,300 * 2 * 192 / 256 = 4,950. All other constants are 07l's, most of them fitted to
// timed problems of its own kernel. None was fitted to this one.
// [estimate]
template <class C>
double estimate(const Sizes& sizes, int multiprocessors) {
  const double average = std::max(1.0, 1.0 * sizes.m_total / sizes.groups), slices = slices_of(sizes.k);
  double tiles = 0, cycles = 0, longest = 0, last_end = 0;  // of one column of tiles, six groups
  for (const double of_average : SIXTHS) {
    const double group = (sizes.rows_each > 0 ? 1 : of_average) * average, tiles_m = std::ceil(group / C::BM);
    const double rows = round_up(int(std::ceil(group)), STEP) / tiles_m;  // of a tile, on the average
    // (1) A slice: the longest of its products, its loads, a stage's 2600 cycles shared by STAGES, and
    // its bytes in shared memory.
    const double multiply = rows * C::BN * BK / 2048;                   // 2048 multiply-adds a cycle
    const double fetch = (rows / C::CLUSTER + C::BN) * ROW_BYTES / 56;  // 56 bytes a cycle from the L2
    const double latency = 2600.0 / C::STAGES;
    // 128 bytes a cycle of shared memory, assumed: a wgmma reads 64 columns of B and all rows of A, TMA
    // writes each once. Timed tiles of 128x256 contradict it (07p's README, Measured): this is too much.
    // It stays because all times in results.md are of tiles that were chosen with it. Without it,
    // six of the twelve problems timed there would change to 128x256.
    const double shared = (C::PAIRS * (PAIR + rows) + rows + C::BN) * ROW_BYTES / 128;
    // (2) A tile: its slices. But where these take less than its end, half of both together: each
    // consumer takes so long for a tile, and the two are at work at the same time.
    const double per_tile = C::CLUSTER > 1 ? 200 : 400, end = 700 + rows * 22;
    const double main = slices * std::max({multiply, fetch, latency, shared}) + per_tile;
    const double tile = std::max(main, (main + end) / 2);
    tiles += tiles_m;
    cycles += tiles_m * tile;
    longest = std::max(longest, tile);
    last_end = std::max(last_end, end);
  }
  // (3) All tiles: rounds of them.
  const int workers = multiprocessors / C::BLOCKS;
  const double rounds = tiles * sizes.groups / 6 * ((sizes.n - 1) / C::COLUMNS + 1) / workers;
  const double all_tiles = rounds <= 1 ? longest : (rounds + std::ceil(rounds)) / 2 * cycles / tiles;
  // (4) The launch: its tiles, and the last epilogue, which no products hide. Clusters add 2000.
  return (C::BLOCKS > 1 ? 2000 : 0) + all_tiles + last_end;
}
// [/estimate]

// Calls f(C()) for each configuration. The order matters: launch.cuh takes the later one of equal
// estimates. Each size is there once, for --tile. A new line may change the choice for any
// problem. Its size belongs into main.cu's list, too: else --tile does not know it and --tune does
// not time it.
template <class F>
void for_each_config(F f) {
  f(Config<192, 5, 2>());
  f(Config<192, 5>());
  f(Config<128, 6, 2>());
  f(Config<128, 6>());
  f(Config<64, 8>());
  f(Config<32, 9>());
}

}  // namespace chapter
