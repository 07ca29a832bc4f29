// SPDX-License-Identifier: MIT
//
// The scheduling warp finds its worker's tiles in the offsets. It sends each to the warps of all its blocks
// that load and multiply, while they have the tile before. It waits for its own mailbox's `empty` and signals
// the `full` of all.

#pragma once

#include "cluster.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/shared.cuh"
#include "common/ptx/warp.cuh"
#include "config.cuh"

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
  // Who: a whole warp of the first block. Lane 4 r + w sends word w to block r.
  __device__ void send(const Tile& next, int phase) {
    gg::ptx::mbarrier_wait_parity(gg::ptx::shared_addr(&empty), phase ^ 1);  // all have read the tile before
    __syncwarp();  // a slow lane could find `empty` two phases on
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
  // `rank`: of the block, which has the columns behind those of the ranks before.
  __device__ Tiles(Mailbox<C::CLUSTER>& mailbox, int rank) : mailbox_(mailbox), rank_(rank) {}

  // Who: a whole warp. False: there is no other tile.
  __device__ bool next(Tile& tile) {
    tile = mailbox_.read(phase_);
    tile.col0 += rank_ * C::BN;
    phase_ ^= 1;
    return tile.group >= 0;
  }

 private:
  Mailbox<C::CLUSTER>& mailbox_;
  int rank_, phase_ = 0;
};

// Walks the tiles of all groups in order, for a whole warp: lane l looks at group first_group + l.
template <class C>
class Schedule {
 public:
  __device__ Schedule(const gg::Offsets& offsets, int groups, int n)
      : offsets_(offsets), groups_(groups), tiles_n_((n + C::COLUMNS - 1) / C::COLUMNS) {
    look();
  }
  // Returns a tile of group -1 where there is none. `index` only grows.
  __device__ Tile find(int index) {
    for (;;) {
      const unsigned after = __ballot_sync(~0u, index < end_ * tiles_n_);  // groups that end after it
      if (after != 0) return tile_of(index, __ffs(after) - 1);
      first_group_ += 32;
      if (first_group_ >= groups_) return {-1, 0, 0, 0};
      tiles_before_ = __shfl_sync(~0u, end_, 31);
      look();
    }
  }

 private:
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
  // The tile of this index, which lane `owner`'s group has: column after column.
  __device__ Tile tile_of(int index, int owner) const {
    const int begin = __shfl_sync(~0u, begin_, owner), rows = __shfl_sync(~0u, rows_, owner);
    const int tiles_m = __shfl_sync(~0u, tiles_m_, owner), before = __shfl_sync(~0u, end_, owner) - tiles_m;
    const int in_group = index - before * tiles_n_, row0 = in_group % tiles_m * C::BM;
    return {first_group_ + owner, begin + row0, min(C::BM, rows - row0), in_group / tiles_m * C::COLUMNS};
  }

  const gg::Offsets& offsets_;
  int groups_, tiles_n_;  // of all; columns of tiles
  int first_group_ = 0;   // lane 0's
  int tiles_before_ = 0;  // rows of tiles before that group
  int begin_, rows_;      // of this lane's group: its first row, and how many
  int tiles_m_, end_;     // rows of tiles of this lane's group; of all groups up to it
};

template <class C>
__device__ void schedule_tiles(Mailbox<C::CLUSTER>& mailbox, const gg::Offsets& offsets, int groups, int n) {
  // [find]
  Schedule<C> schedule(offsets, groups, n);
  Tile tile;
  int index = int(blockIdx.x) / C::CLUSTER, phase = 0;
  do {
    tile = schedule.find(index);
    mailbox.send(tile, phase);  // as soon as all warps have the one before
    index += int(gridDim.x) / C::CLUSTER;
    phase ^= 1;
  } while (tile.group >= 0);
  // [/find]
}

}  // namespace chapter
