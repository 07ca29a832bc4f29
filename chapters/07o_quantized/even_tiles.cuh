// SPDX-License-Identifier: MIT
//
// The tiles of a group: the rows and columns of each.

#pragma once

#include "config.cuh"

namespace chapter {

constexpr int BAND = 8;  // tiles of a column in a band

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

// Returns a tile of a group. tile_in_group counts the group's tiles from 0 on: band after band, and
// within a band column by column. A band has up to BAND tiles of every column. So tiles under way
// need fewer rows of A, though more of B, than if columns were counted whole: fewer bytes if these
// are long, and the L2 may hold them. Any order is right in which each tile_in_group gives another
// tile. tiles_n: columns, each C::COLUMNS wide. Steps are spread over the tiles of a column, whose
// widths differ by one step at most. begin, rows: the group's first row in A, and how many, at
// least 1. tiles_m: must be tiles_in_column(rows), else a tile may have no rows, or over BM.
// [even]
template <class C>
__device__ Tile tile_of_group(int group, int begin, int rows, int tiles_m, int tiles_n, int tile_in_group) {
  const int band_begin = tile_in_group / (BAND * tiles_n) * BAND;  // the band's first tile of a column
  const int in_band = tile_in_group - band_begin * tiles_n;
  const int band_size = min(BAND, tiles_m - band_begin);  // tiles of a column: the last band may have fewer
  const int tile_m = band_begin + in_band % band_size;    // in its column
  const int steps = (rows + STEP - 1) / STEP;
  const int each = steps / tiles_m;         // steps that each tile has at least
  const int wider_tiles = steps % tiles_m;  // the first wider_tiles tiles have one step more
  const int rows_above = (tile_m * each + min(tile_m, wider_tiles)) * STEP;  // in tiles before it
  const int width = (tile_m < wider_tiles ? each + 1 : each) * STEP;
  // A column's last tile must end with the group: the next rows of D are the next group's.
  return {.group = group,
          .row0 = begin + rows_above,
          .rows = min(width, rows - rows_above),
          .col0 = in_band / band_size * C::COLUMNS};
}
// [/even]

}  // namespace chapter
