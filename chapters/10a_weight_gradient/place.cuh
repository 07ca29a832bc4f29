// SPDX-License-Identifier: MIT
//
// The list of all groups' tiles: group after group, the same number in each.

#pragma once

#include "config.cuh"

namespace chapter {

// In D_g tiles are listed in bands of so many rows of tiles, and in a band column after column. So tiles
// that are multiplied at the same time share columns of A and of B, which the L2 may read just once.
constexpr int BAND = 8;

// The list, and where in D each of its tiles is.
template <class C>
struct TileList {
  int tiles_m, tiles_n;  // rows and columns of tiles in D_g

  __device__ TileList(int n, int k) : tiles_m((k + C::ROWS - 1) / C::ROWS), tiles_n((n + BN - 1) / BN) {}
  __device__ int each() const { return tiles_m * tiles_n; }  // tiles of a group

  struct Place {
    int group, row, col;  // of D
  };
  // [place]
  __device__ Place place(int index) const {
    const int group = index / each(), in_group = index % each();
    const int first = in_group / (BAND * tiles_n) * BAND;  // row of tiles with which the band begins
    const int rows = min(BAND, tiles_m - first), in_band = in_group - first * tiles_n;
    return {group, (first + in_band % rows) * C::ROWS, in_band / rows * BN};
  }
  // [/place]
};

}  // namespace chapter
