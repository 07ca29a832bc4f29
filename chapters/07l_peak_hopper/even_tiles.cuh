// SPDX-License-Identifier: MIT
//
// The tiles of a group: the rows and columns of each.

#pragma once

#include "config.cuh"

namespace chapter {

constexpr int BAND = 8;  // rows of tiles

// The tiles of a group go in bands of 8 rows of tiles, and within a band column after column: those under way
// at the same time then need few different rows of A and of B, which the L2 has room for. The group's steps
// of 32 rows are dealt out evenly over the tiles of a column: the first `taller` ones have one more. `begin`,
// `rows`: the group's. tiles_n: columns of tiles.
// [even]
template <class C>
__device__ Tile tile_of_group(int group, int begin, int rows, int tiles_n, int in_group) {
  const int tiles_m = (rows + C::BM - 1) / C::BM;
  const int band0 = in_group / (BAND * tiles_n) * BAND, in_band = in_group - band0 * tiles_n;
  const int band = min(BAND, tiles_m - band0), tile_m = band0 + in_band % band;
  const int steps = (rows + STEP - 1) / STEP, each = steps / tiles_m, taller = steps % tiles_m;
  const int row0 = (tile_m * each + min(tile_m, taller)) * STEP;
  const int most = (tile_m < taller ? each + 1 : each) * STEP;  // the group's last step may have fewer rows
  return {group, begin + row0, min(most, rows - row0), in_band / band * C::COLUMNS};
}
// [/even]

}  // namespace chapter
