// SPDX-License-Identifier: MIT
//
// How a consumer's sums get to memory: each thread stores its own.

#pragma once

#include "common/kernel/types.cuh"
#include "config.cuh"

namespace chapter {

// Who: a whole warpgroup. The sums are D transposed: 64 columns from col_in_tile on in the tile, and rows in
// registers. D is [rows,n].
template <int SUMS, class T>
__device__ void store_sums(const float (&sums)[SUMS], T* d, const Tile& tile, int col_in_tile, int n) {
  // [store]
  const int warp = int(threadIdx.x) / 32 % 4, lane = int(threadIdx.x) % 32;
  const int row0 = lane % 4 * 2, col0 = tile.col0 + col_in_tile + warp * 16 + lane / 4;
  T* const to = d + int64_t(tile.row0 + row0) * n + col0;
#pragma unroll
  for (int i = 0; i < SUMS; ++i) {  // sums i and i + 1 are neighbours in a column
    const int r = i / 4 * 8 + i % 2, c = i / 2 % 2 * 8;
    if (row0 + r < tile.rows && col0 + c < n) to[int64_t(r) * n + c] = gg::from_float<T>(sums[i]);
  }
  // [/store]
}

}  // namespace chapter
