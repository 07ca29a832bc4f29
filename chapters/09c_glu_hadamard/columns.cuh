// SPDX-License-Identifier: MIT
//
// A storing warp reads its columns of a tile 64 at a time, those first that the next tile shares.

#pragma once

#include "config.cuh"

namespace chapter {

static_assert(BN / 2 % (4 * PART) == 0);  // a half has whole words of scales of D, four codes each

// [columns]
class Columns {
 public:
  // half: of the tile, 0 or 1; cols: of the whole tile, a multiple of 64, and of 128 where D has scales. Two
  // roles that ask must agree about it.
  __device__ Columns(int half, int cols, int accumulator)
      : begin_(half * (BN / 2)), end_(min(cols, begin_ + BN / 2)), down_(accumulator == 0) {}

  // Where read i begins, which is of 64 columns. What the next tile shares comes first: accumulator 0 has it
  // at its end, accumulator 1 at its beginning.
  __device__ int at(int i) const { return down_ ? end_ - (i + 1) * 2 * PART : begin_ + i * 2 * PART; }
  __device__ bool has(int i) const { return at(i) >= begin_ && at(i) < end_; }
  // Where 64 columns of this half begin that the next tile does not share. They may lie beyond N.
  __device__ int unshared() const { return begin_ + (down_ ? 0 : 2 * PART); }

 private:
  int begin_, end_;
  bool down_;
};
// [/columns]

}  // namespace chapter
