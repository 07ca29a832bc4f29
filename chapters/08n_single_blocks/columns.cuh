// SPDX-License-Identifier: MIT
//
// A storing warp reads its half of a tile's columns 64 at a time, beginning with those that the
// accumulator shares with the next tile's, if they are in this half.

#pragma once

#include "config.cuh"

namespace chapter {

static_assert(BN / 2 % READ_COLUMNS == 0);          // a half has whole reads
static_assert(BN / 2 % (ATOM_BLOCKS * PART) == 0);  // and whole words of the codes of D's scales

// [columns]
class Columns {
 public:
  // half: 0 or 1. cols: how many of the tile's columns the two halves read together, a multiple of
  // 64, as a read has 64. If D has scales, of 128: a thread stores the codes of 128 as a word.
  __device__ Columns(int half, int cols, int accumulator)
      : begin_(half * (BN / 2)), end_(min(cols, begin_ + BN / 2)), down_(accumulator == 0) {}

  // The first of the 64 columns of read i. Read 0 has the shared columns, if they are in this half:
  // accumulator 0 has them at its end, accumulator 1 at its beginning. config.cuh asserts that they
  // fit into one read.
  __device__ int at(int i) const { return down_ ? end_ - (i + 1) * READ_COLUMNS : begin_ + i * READ_COLUMNS; }
  // False: there is no read i. Then only fetch_bias may get `at(i)`: it may lie outside the half.
  __device__ bool has(int i) const { return at(i) >= begin_ && at(i) < end_; }

 private:
  int begin_, end_;
  bool down_;
};
// [/columns]

}  // namespace chapter
