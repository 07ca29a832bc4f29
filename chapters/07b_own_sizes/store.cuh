// SPDX-License-Identifier: MIT
//
// How a consumer's sums get to memory: each thread stores its own, two neighbours, 4 bytes, at a time.

#pragma once

#include "common/kernel/ptx/cvt.cuh"
#include "config.cuh"

namespace chapter {

// Who: a whole warpgroup. row_in_tile, col_in_tile: where its sums begin. T: D's element type.
// The group's D is at a multiple of 4 bytes, its N and ldd are even (callers of launch() guarantee
// multiples of 8). So a pair starts at a multiple of 4 bytes and lies in D or outside it. Rows from
// tile.rows on and columns from tile.cols on are not the tile's, and are not written.
template <class C, class T>
__device__ void store_sums(const float (&sums)[C::SUM_COLUMNS / 2], const Tile& tile, int row_in_tile,
                           int col_in_tile) {
  T* const d = static_cast<T*>(tile.d);
  const int warp = int(threadIdx.x) / 32 % 4, lane = int(threadIdx.x) % 32;
  // Sums i and i + 1 are neighbours in a row; i + 2 is 8 rows further down, i + 4 is 8 columns on.
#pragma unroll
  for (int i = 0; i < C::SUM_COLUMNS / 2; i += 2) {
    const int r = row_in_tile + warp * 16 + i / 2 % 2 * 8 + lane / 4;
    const int c = col_in_tile + i / 4 * 8 + lane % 4 * 2;
    const uint32_t pair = gg::ptx::cvt_rn_x2<T>(sums[i], sums[i + 1]);
    // [store]
    if (r < tile.rows && c < tile.cols) *reinterpret_cast<uint32_t*>(d + int64_t(r) * tile.ldd + c) = pair;
    // [/store]
  }
}

}  // namespace chapter
