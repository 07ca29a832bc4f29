// SPDX-License-Identifier: MIT
//
// The choice of a configuration: a problem gets the one that is estimated to take the fewest cycles.

#pragma once

#include <algorithm>
#include <cmath>

#include "config.cuh"

namespace chapter {

// A problem as far as the host knows it. m_total: rows of all groups. rows_each: of every group, or 0.
struct Sizes {
  int64_t m_total;
  int groups, n, k, rows_each;
};

// With fewer rows a group on the average, most bytes are weights, which the next launch may load as soon as
// there is room. With more, tiles share slices in the L2, and its blocks wait (measured).
constexpr int SHARING_ROWS = 48;

// Rows of a group over the average, of a sixth of the groups each: about as routers deal rows out.
constexpr double SIXTHS[] = {0.4, 0.6, 0.8, 0.9, 1.2, 2.1};

// Cycles of the launch, roughly: rounds of tiles, times what a tile takes. Which group has how many rows, the
// host does not know: it takes them as SIXTHS has them.
// [estimate]
template <class C>
double estimate(const Sizes& sizes, int multiprocessors) {
  const double average = std::max(1.0, 1.0 * sizes.m_total / sizes.groups),
               slices = std::ceil(sizes.k / double(BK * C::SPLIT));
  const double around = C::SPLIT > 2 ? 2800 : C::CLUSTER > 1 ? 700 : 1000;  // measured: each tile's
  const double ends = (C::BLOCKS > 1 ? 2000 : 0) + (C::TALL ? 3500 : 300);  // measured: the launch's
  double tiles = 0, cycles = 0, longest = 0;  // of one column of tiles, six groups
  for (const double of_average : SIXTHS) {
    const double group = (sizes.rows_each > 0 ? 1 : of_average) * average, tiles_m = std::ceil(group / C::BM);
    const int rows = round_up(int(std::ceil(group / tiles_m)), STEP);
    const int multiply = rows * C::BN / 32;                          // a slice's products, 4096 FLOP a cycle
    const int fetch = (rows / C::CLUSTER + C::BN) * ROW_BYTES / 56;  // bytes a cycle from the L2
    const double tile = slices * std::max({multiply, fetch, 2600 / C::STAGES}) + around;  // a load: 2600
    tiles += tiles_m;
    cycles += tiles_m * tile;
    longest = std::max(longest, tile);
  }
  // Multiprocessors come in groups of up to 18, clusters within one: of four, 30 fit on an H200's 132.
  const int workers = (C::BLOCKS > 2 ? multiprocessors * 10 / 11 : multiprocessors) / C::BLOCKS;
  const double rounds = tiles * sizes.groups / 6 * ((sizes.n - 1) / C::COLUMNS + 1) / workers;
  const double all = ends + (rounds <= 1 ? longest : (rounds + std::ceil(rounds)) / 2 * cycles / tiles);
  // Where memory bounds it, each choice waits for the same bytes, and at the end for a tile of its own width.
  // Between equal ones the hundredth decides.
  const double bytes = 2.0 * sizes.groups * sizes.n * sizes.k + 2.0 * sizes.m_total * (sizes.k + sizes.n);
  return std::max(all, bytes / 2200 + C::BN * (sizes.k / BK) + all / 100);
}
// [/estimate]

// Calls f(C()) for each configuration, of which the later one of equals is the better one.
template <class F>
void for_each_config(F f) {
  f(Config<2, 256, 4>());
  f(Config<2, 256, 4, 2>());
  f(Config<2, 128, 6>());
  f(Config<2, 64, 8>());
  f(Config<2, 32, 9>());
  f(Config<1, 128, 8>());
  f(Config<1, 32, 9>());
  f(Config<1, 64, 7, 1, 2>());
  f(Config<1, 64, 6, 1, 4>());
}

}  // namespace chapter
