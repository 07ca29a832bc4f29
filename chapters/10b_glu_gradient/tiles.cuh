// SPDX-License-Identifier: MIT
//
// The list of all groups' tiles: group after group, ceil(rows / BM) times the columns of
// tiles in each.

#pragma once

#include "config.cuh"

namespace chapter {

// In a group tiles are listed in bands of so many rows of tiles, and in a band column after
// column. So tiles that are multiplied at the same time share rows of A and columns of B, which
// the L2 then reads once.
constexpr int BAND = 8;

// Finds tiles by their index in the list. Who: a whole warp. Lane l has group first_group_ + l.
template <class C>
class TileFinder {
 public:
  __device__ TileFinder(const gg::Offsets& offsets, int groups, int n)
      : offsets_(offsets), groups_(groups), tiles_n_((n + C::COLUMNS - 1) / C::COLUMNS) {
    read_offsets();
  }
  // All tiles.
  __device__ int count() const {
    int tiles_m = 0;
    for (int group = int(threadIdx.x) % 32; group < groups_; group += 32) {
      tiles_m += tiles_in_column(offsets_[group + 1] - offsets_[group]);
    }
    return __reduce_add_sync(~0u, tiles_m) * tiles_n_;
  }
  // The tile of this index, less than count(). It may be that of the call before or more, never
  // less: the search does not go back to groups before first_group_.
  __device__ Tile find(int index) {
    for (;;) {
      // Lanes whose group ends after this tile.
      const unsigned after = __ballot_sync(~0u, index < tiles_m_end_ * tiles_n_);
      if (after != 0) return tile_of(index, __ffs(after) - 1);
      first_group_ += 32;
      tiles_m_before_ = __shfl_sync(~0u, tiles_m_end_, 31);
      read_offsets();
    }
  }

 private:
  __device__ static int tiles_in_column(int rows) { return (rows + BM - 1) / BM; }
  // Each lane reads the offsets of its group, and the warp adds up the tiles in a column.
  __device__ void read_offsets() {
    const int lane = int(threadIdx.x) % 32, group = first_group_ + lane;
    begin_ = offsets_[min(group, groups_)];
    rows_ = offsets_[min(group + 1, groups_)] - begin_;
    tiles_m_end_ = tiles_in_column(rows_);
    for (int distance = 1; distance < 32; distance *= 2) {
      const int below = __shfl_up_sync(~0u, tiles_m_end_, distance);
      if (lane >= distance) tiles_m_end_ += below;
    }
    tiles_m_end_ += tiles_m_before_;
  }
  // The tile of this index. It is in the group of lane `owner`.
  // [tile]
  __device__ Tile tile_of(int index, int owner) const {
    const int begin = __shfl_sync(~0u, begin_, owner), rows = __shfl_sync(~0u, rows_, owner);
    const int tiles_m = tiles_in_column(rows);
    const int in_group = index - (__shfl_sync(~0u, tiles_m_end_, owner) - tiles_m) * tiles_n_;
    const int first = in_group / (BAND * tiles_n_) * BAND;  // row of tiles with which the band begins
    const int band = min(BAND, tiles_m - first), in_band = in_group - first * tiles_n_;
    const int row = (first + in_band % band) * BM;  // Parts::row and add_parts rely on these steps of BM
    return {first_group_ + owner, begin + row, min(BM, rows - row), in_band / band * C::COLUMNS};
  }
  // [/tile]

  const gg::Offsets& offsets_;
  int groups_;              // of the problem
  int tiles_n_;             // columns of tiles
  int first_group_ = 0;     // the group of lane 0
  int tiles_m_before_ = 0;  // tiles in a column, of all groups before first_group_
  int begin_, rows_;        // this lane's group: its first row, and how many it has
  int tiles_m_end_;         // tiles in a column, of all groups up to and with this lane's
};

}  // namespace chapter
