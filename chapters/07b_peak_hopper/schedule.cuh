// SPDX-License-Identifier: MIT
//
// Chapter 07b: which tile comes next. Tiles are counted through all groups, as in chapter 05b; here each also
// gets its share of the group's rows, a place that suits the L2, and the last few are cut into parts. One
// warp of a cluster finds them, for all.

#pragma once

#include <climits>
#include <cmath>

#include "mailbox.cuh"

namespace chapter {

constexpr int STEP = 32;  // rows of a tile, and wgmma's N, come in steps of it
__host__ __device__ constexpr int round_up(int value, int step) { return (value + step - 1) / step * step; }

// What of this chapter is switched on: see --off. Read at run time where that costs nothing.
struct Ideas {
  bool multicast = true, overlap = true, tail = true, shares = true, bands = true, narrow = true,
       hints = true, pdl = true, claims = true, guess = true, split = true, sizes = true;
};

// a / b for 0 <= a and 0 < b. Below 2^21 a float's quotient, from half a step above, never falls short of a
// whole number: a division of integers costs three times as much, in code too.
__device__ inline int divide_small(int a, int b) { return int(__fdividef(float(a) + 0.5f, float(b))); }
__device__ inline int divide(int a, int b) { return a < 1 << 21 ? divide_small(a, b) : a / b; }

// A launch has one of these counters for its tiles: so many launches may be under way at the same time. The
// last claim of a launch sets it back to 0.
constexpr int COUNTERS = 4096;
static __device__ int claimed[COUNTERS];

// Walks the tiles of all groups in order, for a whole warp: lane l looks at group first_group + l. BM, BN:
// rows of a tile at most, and its columns in a block. Rows of tiles are counted in int: 2^31 tiles would be
// at least 2^43 elements of D.
template <int BM, int BN>
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

  // How many tiles there would be if they had.
  __device__ int tiles_if(int rows) const { return groups_ * tiles_of(rows) * tiles_n_; }

  // The tile as it would be, for a worker's first index, and `share` of the rows in a tile. Needs no offsets,
  // and nothing of memory; short, for nothing hides it.
  __device__ Tile guess(int index, int rows, int share) const {
    const int tiles_m = tiles_of(rows), group = divide_small(index, tiles_m * tiles_n_);
    if (group >= groups_) return {};
    return within<divide_small>(group, group * rows, rows, index - group * tiles_m * tiles_n_, tiles_m,
                                share);
  }

  // False: there is no such tile. The tiles asked for only grow. A part of a tile may have no rows.
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

  // Counts the tiles. After the full rounds of all workers some may be left over, and each of these is cut
  // into as many parts as make the end come soonest. Asked when the first tile is on its way: nobody waits
  // for it.
  __device__ void plan_tail(int workers, int slices) {
    int total = lane() == 31 ? end_ : 0;
    for (int group = first_group_ + 32 + lane(); group < groups_; group += 32) {
      total += tiles_of(offset(group + 1) - offset(group));
    }
    for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(~0u, total, step);
    total *= tiles_n_;
    tiles_ = total;
    const int left = total % workers;
    if (!ideas_.tail || total < workers || left == 0) return;
    float least = INFINITY;
    for (int parts = 1; parts <= BM / STEP; ++parts) {
      const int rows = round_up((BM + parts - 1) / parts, STEP);
      const int rounds = (left * parts + workers - 1) / workers;
      const int slice = max(rows * BN / 32, (rows + BN) * 2);  // clocks: multiplied, or until it is there
      const float clocks = float(rounds) * (float(slice) * float(slices) + 1000);
      if (clocks < least) least = clocks, parts_ = parts;
    }
    whole_tiles_ = total - left;
    tiles_ = whole_tiles_ + left * parts_;
  }
  __device__ int tiles() const { return tiles_; }  // with parts

  // The index of the next tile that nobody has: for those behind the first one of each worker.
  __device__ int claim(int counter, int workers) const {
    int index = 0;
    if (lane() == 0) {
      index = workers + atomicAdd(&claimed[counter], 1);
      // Each worker comes once too often, so there are as many claims as tiles.
      if (index == workers + tiles_ - 1) atomicExch(&claimed[counter], 0);
    }
    return __shfl_sync(~0u, index, 0);
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
  int tiles_ = 0;
};

// For a whole warp of a cluster's first block: finds its tiles and sends them, and a last one of no group.
// `first`: it has none yet. A claim is a way to the L2 and back between two tiles, so short ones go in turn;
// 32 slices are a guess that nobody has tuned.
template <int BLOCKS, int BM, int BN>
__device__ void hand_out(Schedule<BM, BN>& schedule, Mailbox& mailbox, bool first, int worker, int workers,
                         int slices, bool claims, int counter) {
  constexpr int LEAST_SLICES = 32;
  Sender<BLOCKS> sender(mailbox);
  Tile tile;
  schedule.look();
  if (first && schedule.find(worker, tile)) sender.send(tile);
  schedule.plan_tail(workers, slices);
  claims = claims && schedule.tiles() > workers && slices >= LEAST_SLICES;
  int index = worker;
  // [claims]
  do {
    if (claims) sender.wait();  // who claims sooner has less to choose from
    index = claims ? schedule.claim(counter, workers) : index + workers;
    if (!schedule.find(index, tile)) tile = {};
    if (tile.rows == 0 && tile.group >= 0) continue;
    if (!claims) sender.wait();
    sender.send(tile);
  } while (tile.group >= 0);
  // [/claims]
}

}  // namespace chapter
