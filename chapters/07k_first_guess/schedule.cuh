// SPDX-License-Identifier: MIT
//
// The scheduling warp finds its worker's tiles in the offsets. It sends each to the warps of all its blocks
// that load and multiply, while they have the tile before. It claims the next one as late as that allows. It
// waits for its own mailbox's `empty` and signals the `full` of all.

#pragma once

#include <climits>

#include "claim.cuh"
#include "cluster.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/shared.cuh"
#include "common/ptx/warp.cuh"
#include "config.cuh"
#include "even_tiles.cuh"
#include "guess.cuh"
#include "last_round.cuh"
#include "split_k.cuh"

namespace chapter {

// In the shared memory of each block of a worker, a place for one tile. `phase`: the parity of the number of
// tiles that went through before. Invariant: each warp that `empty` counts reads every tile, and none is sent
// before all have read the one before. So nobody is two phases behind, which a parity would not show.
template <int BLOCKS>
struct Mailbox {
  uint64_t full;  // barrier: a tile has come
  uint64_t
      empty;  // barrier, used in the first block: all warps of the worker that load or multiply have read it
  Tile tile;

  // Who: one thread. `readers`: warps of the worker.
  __device__ void init(int readers) {
    gg::ptx::mbarrier_init(gg::ptx::shared_addr(&full), 1);
    gg::ptx::mbarrier_init(gg::ptx::shared_addr(&empty), readers);
  }
  // Who: a whole warp of the first block. Until all have read the tile before.
  __device__ void wait_empty(int phase) const {
    gg::ptx::mbarrier_wait_parity(gg::ptx::shared_addr(&empty), phase ^ 1);
    __syncwarp();  // a slow lane could find `empty` two phases on
  }
  // Who: the same warp. Lane 4 r + w sends word w to block r.
  __device__ void send(const Tile& next, int phase) {
    wait_empty(phase);
    if constexpr (BLOCKS > 1) {
      const int lane = int(threadIdx.x) % 32, rank = lane / 4, word = lane % 4;
      if (rank < BLOCKS) {
        const auto bar = gg::ptx::mapa(gg::ptx::shared_addr(&full), rank);
        const auto to = gg::ptx::mapa(gg::ptx::shared_addr(&tile) + word * 4, rank);
        const int value = word == 0 ? next.group : word == 1 ? next.row0 : word == 2 ? next.rows : next.col0;
        if (word == 0) gg::ptx::mbarrier_arrive_expect_tx(bar, sizeof(Tile));
        gg::ptx::st_async(to, uint32_t(value), bar);
      }
    } else if (gg::ptx::elect()) {
      tile = next;
      gg::ptx::mbarrier_arrive(gg::ptx::shared_addr(&full));
    }
  }
  // Who: a whole warp of any block.
  // [read]
  __device__ Tile read(int phase) const {
    gg::ptx::mbarrier_wait_parity(gg::ptx::shared_addr(&full), phase);  // a tile has come
    const Tile next = gg::ptx::uniform(tile);
    __syncwarp();  // all lanes' reads of `tile` come before its place is given back
    // The load must have been made before the first block hears of it, whose next tile would be read here.
    if (threadIdx.x % 32 == 0 && gg::ptx::has_come(next)) arrive_in<BLOCKS>(0, gg::ptx::shared_addr(&empty));
    return next;
  }
  // [/read]
};

// The tiles of this block, for a warp that loads or multiplies each.
template <class C>
class Tiles {
 public:
  // `rank`: of the block along N. It has the columns behind those of the ranks before. `holds`: whether the
  // guess does. All warps must say the same, for the mailbox's first tile is then the second one.
  __device__ Tiles(Mailbox<C::BLOCKS>& mailbox, int rank, const Guess<C>& guess, bool holds)
      : mailbox_(mailbox),
        guess_(guess),
        rank_(rank),
        holds_(holds),
        none_in_mailbox_(holds && guess.one_each) {}

  // Who: a whole warp, before `next`. False: there is no tile.
  __device__ bool first(Tile& tile) {
    if (!holds_) return next(tile);
    tile = gg::ptx::uniform(guess_.tile);
    return tile.group >= 0;
  }
  // Who: a whole warp. False: there is no other tile.
  __device__ bool next(Tile& tile) {
    if (none_in_mailbox_) return false;
    tile = mailbox_.read(phase_);
    tile.col0 += rank_ * C::BN;
    phase_ ^= 1;
    return tile.group >= 0;
  }

 private:
  Mailbox<C::BLOCKS>& mailbox_;
  const Guess<C>& guess_;
  int rank_, phase_ = 0;
  bool holds_, none_in_mailbox_;
};

// Walks the tiles of all groups in order, for a whole warp: lane l looks at group first_group + l.
template <class C>
class Schedule {
 public:
  __device__ Schedule(const gg::Offsets& offsets, int groups, int n)
      : offsets_(offsets), groups_(groups), tiles_n_((n + C::COLUMNS - 1) / C::COLUMNS) {
    look();
  }
  // Returns a tile of group -1 where there is none. A piece may have no rows. `index` only grows.
  // [piece]
  __device__ Tile find(int index) {
    const bool cut = index >= whole_tiles_;
    const int behind = cut ? index - whole_tiles_ : 0, piece = behind % pieces_;
    const Tile tile = find_whole(index - behind + behind / pieces_);
    if (!cut || tile.group < 0) return tile;
    const int piece_rows = round_up((tile.rows + pieces_ - 1) / pieces_, STEP);
    const int row0 = min(piece * piece_rows, tile.rows);
    return {tile.group, tile.row0 + row0, min(piece_rows, tile.rows - row0), tile.col0};
  }
  // [/piece]
  // Who: a whole warp. Plans the last round. Returns how many indices `find` has a tile or a piece for. All
  // workers must come to the same number: the counter of claims goes by it.
  __device__ int plan_last_round(int workers, int slices) {
    int rows_of_tiles = 0;
    for (int group = int(threadIdx.x) % 32; group < groups_; group += 32) {
      rows_of_tiles += (offsets_[group + 1] - offsets_[group] + C::BM - 1) / C::BM;
    }
    const int tiles = __reduce_add_sync(~0u, rows_of_tiles) * tiles_n_;
    if (tiles <= workers) return tiles;  // all of them have been sent, whole
    const float rows = float(offsets_[groups_]) * float(tiles_n_);
    whole_tiles_ = (tiles - 1) / workers * workers;
    pieces_ = pieces_of_last_round<C>(tiles, rows, workers, slices);
    return whole_tiles_ + (tiles - whole_tiles_) * pieces_;
  }

 private:
  // A tile as if none were cut.
  __device__ Tile find_whole(int index) {
    for (;;) {
      const unsigned after = __ballot_sync(~0u, index < end_ * tiles_n_);  // groups that end after it
      if (after != 0) return tile_of(index, __ffs(after) - 1);
      first_group_ += 32;
      if (first_group_ >= groups_) return {-1, 0, 0, 0};
      tiles_before_ = __shfl_sync(~0u, end_, 31);
      look();
    }
  }
  // Reads the offsets of 32 groups.
  __device__ void look() {
    const int lane = int(threadIdx.x) % 32, group = first_group_ + lane;
    begin_ = offsets_[min(group, groups_)];
    rows_ = offsets_[min(group + 1, groups_)] - begin_;
    end_ = tiles_m_ = (rows_ + C::BM - 1) / C::BM;
    for (int step = 1; step < 32; step *= 2) {
      const int below = __shfl_up_sync(~0u, end_, step);
      if (lane >= step) end_ += below;
    }
    end_ += tiles_before_;
  }
  // The tile of this index, which lane `owner`'s group has.
  __device__ Tile tile_of(int index, int owner) const {
    const int begin = __shfl_sync(~0u, begin_, owner), rows = __shfl_sync(~0u, rows_, owner);
    const int tiles_m = __shfl_sync(~0u, tiles_m_, owner), before = __shfl_sync(~0u, end_, owner) - tiles_m;
    return tile_of_group<C>(first_group_ + owner, begin, rows, index - before * tiles_n_);
  }

  const gg::Offsets& offsets_;
  int groups_, tiles_n_;                    // of all; columns of tiles
  int first_group_ = 0;                     // lane 0's
  int tiles_before_ = 0;                    // rows of tiles before that group
  int begin_, rows_;                        // of this lane's group: its first row, and how many
  int tiles_m_, end_;                       // rows of tiles of this lane's group; of all groups up to it
  int whole_tiles_ = INT_MAX, pieces_ = 1;  // each tile from whole_tiles_ on is cut into pieces
};

// `counter`: of this launch.
template <class C>
__device__ void schedule_tiles(Mailbox<C::BLOCKS>& mailbox, const Guess<C>& guess, const gg::Offsets& offsets,
                               int groups, int n, int k, int counter) {
  const bool holds = guess.holds(offsets);
  if (holds && guess.one_each) return;
  // [find]
  const int workers = int(gridDim.x) / C::BLOCKS;
  Schedule<C> schedule(offsets, groups, n);
  int index = int(blockIdx.x) / C::BLOCKS, phase = 0;
  bool more = true;
  if (!holds) {  // else every warp has its first tile
    const Tile tile = schedule.find(index);
    more = tile.group >= 0;
    mailbox.send(tile, phase);
    phase ^= 1;
  }
  const int slices = slices_of<C>(k, 0).count;                  // no block of the worker has more
  const int tiles = schedule.plan_last_round(workers, slices);  // nobody waits: the first tile is on its way
  const bool claims = tiles > workers && slices >= LEAST_SLICES;
  while (more) {
    Tile tile;
    do {
      if (claims) {
        // A tile claimed early waits for this worker, though another may be free first.
        mailbox.wait_empty(phase);
        index = claim(counter, workers, tiles);
      } else {
        index += workers;
      }
      tile = schedule.find(index);
    } while (tile.group >= 0 && tile.rows == 0);  // a piece that got no rows
    more = tile.group >= 0;
    mailbox.send(tile, phase);
    phase ^= 1;
  }
  // [/find]
}

}  // namespace chapter
