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

constexpr int STEP = 32;        // rows of a tile, and wgmma's N, come in steps of it
constexpr int ROW_BYTES = 128;  // of a slice, and of every swizzled box in shared memory
__host__ __device__ constexpr int round_up(int value, int step) { return (value + step - 1) / step * step; }

// What of this chapter is switched on: see --off. Read at run time where that costs nothing.
struct Ideas {
  bool multicast = true, overlap = true, stagger = true, tail = true, shares = true, bands = true,
       narrow = true, hints = true, pdl = true, claims = true, guess = true, split = true, sizes = true;
};

// a / b for 0 <= a and 0 < b. Below 2^21 a float's quotient, from half a step above, never falls short of a
// whole number: a division of integers costs three times as much, in code too.
__device__ inline int divide_small(int a, int b) { return int(__fdividef(float(a) + 0.5f, float(b))); }
__device__ inline int divide(int a, int b) { return a < 1 << 21 ? divide_small(a, b) : a / b; }

// How a group's rows are shared out over its rows of tiles: each has `rows`, the first `taller` ones a step
// more, and the last one what is left.
struct Share {
  int rows = 0, taller = 0;
};

// A launch has one of these counters for its tiles: so many launches may be under way at the same time. The
// last claim of a launch sets it back to 0.
constexpr int COUNTERS = 4096;
static __device__ int claimed[COUNTERS];

// Walks the tiles of all groups in order, for a whole warp: lane l looks at group first_group + l. Rows of
// tiles are counted in int: 2^31 tiles would be at least 2^43 elements of D.
template <class C>
class Schedule {
  static constexpr int BM = C::BM, BN = C::BN;

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

  // The tile as it would be, for a worker's first index, if all groups had `rows`, so shared out. Needs no
  // offsets, and nothing of memory; short, for nothing hides it.
  __device__ Tile guess(int index, int rows, Share share) const {
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

  // Counts the tiles and plans their end, when the first one is on its way: nobody waits for it. Some tiles
  // are left over for the last round. They may be cut into parts; and if all groups have `rows_each` (0: they
  // do not), the last few groups may have a row of tiles more, all of these less tall, so that the round is
  // full. Each lane estimates one such plan, in clocks. Or no round is planned at all: halves_pay.
  __device__ void plan_end(int workers, int slices, int rows_each) {
    int rows_of_tiles = lane() == 31 ? end_ : 0;
    for (int group = first_group_ + 32 + lane(); group < groups_; group += 32) {
      rows_of_tiles += tiles_of(offset(group + 1) - offset(group));
    }
    tiles_ = __reduce_add_sync(~0u, rows_of_tiles) * tiles_n_;
    if (!ideas_.tail || tiles_ <= workers) return;
    if (C::TALL && rows_each == 0 && halves_pay()) return cut_from(max(workers, tiles_ - workers / 4), 2);

    constexpr int MOST_PARTS = BM / STEP;
    const int more = lane() / MOST_PARTS, parts = lane() % MOST_PARTS + 1;
    const int tiles = tiles_ + more * tiles_n_, rounds = (tiles - 1) / workers;  // all but the last
    const int rows = rows_of(tiles);
    const int last = ((tiles - rounds * workers) * parts + workers - 1) / workers;  // rounds of parts
    const float part = clocks_of(round_up((rows + parts - 1) / parts, STEP), slices);
    float clocks = float(rounds) * clocks_of(rows, slices) + float(last) * part;
    // What that does not count, two guesses: it is chance who gets how many less tall tiles; and workers that
    // do not end together wait for half a part.
    clocks += rows_each > 0 ? clocks_of(BM, slices) / 8 * float(more) : part / 2;
    if (more > 0 && !may_have_more(more, workers, rows_each)) clocks = INFINITY;
    const unsigned key = (__float_as_uint(clocks) & ~31u) | unsigned(lane());  // compares as the float does
    const int best = int(__reduce_min_sync(~0u, key) % 32);

    if (MAY_HAVE_MORE && best >= MOST_PARTS) {
      more_from_ = groups_ - best / MOST_PARTS;
      look();
      tiles_ += best / MOST_PARTS * tiles_n_;
    }
    cut_from((tiles_ - 1) / workers * workers, best % MOST_PARTS + 1);
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
  // This lane's group: where it begins, its rows, and the rows of tiles, and those of all groups up to and
  // with it.
  __device__ void look() {
    const int group = first_group_ + lane();
    begin_ = offset(min(group, groups_));
    rows_ = offset(min(group + 1, groups_)) - begin_;
    end_ = tiles_m_ = tiles_of(rows_) + (rows_ > 0 && group >= more_from_);
    for (int step = 1; step < 32; step *= 2) {
      const int below = __shfl_up_sync(~0u, end_, step);
      if (lane() >= step) end_ += below;
    }
    end_ += tiles_before_;
  }

 private:
  __device__ static int tiles_of(int rows) { return (rows + BM - 1) / BM; }

  // Of a slice of a tile of so many rows: its products; until it is there, 45 bytes a clock from the L2.
  __device__ static constexpr int to_multiply(int rows) { return rows * BN / 32; }
  __device__ static constexpr int to_load(int rows) { return (rows / C::CLUSTER + BN) * ROW_BYTES / 45; }
  __device__ float clocks_of(int rows, int slices) const {  // of a whole tile
    if (!ideas_.narrow) rows = BM;
    return float(max(to_multiply(rows), to_load(rows))) * float(slices) + 1000;
  }

  // Whether the last `more` groups may have one row of tiles more: of tiles a quarter less tall at most,
  // which still wait for products and not for loads; and nobody's first tile is among them.
  static constexpr bool MAY_HAVE_MORE = to_multiply(BM / 4 * 3) >= to_load(BM / 4 * 3);
  __device__ bool may_have_more(int more, int workers, int rows_each) const {
    const int tiles_m = tiles_of(rows_each);
    return MAY_HAVE_MORE && ideas_.shares && rows_each / (tiles_m + 1) >= BM / 4 * 3 &&
           (groups_ - more) * tiles_m * tiles_n_ >= workers;
  }

  // Workers whose groups are not equal end at any time within that of a tile. They end closer together if the
  // last tiles, a quarter as many as workers, are halved: with fewer some whole one ends last, with more some
  // half. Measured: it pays if a half, which waits for loads, takes less than 0.6 of a tile.
  __device__ bool halves_pay() const {
    return ideas_.narrow && to_load(BM / 2) * 5 < to_multiply(rows_of(tiles_)) * 3;
  }
  __device__ void cut_from(int whole_tiles, int parts) {
    whole_tiles_ = whole_tiles;
    parts_ = parts;
    tiles_ = whole_tiles + (tiles_ - whole_tiles) * parts;
  }
  __device__ int rows_of(int tiles) const {  // each, if the rows there are make so many
    return min(BM, int(float(offset(groups_)) * float(tiles_n_) / float(tiles)) + 1);
  }
  __device__ static int lane() { return int(threadIdx.x) % 32; }
  __device__ int offset(int group) const {
    return wide_ ? int(static_cast<const int64_t*>(offsets_)[group])
                 : static_cast<const int32_t*>(offsets_)[group];
  }

  __device__ void place(int index, int owner, Tile& tile) const {
    const int begin = __shfl_sync(~0u, begin_, owner), rows = __shfl_sync(~0u, rows_, owner);
    const int tiles_m = __shfl_sync(~0u, tiles_m_, owner), before = __shfl_sync(~0u, end_, owner) - tiles_m;
    Share share = {BM};
    if (ideas_.shares) {
      const int steps = (rows + STEP - 1) / STEP, each = divide(steps, tiles_m);
      share = {each * STEP, steps - each * tiles_m};
    }
    tile = within<divide>(first_group_ + owner, begin, rows, index - before * tiles_n_, tiles_m, share);
  }

  // Within a group: bands of 8 rows of tiles, each column by column, so that the tiles under way at the same
  // time need few different rows of A and of B. The first band has what is no multiple of 8. Every other band
  // begins with the last column: what the one before read last of B is still in the L2.
  template <int (*DIVIDE)(int, int)>
  __device__ Tile within(int group, int begin, int rows, int in_group, int tiles_m, Share share) const {
    constexpr int BAND = 8;
    int first = 0, band = tiles_m;  // rows of tiles before this band, and in it
    if (ideas_.bands && tiles_m > BAND) {
      band = tiles_m % BAND;
      const int behind = in_group - band * tiles_n_;  // the first band
      if (behind >= 0) first = band + DIVIDE(behind, BAND * tiles_n_) * BAND, band = BAND;
    }
    const int in_band = in_group - first * tiles_n_;
    const int column = tiles_n_ == 1 ? 0 : DIVIDE(in_band, band), tile_m = first + in_band - column * band;
    const bool turned = (first + BAND - 1) / BAND % 2;
    const int row0 = tile_m * share.rows + min(tile_m, share.taller) * STEP;
    const int height = share.rows + (tile_m < share.taller ? STEP : 0);
    return {group, begin + row0, min(height, rows - row0), turned ? tiles_n_ - 1 - column : column};
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
  int begin_, rows_, tiles_m_, end_;       // of this lane's group
  int more_from_ = INT_MAX;                // groups from it on have a row of tiles more than they need
  int whole_tiles_ = INT_MAX, parts_ = 1;  // tiles from whole_tiles_ on are cut into parts
  int tiles_ = 0;
};

// For a whole warp of a cluster's first block: finds its tiles and sends them, and a last one of no group.
// `rows_each`: of all groups, then it has the first one already; 0: they differ. A claim is a way to the L2
// and back between two tiles, so short ones go in turn; 32 slices are a guess that nobody has tuned.
template <class C>
__device__ void hand_out(Schedule<C>& schedule, Mailbox& mailbox, int rows_each, int worker, int workers,
                         int slices, bool claims, int counter) {
  constexpr int LEAST_SLICES = 32;
  Sender<C::BLOCKS> sender(mailbox);
  Tile tile;
  schedule.look();
  if (rows_each == 0 && schedule.find(worker, tile)) sender.send(tile);
  schedule.plan_end(workers, slices, rows_each);
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
