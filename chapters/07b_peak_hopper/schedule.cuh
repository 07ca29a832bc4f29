// SPDX-License-Identifier: MIT
//
// Chapter 07b: which tile comes next. Tiles are counted through all groups, as in chapter 05b; here each also
// gets its share of the group's rows, a place that suits the L2, and the last few are cut into parts.

#pragma once

#include <climits>

namespace chapter {

constexpr int STEP = 32;  // rows of a tile, and wgmma's N, come in steps of it
__host__ __device__ constexpr int round_up(int value, int step) { return (value + step - 1) / step * step; }

struct __align__(16) Tile {
  int group = -1;  // -1: there is no further tile
  int row0 = 0;    // its first row in A and D
  int rows = 0, col0 = 0;

  bool operator==(const Tile&) const = default;
};

// What of this chapter is switched on: see --off. Read at run time where that costs nothing.
struct Ideas {
  bool multicast = true, overlap = true, tail = true, shares = true, bands = true, narrow = true,
       hints = true, pdl = true, guess = true, split = true, sizes = true;
};

// a / b for 0 <= a and 0 < b. Below 2^21 a float's quotient, from half a step above, never falls short of a
// whole number: a division of integers costs three times as much, in code too.
__device__ inline int divide_small(int a, int b) { return int(__fdividef(float(a) + 0.5f, float(b))); }
__device__ inline int divide(int a, int b) { return a < 1 << 21 ? divide_small(a, b) : a / b; }

// Walks the tiles of all groups in order, for a whole warp: lane l looks at group first_group + l. BM: rows
// of a tile at most. Rows of tiles are counted in int: 2^31 tiles would be at least 2^43 elements of D.
template <int BM>
class Schedule {
 public:
  __device__ Schedule(const void* offsets, bool wide_offsets, int groups, int tiles_n, const Ideas& ideas)
      : offsets_(offsets), wide_(wide_offsets), groups_(groups), tiles_n_(tiles_n), ideas_(ideas) {}

  // Whether all groups have so many rows.
  __device__ bool all_have(int rows) const {
    bool equal = true;
    for (int group = lane(); group <= groups_; group += 32) equal &= offset(group) == group * rows;
    return __all_sync(~0u, equal);
  }

  // The tile as it would be if they had, for a worker's first index, and `share` of them in a tile. Needs no
  // offsets, and nothing of memory; short, for nothing hides it.
  __device__ Tile guess(int index, int rows, int share) const {
    const int tiles_m = tiles_of(rows), group = divide_small(index, tiles_m * tiles_n_);
    if (group >= groups_) return {};
    return within<divide_small>(group, group * rows, rows, index - group * tiles_m * tiles_n_, tiles_m,
                                share);
  }

  // False: there is no such tile. The tiles asked for only grow. A tile may have no rows.
  __device__ bool find(int index, Tile& tile) {
    int part = 0;
    const bool in_parts = index >= whole_tiles_;
    if (in_parts) {
      part = (index - whole_tiles_) % parts_;
      index = whole_tiles_ + (index - whole_tiles_) / parts_;
    }
    for (;;) {
      const unsigned after = __ballot_sync(~0u, index < end_ * tiles_n_);  // groups that end after it
      if (after != 0) {
        place(index, __ffs(after) - 1, tile);
        if (in_parts) cut(part, tile);
        return true;
      }
      first_group_ += 32;
      if (first_group_ >= groups_) return false;
      tiles_before_ = __shfl_sync(~0u, end_, 31);
      look();
    }
  }

  // W workers: after the full rounds `left` tiles are left over, and if most workers would watch, each of
  // these tiles is cut into parts. Asked when the first tile is on its way: nobody waits for the sum.
  __device__ void plan_tail(int workers) {
    if (!ideas_.tail) return;
    int total = lane() == 31 ? end_ : 0;
    for (int group = first_group_ + 32 + lane(); group < groups_; group += 32) {
      total += tiles_of(offset(group + 1) - offset(group));
    }
    for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(~0u, total, step);
    total *= tiles_n_;
    const int left = total % workers;
    if (total > workers && left > 0 && left * 2 <= workers) {
      parts_ = min(BM / STEP, workers / left);
      whole_tiles_ = total - left;
    }
  }

  // Reads the offsets of the next 32 groups: of the first ones before any tile is asked for, then by itself.
  // This lane's group: where it begins, its rows, and the rows of tiles in all groups up to and with it.
  __device__ void look() {
    const int group = first_group_ + lane();
    begin_ = offset(min(group, groups_));
    rows_ = offset(min(group + 1, groups_)) - begin_;
    end_ = tiles_of(rows_);
    for (int step = 1; step < 32; step *= 2) {
      const int below = __shfl_up_sync(~0u, end_, step);
      if (lane() >= step) end_ += below;
    }
    end_ += tiles_before_;
  }

 private:
  __device__ static int tiles_of(int rows) { return (rows + BM - 1) / BM; }
  __device__ static int lane() { return int(threadIdx.x) % 32; }
  __device__ int offset(int group) const {
    return wide_ ? int(static_cast<const int64_t*>(offsets_)[group])
                 : static_cast<const int32_t*>(offsets_)[group];
  }

  __device__ void place(int index, int owner, Tile& tile) const {
    const int begin = __shfl_sync(~0u, begin_, owner), rows = __shfl_sync(~0u, rows_, owner);
    const int end = __shfl_sync(~0u, end_, owner);
    const int tiles_m = tiles_of(rows);
    const int share = ideas_.shares ? round_up(divide(rows + tiles_m - 1, tiles_m), STEP) : BM;
    tile =
        within<divide>(first_group_ + owner, begin, rows, index - (end - tiles_m) * tiles_n_, tiles_m, share);
  }

  // Within a group: bands of 8 rows of tiles, each column by column, so that the tiles under way at the same
  // time need few different rows of A and of B. The rows are shared out equally over the group's rows of
  // tiles: no tile is left with a few.
  template <int (*DIVIDE)(int, int)>
  __device__ Tile within(int group, int begin, int rows, int in_group, int tiles_m, int share) const {
    constexpr int BAND = 8;
    int first = 0, band = tiles_m;  // rows of tiles before this band, and in it
    if (ideas_.bands && tiles_m > BAND) {
      first = DIVIDE(in_group, BAND * tiles_n_) * BAND;
      band = min(BAND, tiles_m - first);
    }
    const int in_band = in_group - first * tiles_n_;
    const int tile_n = tiles_n_ == 1 ? 0 : DIVIDE(in_band, band);
    const int tile_m = first + in_band - tile_n * band;
    const int row0 = min(tile_m * share, rows);
    return {group, begin + row0, min(share, rows - row0), tile_n};
  }

  __device__ void cut(int part, Tile& tile) const {
    const int share = round_up((tile.rows + parts_ - 1) / parts_, STEP), row0 = min(part * share, tile.rows);
    tile.row0 += row0;
    tile.rows = min(share, tile.rows - row0);
  }

  const void* offsets_;
  bool wide_;
  int groups_, tiles_n_;
  const Ideas& ideas_;
  int first_group_ = 0, tiles_before_ = 0;
  int begin_, rows_, end_;                 // of this lane's group
  int whole_tiles_ = INT_MAX, parts_ = 1;  // tiles from whole_tiles_ on are cut into parts
};

}  // namespace chapter
