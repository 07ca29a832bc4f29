// SPDX-License-Identifier: MIT
//
// The tiles of a group: the rows and columns of each.

#pragma once

#include "config.cuh"

namespace chapter {

// How many tiles a column has in a group with this many rows: as few as leave no tile with over
// MOST_ROWS. For no rows 0: a group without rows has no tiles, and lanes without a group call it
// too. With a MOST_ROWS that the assertions allow, tile_of_group's tiles have 1 to MOST_ROWS rows.
// [count]
template <class C>
__device__ int tiles_in_column(int rows) {
  constexpr int MOST_ROWS = C::BM;
  static_assert(MOST_ROWS <= C::BM, "a stage has room for BM rows, and maps.a ends with BM rows");
  static_assert(MOST_ROWS % STEP == 0, "else a tile might have over MOST_ROWS rows");
  static_assert(MOST_ROWS >= STEP, "else there might be more tiles than steps");
  return (rows + MOST_ROWS - 1) / MOST_ROWS;
}
// [/count]

// Returns a tile of a group. tile_in_group counts the group's tiles from 0 on, column by column;
// each column is C::COLUMNS wide. The group's steps are spread over the tiles of a column, whose
// widths differ by one step at most. begin, rows: the group's first row in A, and how many, at
// least 1. tiles_m: must be tiles_in_column(rows), else a tile may have no rows, or over BM.
// [even]
template <class C>
__device__ Tile tile_of_group(int group, int begin, int rows, int tiles_m, int tile_in_group) {
  const int tile_m = tile_in_group % tiles_m;  // in its column
  const int steps = (rows + STEP - 1) / STEP;
  const int each = steps / tiles_m;         // steps that each tile has at least
  const int wider_tiles = steps % tiles_m;  // the first wider_tiles tiles have one step more
  const int rows_above = (tile_m * each + min(tile_m, wider_tiles)) * STEP;  // in tiles before it
  const int width = (tile_m < wider_tiles ? each + 1 : each) * STEP;
  // A column's last tile must end with the group: the next rows of D are the next group's.
  return {.group = group,
          .row0 = begin + rows_above,
          .rows = min(width, rows - rows_above),
          .col0 = tile_in_group / tiles_m * C::COLUMNS};
}
// [/even]

}  // namespace chapter
