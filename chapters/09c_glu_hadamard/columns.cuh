// SPDX-License-Identifier: MIT
//
// A storing warp reads its half of a tile's columns 64 at a time, those first that the next tile
// shares. X and Y lie in 64 columns of the half, none of which the next tile shares.

#pragma once

#include "config.cuh"
#include "schedule.cuh"

namespace chapter {

// [columns]
class Columns {
 public:
  // half: 0 or 1; n: columns of C, a multiple of 64 (launch.cuh). Storing warps and the transforming
  // warp pass the same numbers, so they agree on a half's reads and on where its X and Y lie.
  __device__ Columns(const Tile& tile, int n, int half, int accumulator)
      : begin_(half * (BN / HALVES)),
        end_(min(min(BN, n - tile.col0), begin_ + BN / HALVES)),
        down_(accumulator == 0),
        tmem_begin_(accumulator * ACCUMULATOR_STEP) {}

  // Column of the tile where read i, of 64 columns, begins: with gates, at a multiple of 64. What the
  // next tile shares is read first: accumulator 0 has it at its end, accumulator 1 at its beginning.
  __device__ int at(int i) const { return down_ ? end_ - (i + 1) * READ_COLUMNS : begin_ + i * READ_COLUMNS; }
  // False: there is no read i. Then only fetch_bias may get `at(i)`: it may lie outside the half.
  __device__ bool has(int i) const { return at(i) >= begin_ && at(i) < end_; }
  // Column of tensor memory that has the sums of column `col` of the tile.
  __device__ int in_tmem(int col) const { return tmem_begin_ + col; }
  // Column of tensor memory where the 64 of X and Y begin, none of which the next tile shares. They
  // are read 1's, from at(1) on; in a half with one read they are that read's, or beyond N.
  static_assert(SHARED_COLUMNS <= READ_COLUMNS);  // else the next tile shares some of read 1's
  static_assert(READS == 2);                  // else read 1 is at neither end of the half
  __device__ int x_in_tmem() const { return in_tmem(begin_ + (down_ ? 0 : READ_COLUMNS)); }

 private:
  int begin_, end_;
  bool down_;
  int tmem_begin_;
};
// [/columns]

}  // namespace chapter
