// SPDX-License-Identifier: MIT
//
// A worker has one scheduling warp, in its first block. It claims the worker's tiles, finds them in
// the offsets, and sends each to the warps of all blocks that load and multiply, while they have the
// tile before. So the blocks of a worker have the same tiles, however these are chosen. It waits for
// its own mailbox's `received` and signals the `sent` of all.

#pragma once

#include <climits>

#include "claim.cuh"
#include "cluster.cuh"
#include "common/kernel/ptx/cluster.cuh"
#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "config.cuh"
#include "even_tiles.cuh"

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
  // Who: a whole warp of the first block. `phase`: that of the tile to be sent next. Waits until
  // all have received the tile before that one, so that the mailbox is empty.
  __device__ void wait_received(int phase) const {
    gg::ptx::mbarrier_wait_parity(gg::ptx::shared_addr(&received), phase ^ 1);
    __syncwarp();  // else a slow lane could find `received` two phases on
  }
  // Who: the same warp. Lane 4 r + w sends word w to block r.
  // Waits by itself: after a wait_received of the same phase it goes on at once.
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
  // Returns the tile or piece of this index. Past the last one its group is -1. Before
  // plan_last_round each index is a tile's. After it, indices from whole_tiles_ on are those of
  // pieces, and a piece may have no rows: it must not be sent, for load_tiles has no map for it.
  // Call it with growing indices.
  // [piece]
  __device__ Tile find(int index) {
    const bool cut = index >= whole_tiles_;                  // into pieces_ pieces, maybe only one
    const int piece_index = cut ? index - whole_tiles_ : 0;  // among all pieces of the last round
    const int piece = piece_index % pieces_;                 // of its tile
    // For a whole tile this is `index`, for piece_index is 0. For a piece it is
    // whole_tiles_ + piece_index / pieces_: each tile of the last round has `pieces_` indices.
    // It never falls while `index` grows, as find_uncut relies on.
    const int tile_index = index - piece_index + piece_index / pieces_;
    const Tile tile = find_uncut(tile_index);
    if (!cut || tile.group < 0) return tile;
    // Each row is in one piece, as pieces_ * piece_rows is at least tile.rows. No piece is wider
    // than its tile, so none has over BM rows. As pieces are whole steps, only the last one with
    // rows may have a step that is not full. Those after it have no rows.
    const int piece_rows = round_up((tile.rows + pieces_ - 1) / pieces_, STEP);
    const int rows_above = min(piece * piece_rows, tile.rows);  // in the pieces before it
    return {tile.group, tile.row0 + rows_above, min(piece_rows, tile.rows - rows_above), tile.col0};
  }
  // [/piece]
  // [plan]
  // Plans the last round: each of its tiles is cut into the same number of pieces. They are at most
  // `workers` in all, for speed: one round. From now on indices from whole_tiles_ on are pieces'.
  // Who: the scheduling warp of each worker, a whole warp. Before: `find` was only called for
  // this worker's first tile.
  // Any plan must guarantee:
  // - whole_tiles_ is `workers` or more. Else a first tile, sent before the plan, is cut as well,
  //   and its rows are computed twice.
  // - All workers have the same plan: it depends on nothing but the launch's offsets and sizes.
  //   Else rows are computed twice or never.
  // - indices_ counts the pieces without rows, too. `claim` sets its counter back by it, and
  //   schedule_tiles takes every index below it.
  __device__ void plan_last_round(int workers) {
    int tiles_m = 0;
    for (int group = int(threadIdx.x) % 32; group < groups_; group += 32) {
      tiles_m += tiles_in_column<C>(offsets_[group + 1] - offsets_[group]);
    }
    tiles_m = __reduce_add_sync(~0u, tiles_m);
    const int all_tiles = tiles_m * tiles_n_;
    indices_ = all_tiles;
    if (all_tiles <= workers) return;  // there are none, or each is some worker's first tile
    // All rounds but the last, which has 1 to `workers` tiles: a full one counts as the last, too.
    // So at least `workers`.
    whole_tiles_ = (all_tiles - 1) / workers * workers;
    const int last_tiles = all_tiles - whole_tiles_;
    // For an average tile. most_pieces: how many have room in the round. steps_of_piece: the fewest
    // with which they have all its steps. pieces_: how many of them have rows; any from 1 on gives
    // the right D (`find`). No divisor is 0: there are rows, and 1 to `workers` tiles are left.
    const int average_steps = (offsets_[groups_] - 1) / tiles_m / STEP + 1;
    const int most_pieces = workers / last_tiles;
    const int steps_of_piece = (average_steps + most_pieces - 1) / most_pieces;
    pieces_ = (average_steps + steps_of_piece - 1) / steps_of_piece;  // at most most_pieces
    indices_ = whole_tiles_ + last_tiles * pieces_;
  }
  // [/plan]
  // The number of indices: of whole tiles, and of all pieces, with rows or without. `find` has a
  // tile or piece for each index below it, and for no other, as `claim` relies on. So find_uncut
  // counts as plan_last_round does, by tiles_in_column and tiles_n_. Before: plan_last_round.
  __device__ int indices() const { return indices_; }

 private:
  // The tile of this index, if none were cut. `index` must be at least that of the call before.
  // With a smaller one the tile would be wrong, even outside D, since the search never goes back to
  // groups before first_group_.
  __device__ Tile find_uncut(int index) {
    for (;;) {
      // Lanes whose group ends after this tile. The first one's group has the tile, and has rows: a
      // group without rows ends where the one before it ends, so its lane is never the first.
      const unsigned after = __ballot_sync(~0u, index < tiles_m_end_ * tiles_n_);
      if (after != 0) return tile_of(index, __ffs(after) - 1);
      first_group_ += 32;
      if (first_group_ >= groups_) return {-1, 0, 0, 0};
      tiles_m_before_ = __shfl_sync(~0u, tiles_m_end_, 31);
      read_offsets();
    }
  }
  // Each lane reads the offsets of its group, and the warp makes the prefix sum of tiles_m_.
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
  // `owner`: lane of the tile's group. It has rows, and its tiles_m_ is tiles_in_column<C>(rows_).
  __device__ Tile tile_of(int index, int owner) const {
    const int begin = __shfl_sync(~0u, begin_, owner), rows = __shfl_sync(~0u, rows_, owner);
    const int tiles_m = __shfl_sync(~0u, tiles_m_, owner);
    const int before = __shfl_sync(~0u, tiles_m_end_, owner) - tiles_m;
    return tile_of_group<C>(first_group_ + owner, begin, rows, tiles_m, index - before * tiles_n_);
  }

  const gg::Offsets& offsets_;
  int groups_;                 // of the problem
  int tiles_n_;                // columns of tiles
  int first_group_ = 0;        // the group of lane 0
  int tiles_m_before_ = 0;     // tiles in a column, of all groups before first_group_
  int begin_, rows_;           // this lane's group: its first row, and how many it has
  int tiles_m_;                // this lane's group: tiles in a column
  int tiles_m_end_;            // tiles in a column, of all groups up to and with this lane's
  int indices_ = 0;            // how many: of whole tiles and of pieces
  int whole_tiles_ = INT_MAX;  // tiles of all rounds but the last; so the first index of a piece
  int pieces_ = 1;             // of each tile of the last round; 1 where it stays whole
};

// Tiles with fewer slices than this are taken in turn, not claimed: a claim goes to the L2 and back
// while the slices of a tile are loaded, and is hidden if these take longer. For speed alone: D is
// right with any value. Untuned: no other value was timed, and fewer slices may well hide a claim.
constexpr int LEAST_SLICES = 32;

// Sends a worker's tiles and pieces, and then the end. Who: the scheduling warp of its first block.
// `counter`: the number of this launch's, from next_counter.
template <class C>
__device__ void schedule_tiles(Mailbox<C::CLUSTER>& mailbox, const gg::Offsets& offsets, int groups, int n,
                               int k, int counter) {
  // [find]
  const int workers = int(gridDim.x) / C::CLUSTER;
  TileFinder<C> finder(offsets, groups, n);
  int index = int(blockIdx.x) / C::CLUSTER, phase = 0;
  Tile tile = finder.find(index);
  mailbox.send(tile, phase);
  const int slices = (k + BK - 1) / BK;
  finder.plan_last_round(workers);  // the first tile, sent already, need not wait for it
  const int indices = finder.indices();
  // For speed alone. All workers must decide alike: only by the launch's offsets and sizes.
  const bool claims = indices > workers && slices >= LEAST_SLICES;
  while (tile.group >= 0) {
    phase ^= 1;  // counts messages: once for each that is sent, not for each index
    do {
      if (claims) {
        // Not before the mailbox is empty: an index claimed earlier would wait for this worker,
        // though another may be free first. And once for each index that was found, with rows or
        // not: claim relies on it.
        mailbox.wait_received(phase);
        index = claim(counter, workers, indices);
      } else {
        index += workers;
      }
      tile = finder.find(index);
    } while (tile.group >= 0 && tile.rows == 0);  // a piece without rows is never sent: no map is for it
    mailbox.send(tile, phase);
  }
  // [/find]
}

}  // namespace chapter
