// SPDX-License-Identifier: MIT
// A group as blocks know it: where its D is, its sizes, and the order of its tiles.
#pragma once
#include <cstdio>

#include "common/kernel/types.cuh"

namespace chapter {

// [group]
struct Group {
  // First element of D, of the type T with which launch_as launches both `plan` and grouped_gemm.
  void* d;
  int row0;  // first row, as the map of A counts: 0 in a map of the group's own
  int rows, n, k, ldd;
  GG_HD int tiles_m(int bm) const { return (rows + bm - 1) / bm; }
  GG_HD int tiles(int bm, int bn) const { return tiles_m(bm) * ((n + bn - 1) / bn); }
  GG_HD int tile_m(int tile, int bm) const { return tile % tiles_m(bm); }  // column after column
  GG_HD int tile_n(int tile, int bm) const { return tile / tiles_m(bm); }  // tiles_m make a column
};
// [/group]

// Prints which tiles each block computes, as group(tile_m,tile_n). A block's first tile and the
// step to its next one are also in Tiles and in multiply_tiles: all three must agree.
inline void print_schedule(const int* sizes, int groups, gg::TileShape tile, int blocks) {
  for (int block = 0; block < blocks; ++block) {
    std::printf("block %d:", block);
    int next = block;  // the block's next tile, counted from the first one of group g
    for (int g = 0; g < groups; ++g) {
      const int m = sizes[3 * g], n = sizes[3 * g + 1], k = sizes[3 * g + 2];
      const Group group = {.d = nullptr, .row0 = 0, .rows = m, .n = n, .k = k, .ldd = 0};
      const int tiles = group.tiles(tile.m, tile.n);
      for (; next < tiles; next += blocks)
        std::printf(" %d(%d,%d)", g, group.tile_m(next, tile.m), group.tile_n(next, tile.m));
      next -= tiles;  // counted from the first one of group g + 1
    }
    std::printf("\n");
  }
}

}  // namespace chapter
