// SPDX-License-Identifier: MIT
//
// The scheduling warp claims its worker's tiles, and finds in the offsets where each one is. It
// sends them to two mailboxes in turn, one for each consumer: in all its blocks, the loading warp
// reads both, and a consumer its own. It claims a tile only when the one before has been read. For
// a mailbox it waits at the `received` of its own block, and signals the `sent` of all blocks.

#pragma once

#include "claim.cuh"
#include "cluster.cuh"
#include "common/kernel/ptx/cluster.cuh"
#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "config.cuh"
#include "tiles.cuh"

namespace chapter {

// A place for one tile in the shared memory of each block of a worker. `phase` is the parity of the
// number of tiles that were sent here before this one. Invariant: each warp that `received` counts
// receives every tile that is sent here, and a tile is sent only after all have received the one
// before. So no warp is two phases behind, which a parity would not show. After its tiles each
// mailbox is sent an end, for its consumer. The loading warp receives the first of the two ends only,
// and leaves its loop. So `received` of the other mailbox stays one arrival of each block short.
// Nothing is sent after an end, so nobody waits for that.
template <int BLOCKS>
struct Mailbox {
  uint64_t sent;      // barrier: the tile is here
  uint64_t received;  // barrier, only used in the first block: all receiving warps of the worker have read it
  Tile tile;

  // Who: one thread. `receivers`: the number of warps that load or are this consumer's, in all blocks
  // of the worker.
  __device__ void init(int receivers) {
    gg::ptx::mbarrier_init(gg::ptx::shared_addr(&sent), 1);
    gg::ptx::mbarrier_init(gg::ptx::shared_addr(&received), receivers);
  }
  // Who: a whole warp of the first block. Waits until all have received the tile that was sent here
  // last. `phase`: of the tile to be sent next.
  __device__ void wait_received(int phase) const {
    gg::ptx::mbarrier_wait_parity(gg::ptx::shared_addr(&received), phase ^ 1);
    __syncwarp();  // else a slow lane could find `received` two phases on
  }
  // Who: the same warp. Lane 4 r + w sends word w to block r.
  __device__ void send(const Tile& next, int phase) {
    wait_received(phase);
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

// Where a warp gets its worker's tiles. They have the numbers 0, 1, 2 and so on, and a tile of number i
// comes in mailbox i % 2. Each warp that loads or multiplies has its own receiver, which takes all that is
// sent to its mailboxes.
template <class C>
class TileReceiver {
 public:
  // `begin`, `step`: this warp has the tiles `begin`, begin + step and so on: of a consumer w, w and 2; of
  // the loading warp, 0 and 1.
  __device__ TileReceiver(Mailbox<C::CLUSTER> (&mailboxes)[C::CONSUMERS], int begin, int step)
      : mailboxes_(mailboxes), mailbox_(begin), step_(step) {}

  // Who: a whole warp. False: there is no other tile.
  __device__ bool next(Tile& tile) {
    tile = mailboxes_[mailbox_].receive(phases_ >> mailbox_ & 1);
    phases_ ^= 1 << mailbox_;
    mailbox_ = (mailbox_ + step_) % C::CONSUMERS;
    return tile.group >= 0;
  }

 private:
  Mailbox<C::CLUSTER> (&mailboxes_)[C::CONSUMERS];
  int mailbox_, step_;  // the next tile's; from there to the one after it
  int phases_ = 0;      // bit i: that of mailbox i
};

// Sends a worker's tiles, and an end for each consumer. Who: the scheduling warp of its first block.
// `counter`: the number of this launch's, from next_counter.
template <class C>
__device__ void schedule_tiles(Mailbox<C::CLUSTER> (&mailboxes)[C::CONSUMERS], const gg::Offsets& offsets,
                               int groups, int n, int counter) {
  // `mailbox`: which one the next tile is sent to. Bit i of `phases`: that of mailbox i.
  int mailbox = 0, phases = 0;
  const auto send = [&](const Tile& tile) {
    mailboxes[mailbox].send(tile, phases >> mailbox & 1);
    phases ^= 1 << mailbox;
    mailbox ^= 1;
  };
  // [find]
  TileFinder<C> finder(offsets, groups, n);
  const int tiles = finder.count(), workers = int(gridDim.x) / C::CLUSTER;
  for (int index = int(blockIdx.x) / C::CLUSTER; index < tiles; index = claim(counter, workers, tiles)) {
    send(finder.find(index));
    // Not before this tile has been read: one claimed earlier would be bound to this worker, though
    // another one may be idle first.
    mailboxes[mailbox ^ 1].wait_received(phases >> (mailbox ^ 1) & 1);
  }
  // [/find]
  for (int consumer = 0; consumer < C::CONSUMERS; ++consumer) send({-1, 0, 0, 0});
}

}  // namespace chapter
