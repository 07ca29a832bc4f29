// SPDX-License-Identifier: MIT
//
// The tiles of a group: the rows and columns of each.

#pragma once

#include "config.cuh"

namespace chapter {

// The number of tiles in each column of a group of so many rows. No rows must give 0: lanes without a group
// call it too. Otherwise any number would be right from rows / BM rounded up, so that no tile has more than
// BM rows, to the group's number of steps, so that no tile is empty.
template <class C>
__device__ int tiles_in_column(int rows) {
  return (rows + C::BM - 1) / C::BM;
}

// The tiles of a group go column after column. Its steps of 32 rows are dealt out evenly over the tiles of a
// column: the first `with_one_more` ones have a step more. `begin`, `rows`: the group's, which has at least
// one row. tiles_m: tiles_in_column(rows). A tile has 1 to BM rows.
// [even]
template <class C>
__device__ Tile tile_of_group(int group, int begin, int rows, int tiles_m, int tile_in_group) {
  const int tile_m = tile_in_group % tiles_m;  // in its column
  const int steps = (rows + STEP - 1) / STEP, each = steps / tiles_m, with_one_more = steps % tiles_m;
  const int first = (tile_m * each + min(tile_m, with_one_more)) * STEP;  // row of the group
  const int most = (tile_m < with_one_more ? each + 1 : each) * STEP;
  // The group's last step may have fewer rows.
  return {group, begin + first, min(most, rows - first), tile_in_group / tiles_m * C::COLUMNS};
}
// [/even]

}  // namespace chapter
