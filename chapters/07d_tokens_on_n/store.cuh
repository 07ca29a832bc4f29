// SPDX-License-Identifier: MIT
//
// How a consumer's sums get to memory: each thread stores its own, one element at a time.

#pragma once

#include "common/kernel/types.cuh"
#include "config.cuh"

namespace chapter {

// Who: a whole warpgroup. The sums are D transposed: a warp has 16 of the warpgroup's 64 columns,
// which begin at the tile's column `first_col`, and all of the tile's rows. A thread has two of
// these columns, 8 apart, and two neighbours of every 8 rows. D is [rows,n]. Rows from tile.rows on
// and columns from n on are not stored. Inlined, so that the sums stay in registers.
template <int SUMS, class T>
__device__ __forceinline__ void store_sums(const float (&sums)[SUMS], T* d, const Tile& tile, int first_col,
                                           int n) {
  // [store]
  const int warp = int(threadIdx.x) / 32 % 4, lane = int(threadIdx.x) % 32;
  // Where sum 0 belongs: the row in the tile, the column in D.
  const int row_in_tile = lane % 4 * 2, col_in_d = tile.col0 + first_col + warp * 16 + lane / 4;
  T* const to = d + int64_t(tile.row0 + row_in_tile) * n + col_in_d;
#pragma unroll
  for (int i = 0; i < SUMS; ++i) {
    // Sum i belongs r rows below sum 0 and c columns to the right of it.
    const int r = i / 4 * 8 + i % 2, c = i / 2 % 2 * 8;
    if (row_in_tile + r < tile.rows && col_in_d + c < n) to[int64_t(r) * n + c] = gg::from_float<T>(sums[i]);
  }
  // [/store]
}

}  // namespace chapter
