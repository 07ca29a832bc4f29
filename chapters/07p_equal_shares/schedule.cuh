// SPDX-License-Identifier: MIT
//
// The scheduling warp finds its worker's tiles in the offsets, all but a first one that was guessed rightly.
// It sends each to the warps of all its blocks that load and multiply, while they have the tile before. It
// claims a tile only when the mailbox is empty. It waits for its own mailbox's `received` and signals the
// `sent` of all. Where the guess holds and gives each worker one tile at most, it sends nothing.

#pragma once

#include <cstring>

#include "claim.cuh"
#include "cluster.cuh"
#include "common/kernel/ptx/cluster.cuh"
#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "config.cuh"
#include "even_tiles.cuh"
#include "guess.cuh"
#include "shares.cuh"
#include "split_k.cuh"

namespace chapter {

// A place for one tile in the shared memory of each block of a worker. `phase` is the parity of the number of
// tiles that were sent before this one. Invariant: each warp that `received` counts receives every tile
// that is sent, and a tile is sent only after all have received the one before. So no warp is two phases
// behind, which a parity would not show.
template <int BLOCKS>
struct Mailbox {
  uint64_t sent;      // barrier: the tile is here
  uint64_t received;  // barrier, only used in the first block: all receiving warps of the worker have read it
  Tile tile;
  static constexpr int WORDS = 6;  // of a tile

  // Who: one thread. `receivers`: the number of warps that load or multiply, in all blocks of the worker.
  __device__ void init(int receivers) {
    gg::ptx::mbarrier_init(gg::ptx::shared_addr(&sent), 1);
    gg::ptx::mbarrier_init(gg::ptx::shared_addr(&received), receivers);
  }
  // Who: a whole warp of the first block. Waits until all have received the tile before.
  __device__ void wait_received(int phase) const {
    gg::ptx::mbarrier_wait_parity(gg::ptx::shared_addr(&received), phase ^ 1);
    __syncwarp();  // else a slow lane could find `received` two phases on
  }
  // Who: the same warp. Lane 6 r + w sends word w to block r.
  __device__ void send(const Tile& next, int phase) {
    wait_received(phase);
    if constexpr (BLOCKS > 1) {
      static_assert(sizeof(Tile) == WORDS * 4 && WORDS * BLOCKS <= 32);  // each from a lane of its own
      const int lane = int(threadIdx.x) % 32, rank = lane / WORDS, word = lane % WORDS;
      if (rank < BLOCKS) {
        const auto bar = gg::ptx::mapa(gg::ptx::shared_addr(&sent), rank);
        const auto to = gg::ptx::mapa(gg::ptx::shared_addr(&tile) + word * 4, rank);
        int words[WORDS];
        memcpy(words, &next, sizeof(Tile));
        int value = words[0];
#pragma unroll
        for (int i = 1; i < WORDS; ++i) value = word == i ? words[i] : value;
        if (word == 0) gg::ptx::mbarrier_arrive_expect_tx(bar, sizeof(Tile));
        gg::ptx::st_async(to, uint32_t(value), bar);
      }
    } else if (gg::ptx::elect()) {
      tile = next;
      gg::ptx::mbarrier_arrive(gg::ptx::shared_addr(&sent));
    }
  }
  // Who: a whole warp of any block.
  // [receive]
  __device__ Tile receive(int phase) const {
    gg::ptx::mbarrier_wait_parity(gg::ptx::shared_addr(&sent), phase);  // the tile is here
    const Tile next = gg::ptx::uniform(tile);
    __syncwarp();  // all lanes' reads of `tile` come before its place is given back
    // Arrive only when the load is done: the first block may then overwrite `tile`.
    if (threadIdx.x % 32 == 0 && gg::ptx::has_come(next))
      arrive_in<BLOCKS>(0, gg::ptx::shared_addr(&received));
    return next;
  }
  // [/receive]
};

// Where a warp gets its block's tiles: the first one from a guess that holds, all others from the mailbox.
// Each warp that loads or multiplies has its own receiver, and takes all that is sent.
template <class C>
class TileReceiver {
 public:
  // `rank`: of the block along N. It has the columns behind those of the ranks before. `holds`: whether the
  // guess does. All warps of the worker must say the same, also the scheduling one: by it they know whether
  // the mailbox's first tile is the worker's first or second, and whether there is any.
  // `slices`: those of a whole tile that the block multiplies. In splits each block of a worker has others,
  // which no message knows.
  __device__ TileReceiver(Mailbox<C::BLOCKS>& mailbox, int rank, Slices slices, const Guess<C>& guess,
                          bool holds)
      : mailbox_(mailbox),
        guess_(guess),
        slices_(slices),
        rank_(rank),
        holds_(holds),
        none_in_mailbox_(guess.nothing_sent(holds)) {}

  // Who: a whole warp, before `next`. False: there is no tile.
  __device__ bool first(Tile& tile) {
    if (!holds_) return next(tile);
    // So that the compiler knows, as of a received tile, that all lanes have the same: by its rows
    // consumers branch to their wgmma.
    tile = gg::ptx::uniform(guess_.tile);
    return tile.group >= 0;
  }
  // Who: a whole warp. False: there is no other tile.
  __device__ bool next(Tile& tile) {
    if (none_in_mailbox_) return false;
    tile = mailbox_.receive(phase_);
    tile.col0 += rank_ * C::BN;
    if constexpr (C::SPLIT > 1) {
      tile.first = slices_.first;
      tile.slices = slices_.count;
    }
    phase_ ^= 1;
    return tile.group >= 0;
  }

 private:
  Mailbox<C::BLOCKS>& mailbox_;
  const Guess<C>& guess_;
  Slices slices_;
  int rank_, phase_ = 0;
  bool holds_, none_in_mailbox_;
};

// Finds tiles by their index, which counts those of all groups. Who: a whole warp. Lane l has group
// first_group_ + l. Guess relies on the same order of tiles: change both together.
template <class C>
class TileFinder {
 public:
  __device__ TileFinder(const gg::Offsets& offsets, int groups, int n)
      : offsets_(offsets), groups_(groups), tiles_n_((n + C::COLUMNS - 1) / C::COLUMNS) {
    read_offsets();
  }
  // Returns the tile of this index, with the slices that the worker has of it. Group -1: there is none. An
  // index below plan.whole_tiles is a tile's. Behind those it is a piece's, which may have no rows: it must
  // not be sent, for load_tiles has no map for it. Or a run's.
  // [piece]
  __device__ Tile find(const Plan& plan, int index) {
    const bool cut = index >= plan.whole_tiles;
    if (cut && plan.runs > 0) {
      const Segment segment = plan.segment(index);
      if (segment.slices == 0) return no_tile();  // behind the last one
      Tile tile = find_uncut(plan.whole_tiles + segment.tile);
      tile.first = segment.first;
      tile.slices = segment.slices;
      tile.run = segment.run;
      tile.adds = segment.adds;
      tile.inside = segment.first > 0;
      return tile;
    }
    const int piece_index = cut ? index - plan.whole_tiles : 0;  // among the pieces of all tiles
    const int piece = piece_index % plan.pieces;                 // of its tile
    // For a whole tile this is `index`, for piece_index is 0. For a piece it is
    // plan.whole_tiles + piece_index / plan.pieces: each tile of the last round has so many indices.
    const int tile_index = index - piece_index + piece_index / plan.pieces;
    Tile tile = find_uncut(tile_index);
    tile.slices = plan.slices;
    if (!cut || tile.group < 0) return tile;
    const int piece_rows = round_up((tile.rows + plan.pieces - 1) / plan.pieces, STEP);
    const int first = min(piece * piece_rows, tile.rows);
    tile.row0 += first;
    tile.rows = min(piece_rows, tile.rows - first);
    return tile;
  }
  // [/piece]
  // Whether it is known, before the plan, that this worker begins with the tile of its number.
  __device__ bool begins_with_tile(int workers, int slices) const {
    // More than 32 groups have more tiles: if these are too many for runs, so are all.
    return !begins_with_run<C>(tiles_m_in_lanes() * tiles_n_, slices, workers);
  }
  // The plan of the launch. Who: the scheduling warp of each worker, a whole warp, for itself. Before: at
  // most one index was found, the worker's first.
  // Any plan must guarantee:
  // - All workers have the same: it depends on nothing but the launch's offsets and sizes. Else rows or
  //   slices are computed twice or never, and a flag may never be raised.
  // - A guess that holds has the same: what it begins with is not sent.
  // - plan.indices counts the pieces without rows, too. `claim` sets its counter back by it, and
  //   schedule_tiles takes every index below it.
  __device__ Plan plan(int workers, int slices) const {
    if (groups_ <= 32) {  // then read_offsets has read all: lane 31 has the end of the last group
      return make_plan<C>(tiles_m_in_lanes(), tiles_n_, __shfl_sync(~0u, begin_ + rows_, 31), slices,
                          workers);
    }
    int tiles_m = 0;
    for (int group = int(threadIdx.x) % 32; group < groups_; group += 32) {
      tiles_m += tiles_in_column<C>(offsets_[group + 1] - offsets_[group]);
    }
    tiles_m = __reduce_add_sync(~0u, tiles_m);
    return make_plan<C>(tiles_m, tiles_n_, offsets_[groups_], slices, workers);
  }

 private:
  // The tiles in a column of all groups, where the lanes have them all: then nobody has gone on to others.
  __device__ int tiles_m_in_lanes() const { return __shfl_sync(~0u, tiles_m_end_, 31); }
  // The tile of this index, if none were cut.
  __device__ Tile find_uncut(int index) {
    if (index <
        tiles_m_before_ * tiles_n_) {  // in a group before first_group_: a run's tile behind another's
      first_group_ = tiles_m_before_ = 0;
      read_offsets();
    }
    for (;;) {
      // Lanes whose group ends after this tile.
      const unsigned after = __ballot_sync(~0u, index < tiles_m_end_ * tiles_n_);
      if (after != 0) return tile_of(index, __ffs(after) - 1);
      first_group_ += 32;
      if (first_group_ >= groups_) return no_tile();
      tiles_m_before_ = __shfl_sync(~0u, tiles_m_end_, 31);
      read_offsets();
    }
  }
  // Each lane reads the offsets of its group, and the warp adds up the tiles in a column.
  __device__ void read_offsets() {
    const int lane = int(threadIdx.x) % 32, group = first_group_ + lane;
    begin_ = offsets_[min(group, groups_)];
    rows_ = offsets_[min(group + 1, groups_)] - begin_;
    tiles_m_end_ = tiles_m_ = tiles_in_column<C>(rows_);
    for (int distance = 1; distance < 32; distance *= 2) {
      const int below = __shfl_up_sync(~0u, tiles_m_end_, distance);
      if (lane >= distance) tiles_m_end_ += below;
    }
    tiles_m_end_ += tiles_m_before_;
  }
  // The tile of this index. It is in the group of lane `owner`.
  __device__ Tile tile_of(int index, int owner) const {
    const int begin = __shfl_sync(~0u, begin_, owner), rows = __shfl_sync(~0u, rows_, owner);
    const int tiles_m = __shfl_sync(~0u, tiles_m_, owner);
    const int before = __shfl_sync(~0u, tiles_m_end_, owner) - tiles_m;
    return tile_of_group<C>(first_group_ + owner, begin, rows, tiles_m, tiles_n_, index - before * tiles_n_);
  }

  const gg::Offsets& offsets_;
  int groups_;              // of the problem
  int tiles_n_;             // columns of tiles
  int first_group_ = 0;     // the group of lane 0
  int tiles_m_before_ = 0;  // tiles in a column, of all groups before first_group_
  int begin_, rows_;        // this lane's group: its first row, and how many it has
  int tiles_m_;             // this lane's group: tiles in a column
  int tiles_m_end_;         // tiles in a column, of all groups up to and with this lane's
};

// Sends a worker's tiles, pieces and runs, and then the end. Who: the scheduling warp of its
// first block.
// `counter`: the number of this launch's, from next_counter.
template <class C>
__device__ void schedule_tiles(Mailbox<C::BLOCKS>& mailbox, const Guess<C>& guess, const gg::Offsets& offsets,
                               int groups, int n, int k, int counter) {
  // [begin]
  const bool holds = guess.holds(offsets);
  if (guess.nothing_sent(holds)) return;
  const int workers = int(gridDim.x) / C::BLOCKS;
  const int slices = slices_of<C>(k, 0).count;  // of a whole tile; no block of the worker has more
  TileFinder<C> finder(offsets, groups, n);
  int index = int(blockIdx.x) / C::BLOCKS, phase = 0;
  const auto send_tile_of = [&](const Plan& plan) {
    const Tile tile = finder.find(plan, index);
    if (tile.group < 0 || tile.rows == 0) return;  // a piece without rows is never sent: no map is for it
    mailbox.send(tile, phase);
    phase ^= 1;
  };
  bool has_first = holds;  // every receiver has it already
  if (!holds && finder.begins_with_tile(workers, slices)) {
    send_tile_of(Plan::whole(slices));  // need not wait for the plan
    has_first = true;
  }
  const Plan plan = finder.plan(workers, slices);
  const bool claims = plan.indices > workers && slices >= LEAST_SLICES;
  // [/begin]
  for (;;) {
    if (!has_first) send_tile_of(plan);
    has_first = false;
    if (index >= plan.indices) break;
    if (claims) {
      // Not before the mailbox is empty: an index claimed earlier would wait for this worker, though another
      // may be free first. And once for each index below plan.indices, with rows or not: claim relies on it.
      // If the guess holds, nothing was sent before: the first wait returns at once.
      mailbox.wait_received(phase);
      index = claim(counter, workers, plan.indices);
    } else {
      index += workers;
    }
  }
  mailbox.send(no_tile(), phase);
}

}  // namespace chapter
