// SPDX-License-Identifier: MIT
//
// The tiles of a group: the rows and columns of each.

#pragma once

#include "config.cuh"

namespace chapter {

// The tiles of a group go column after column. Its steps of 32 rows are dealt out evenly over the tiles of a
// column: the first `taller` ones have one more. `begin`, `rows`: the group's.
// [even]
template <class C>
__device__ Tile tile_of_group(int group, int begin, int rows, int in_group) {
  const int tiles_m = (rows + C::BM - 1) / C::BM, tile_m = in_group % tiles_m;
  const int steps = (rows + STEP - 1) / STEP, each = steps / tiles_m, taller = steps % tiles_m;
  const int row0 = (tile_m * each + min(tile_m, taller)) * STEP;
  const int most = (tile_m < taller ? each + 1 : each) * STEP;  // the group's last step may have fewer rows
  return {group, begin + row0, min(most, rows - row0), in_group / tiles_m * C::COLUMNS};
}
// [/even]

}  // namespace chapter
