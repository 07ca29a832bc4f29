// SPDX-License-Identifier: MIT
//
// A worker has one scheduling warp, in its first block. It finds the worker's tiles in the offsets,
// and sends each to the warps of all blocks that load and multiply, while they have the tile before.
// So the blocks of a worker have the same tiles, however these are chosen. It waits for its own
// mailbox's `received` and signals the `sent` of all.

#pragma once

#include "cluster.cuh"
#include "common/kernel/ptx/cluster.cuh"
#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "config.cuh"

namespace chapter {

// A place for one tile in the shared memory of each block of a worker. `phase` is the parity of the
// number of tiles that were sent before this one. Invariant: each warp that `received` counts
// receives every tile, and a tile is sent only after all have received the one before. So no warp is
// two phases behind, which a parity would not show.
// Why no wait lasts for ever: to receive tile i, a warp needs slices of the tiles before it, and none
// of tile i. So tile i + 1 is sent without any slice of tile i, and a consumer may wait for it before
// it has released the last slice of tile i. But it must have released all slices of tile i - 1. A
// tile may have more slices than there are stages: a loading warp might wait for such a stage with
// the rest of tile i - 1 yet to load, never receive tile i, and so keep tile i + 1 from being sent.
template <int BLOCKS>
struct Mailbox {
  uint64_t sent;      // barrier: the tile is here
  uint64_t received;  // barrier, only used in the first block: all receiving warps of the worker have read it
  Tile tile;

  // Who: one thread. `receivers`: the number of warps that load or multiply, in all blocks of the
  // worker. Each receives every tile that is sent. With a smaller number a tile could be
  // overwritten before all have read it, with a larger one no second tile would be sent.
  __device__ void init(int receivers) {
    gg::ptx::mbarrier_init(gg::ptx::shared_addr(&sent), 1);
    gg::ptx::mbarrier_init(gg::ptx::shared_addr(&received), receivers);
  }
  // Who: a whole warp of the first block. Lane 4 r + w sends word w to block r.
  // [send]
  __device__ void send(const Tile& next, int phase) {
    // All have read the tile before.
    gg::ptx::mbarrier_wait_parity(gg::ptx::shared_addr(&received), phase ^ 1);
    __syncwarp();  // else a slow lane could find `received` two phases on
    if constexpr (BLOCKS > 1) {
      static_assert(sizeof(Tile) == 16 && 4 * BLOCKS <= 32);  // four words, each from a lane of its own
      const int lane = int(threadIdx.x) % 32, rank = lane / 4, word = lane % 4;
      if (rank < BLOCKS) {
        const auto bar = gg::ptx::mapa(gg::ptx::shared_addr(&sent), rank);
        const auto to = gg::ptx::mapa(gg::ptx::shared_addr(&tile) + word * 4, rank);
        const int value = word == 0 ? next.group : word == 1 ? next.row0 : word == 2 ? next.rows : next.col0;
        if (word == 0) gg::ptx::mbarrier_arrive_expect_tx(bar, sizeof(Tile));
        gg::ptx::st_async(to, uint32_t(value), bar);
      }
    } else if (gg::ptx::elect()) {
      tile = next;
      gg::ptx::mbarrier_arrive(gg::ptx::shared_addr(&sent));
    }
  }
  // [/send]
  // Who: a whole warp of any block.
  // [receive]
  __device__ Tile receive(int phase) const {
    gg::ptx::mbarrier_wait_parity(gg::ptx::shared_addr(&sent), phase);  // the tile is here
    const Tile next = gg::ptx::uniform(tile);
    __syncwarp();  // all lanes have left the wait, and begun to read, before lane 0 arrives
    // An arrival in another block may overtake a load that has begun. So lane 0 arrives only with
    // its words in registers: has_come is always true, but the compiler cannot know that, and must
    // compare them. The shuffles of `uniform` would wait for them too, but all lanes load one
    // address, so ptxas leaves the shuffles out. In the machine code (CUDA 13.0) one instruction
    // loads for all lanes: when lane 0 has its words, all have theirs.
    if (threadIdx.x % 32 == 0 && gg::ptx::has_come(next))
      arrive_in<BLOCKS>(0, gg::ptx::shared_addr(&received));
    return next;
  }
  // [/receive]
};

// A warp's end of the mailbox. Each warp that loads or multiplies has its own, and receives
// every tile that is sent.
template <class C>
class TileReceiver {
 public:
  // `rank`: the block's, in its cluster. It has the columns after those of the ranks before.
  __device__ TileReceiver(Mailbox<C::CLUSTER>& mailbox, int rank) : mailbox_(mailbox), rank_(rank) {}

  // Who: a whole warp. False: there is no other tile.
  __device__ bool next(Tile& tile) {
    tile = mailbox_.receive(phase_);
    static_assert(C::COLUMNS == C::CLUSTER * C::BN);  // of a tile: BN columns for each rank
    tile.col0 += rank_ * C::BN;
    phase_ ^= 1;
    return tile.group >= 0;
  }

 private:
  Mailbox<C::CLUSTER>& mailbox_;
  int rank_, phase_ = 0;
};

// Finds tiles by their index, which counts those of all groups. Who: a whole warp. Lane l has group
// first_group_ + l. Tiles are counted in int: each has at least 144 bytes of B and D (one row, 8
// columns, K = 8), so 2^31 of them have over 300 GB. Rows too: an offset is below 2^31 (gg::Offsets).
template <class C>
class TileFinder {
 public:
  // Reads global memory: only after griddepcontrol_wait.
  __device__ TileFinder(const gg::Offsets& offsets, int groups, int n)
      : offsets_(offsets), groups_(groups), tiles_n_((n + C::COLUMNS - 1) / C::COLUMNS) {
    read_offsets();
  }
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

 private:
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
  // The tile of this index. It is in the group of lane `owner`, whose tiles go column after column.
  __device__ Tile tile_of(int index, int owner) const {
    const int begin = __shfl_sync(~0u, begin_, owner), rows = __shfl_sync(~0u, rows_, owner);
    const int tiles_m = __shfl_sync(~0u, tiles_m_, owner);
    // `before`: sum of tiles_m_ of all groups before. `first`: the tile's first row in its group.
    const int before = __shfl_sync(~0u, tiles_m_end_, owner) - tiles_m;
    const int tile_in_group = index - before * tiles_n_, first = tile_in_group % tiles_m * C::BM;
    return {first_group_ + owner, begin + first, min(C::BM, rows - first),
            tile_in_group / tiles_m * C::COLUMNS};
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

// Who: the scheduling warp of the worker's first block. Sends the worker's tiles, and at last
// group -1: without that the receivers would wait for ever.
template <class C>
__device__ void schedule_tiles(Mailbox<C::CLUSTER>& mailbox, const gg::Offsets& offsets, int groups, int n) {
  // [find]
  TileFinder<C> finder(offsets, groups, n);
  Tile tile;
  // The worker's number, and how many there are: the grid is a multiple of CLUSTER (launch.cuh).
  int index = int(blockIdx.x) / C::CLUSTER, phase = 0;
  do {
    tile = finder.find(index);
    mailbox.send(tile, phase);  // as soon as all warps have the one before
    index += int(gridDim.x) / C::CLUSTER;
    phase ^= 1;
  } while (tile.group >= 0);
  // [/find]
}

}  // namespace chapter
