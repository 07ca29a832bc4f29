// SPDX-License-Identifier: MIT
//
// The tiles of a group: the rows and columns of each.

#pragma once

#include "config.cuh"

namespace chapter {

constexpr int BAND = 8;  // tiles of a column in a band

// The number of tiles in each column of a group of so many rows. No rows must give 0: lanes without a group
// call it too. Otherwise any number would be right from rows / BM rounded up, so that no tile has more than
// BM rows, to the group's number of steps, so that no tile is empty.
template <class C>
__device__ int tiles_in_column(int rows) {
  return (rows + C::BM - 1) / C::BM;
}

// The tiles of a group go in bands of 8 tiles of each column, and within a band column after column: those
// under way at the same time then need few different rows of A and of B, which the L2 has room for. The
// group's steps of 32 rows are dealt out evenly over the tiles of a column: the first `with_one_more` ones
// have a step more. `begin`, `rows`: the group's, which has at least one row. tiles_m: tiles_in_column(rows).
// tiles_n: columns of tiles. A tile has 1 to BM rows.
// [even]
template <class C>
__device__ Tile tile_of_group(int group, int begin, int rows, int tiles_m, int tiles_n, int tile_in_group) {
  const int band0 = tile_in_group / (BAND * tiles_n) * BAND, in_band = tile_in_group - band0 * tiles_n;
  const int band = min(BAND, tiles_m - band0), tile_m = band0 + in_band % band;
  const int steps = (rows + STEP - 1) / STEP, each = steps / tiles_m, with_one_more = steps % tiles_m;
  const int first = (tile_m * each + min(tile_m, with_one_more)) * STEP;  // row of the group
  const int most = (tile_m < with_one_more ? each + 1 : each) * STEP;
  // The group's last step may have fewer rows.
  return {group, begin + first, min(most, rows - first), in_band / band * C::COLUMNS};
}
// [/even]

}  // namespace chapter
