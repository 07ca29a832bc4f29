// SPDX-License-Identifier: MIT
//
// The tiles of a group: the rows and columns of each.

#pragma once

#include "config.cuh"

namespace chapter {

constexpr int BAND = 8;  // tiles of a column in a band

// The number of tiles in each column of tiles of a group of so many rows: the least number that
// leaves no tile with more than MOST_ROWS. 0 for no rows: lanes without a group call it too, and a
// group without rows has no tiles. MOST_ROWS is a multiple of STEP because tile_of_group deals out
// steps: so many tiles then have room for all steps, too, and every tile gets at least one.
template <class C>
__device__ int tiles_in_column(int rows) {
  constexpr int MOST_ROWS = C::BM;
  static_assert(MOST_ROWS % STEP == 0 && MOST_ROWS <= C::BM);
  return (rows + MOST_ROWS - 1) / MOST_ROWS;
}

// Returns a tile of a group. tile_in_group counts these from 0 on, in bands of 8 tiles of each
// column, and within a band column after column: tiles under way at the same time then need
// fewer different rows of A and of B than column after column, so that the L2 may have room for
// them. tiles_n: columns of tiles. The group's steps of 32 rows are dealt out evenly over the
// tiles of a column, which differ by one step at most. begin, rows: the group's first row, and
// how many it has: at least one, so tiles_m is not 0. tiles_m: tiles_in_column(rows). The tile
// has 1 to BM rows, and no slices yet.
// [even]
template <class C>
__device__ Tile tile_of_group(int group, int begin, int rows, int tiles_m, int tiles_n, int tile_in_group) {
  const int band_begin = tile_in_group / (BAND * tiles_n) * BAND;  // the band's first tile of a column
  const int in_band = tile_in_group - band_begin * tiles_n;
  const int band_size = min(BAND, tiles_m - band_begin);  // tiles of a column: the last band may have fewer
  const int tile_m = band_begin + in_band % band_size;    // in its column
  const int steps = (rows + STEP - 1) / STEP;
  const int each = steps / tiles_m;           // steps of every tile
  const int with_one_more = steps % tiles_m;  // so many tiles have one step more: the first ones
  const int first = (tile_m * each + min(tile_m, with_one_more)) * STEP;  // counted from begin
  const int most = (tile_m < with_one_more ? each + 1 : each) * STEP;     // rows, in full steps
  // The group's last step need not be full.
  return {group, begin + first, in_band / band_size * C::COLUMNS, 0, 0, min(most, rows - first), 0, 0, false};
}
// [/even]

}  // namespace chapter
