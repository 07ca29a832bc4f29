// SPDX-License-Identifier: MIT
//
// The scheduling warp finds its block's tiles in the offsets. It sends each to the warps that load and
// multiply, while they have the tile before.
// It waits for the mailbox's `received` and signals its `sent`.

#pragma once

#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "config.cuh"

namespace chapter {

// A place for one tile in shared memory. `phase` of send and receive: the parity of the number of
// tiles that were sent before this one. Each receiving warp must receive every tile.
struct Mailbox {
  uint64_t sent;      // barrier: the tile is here
  uint64_t received;  // barrier: all warps that load or multiply have read it
  Tile tile;

  // Who: one thread. `receivers`: the number of warps that receive. Each arrives once for a tile.
  __device__ void init(int receivers) {
    gg::ptx::mbarrier_init(gg::ptx::shared_addr(&sent), 1);
    gg::ptx::mbarrier_init(gg::ptx::shared_addr(&received), receivers);
  }
  // Who: a whole warp.
  // [send]
  __device__ void send(const Tile& next, int phase) {
    // All have read the tile before.
    gg::ptx::mbarrier_wait_parity(gg::ptx::shared_addr(&received), phase ^ 1);
    if (gg::ptx::elect()) {  // all lanes meet here: a wait begun after the arrival might never end
      tile = next;
      gg::ptx::mbarrier_arrive(gg::ptx::shared_addr(&sent));
    }
  }
  // [/send]
  // Who: a whole warp.
  // [receive]
  __device__ Tile receive(int phase) const {
    // The tile is here. Lanes meet in __syncwarp: a wait begun after the arrival might never end.
    gg::ptx::mbarrier_wait_parity(gg::ptx::shared_addr(&sent), phase);
    const Tile next = gg::ptx::uniform(tile);
    __syncwarp();  // all lanes' reads of `tile` come before its place is given back
    if (threadIdx.x % 32 == 0) gg::ptx::mbarrier_arrive(gg::ptx::shared_addr(&received));
    return next;
  }
  // [/receive]
};

// A warp's end of the mailbox. Each warp that loads or multiplies has its own, and receives
// every tile that is sent.
class TileReceiver {
 public:
  __device__ explicit TileReceiver(Mailbox& mailbox) : mailbox_(mailbox) {}

  // Who: a whole warp. False: there is no other tile.
  __device__ bool next(Tile& tile) {
    tile = mailbox_.receive(phase_);
    phase_ ^= 1;
    return tile.group >= 0;
  }

 private:
  Mailbox& mailbox_;
  int phase_ = 0;
};

// Finds tiles by their index, which counts those of all groups. Who: a whole warp. Lane l has group
// first_group_ + l. Tiles are counted in int: each has at least 144 bytes of B and D (one row, 8
// columns, K = 8), so 2^31 of them have over 300 GB. Rows too: an offset is below 2^31 (gg::Offsets).
template <class C>
class TileFinder {
 public:
  // Reads global memory: only after griddepcontrol_wait.
  __device__ TileFinder(const gg::Offsets& offsets, int groups, int n)
      : offsets_(offsets), groups_(groups), tiles_n_((n + C::BN - 1) / C::BN) {
    read_offsets();
  }
  // [search]
  // Returns the tile of this index. Past the last one its group is -1. Call it with growing indices.
  __device__ Tile find(int index) {
    for (;;) {
      // Lanes whose group ends after this tile.
      const unsigned after = __ballot_sync(~0u, index < tiles_m_end_ * tiles_n_);
      if (after != 0) return tile_of(index, __ffs(after) - 1);
      first_group_ += 32;
      if (first_group_ >= groups_) return {-1, 0, 0, 0};
      tiles_m_before_ = __shfl_sync(~0u, tiles_m_end_, 31);
      read_offsets();
    }
  }
  // [/search]

 private:
  // [offsets]
  // Each lane reads the offsets of its group, and the warp makes the prefix sum of tiles_m_.
  __device__ void read_offsets() {
    const int lane = int(threadIdx.x) % 32, group = first_group_ + lane;
    begin_ = offsets_[min(group, groups_)];
    rows_ = offsets_[min(group + 1, groups_)] - begin_;
    tiles_m_end_ = tiles_m_ = (rows_ + C::BM - 1) / C::BM;
    for (int distance = 1; distance < 32; distance *= 2) {
      const int below = __shfl_up_sync(~0u, tiles_m_end_, distance);
      if (lane >= distance) tiles_m_end_ += below;
    }
    tiles_m_end_ += tiles_m_before_;
  }
  // [/offsets]
  // The tile of this index. It is in the group of lane `owner`, whose tiles go column after column.
  __device__ Tile tile_of(int index, int owner) const {
    const int begin = __shfl_sync(~0u, begin_, owner), rows = __shfl_sync(~0u, rows_, owner);
    const int tiles_m = __shfl_sync(~0u, tiles_m_, owner);
    // `before`: sum of tiles_m_ of all groups before. `first`: the tile's first row in its group.
    const int before = __shfl_sync(~0u, tiles_m_end_, owner) - tiles_m;
    const int tile_in_group = index - before * tiles_n_, first = tile_in_group % tiles_m * C::BM;
    return {first_group_ + owner, begin + first, min(C::BM, rows - first), tile_in_group / tiles_m * C::BN};
  }

  const gg::Offsets& offsets_;
  int groups_;              // of the problem
  int tiles_n_;             // columns of tiles
  int first_group_ = 0;     // the group of lane 0
  int tiles_m_before_ = 0;  // tiles in a column of all groups before first_group_
  int begin_, rows_;        // this lane's group: its first row, and how many it has
  int tiles_m_;             // this lane's group: tiles in a column
  int tiles_m_end_;         // tiles in a column, of all groups up to and with this lane's
};

// Who: the scheduling warp. Sends the block's tiles, every gridDim.x-th one, and at last group -1:
// without that the receivers would wait for ever.
template <class C>
__device__ void schedule_tiles(Mailbox& mailbox, const gg::Offsets& offsets, int groups, int n) {
  // [find]
  TileFinder<C> finder(offsets, groups, n);
  Tile tile;
  int index = int(blockIdx.x), phase = 0;
  do {
    tile = finder.find(index);
    mailbox.send(tile, phase);  // as soon as all warps have the one before
    index += int(gridDim.x);
    phase ^= 1;
  } while (tile.group >= 0);
  // [/find]
}

}  // namespace chapter
