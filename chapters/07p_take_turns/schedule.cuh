// SPDX-License-Identifier: MIT
//
// The scheduling warp finds its worker's tiles in the offsets, all but a first one that was guessed rightly.
// It sends them to two mailboxes in turn, one for each consumer: in all its blocks, the loading warp reads
// both, and a consumer its own. It claims a tile only when the one before has been read. For a
// mailbox it waits at the `received` of its own block, and signals the `sent` of all blocks. Where
// the guess holds and gives each worker one tile at most, it sends nothing.

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
#include "guess.cuh"

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
  // Who: a whole warp of the first block. `phase`: that of the tile to be sent next. Waits until
  // all have received the tile before that one, so that the mailbox is empty.
  __device__ void wait_received(int phase) const {
    gg::ptx::mbarrier_wait_parity(gg::ptx::shared_addr(&received), phase ^ 1);
    __syncwarp();  // else a slow lane could find `received` two phases on
  }
  // Who: the same warp. Lane 4 r + w sends word w to block r. A block's tile has the `columns` after those
  // of the ranks before.
  __device__ void send(const Tile& next, int phase, int columns) {
    wait_received(phase);
    if constexpr (BLOCKS > 1) {
      static_assert(sizeof(Tile) == 16 && 4 * BLOCKS <= 32);  // four words, each from a lane of its own
      const int lane = int(threadIdx.x) % 32, rank = lane / 4, word = lane % 4;
      if (rank < BLOCKS) {
        const auto bar = gg::ptx::mapa(gg::ptx::shared_addr(&sent), rank);
        const auto to = gg::ptx::mapa(gg::ptx::shared_addr(&tile) + word * 4, rank);
        const int value = word == 0   ? next.group
                          : word == 1 ? next.row0
                          : word == 2 ? next.rows
                                      : next.col0 + rank * columns;
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

// Where a warp gets its block's tiles: the worker's first one from a guess that holds, all others from the
// mailboxes. A worker's tiles have the numbers 0, 1, 2 and so on, and a tile of number i comes in mailbox
// i % 2. Each warp that loads or multiplies has its own receiver, which takes all that is sent
// to its mailboxes.
template <class C>
class TileReceiver {
 public:
  // `begin`, `step`: this warp has the tiles `begin`, begin + step and so on: of a consumer w, w and
  // 2; of the loading warp, 0 and 1. This step counts tiles, STEP counts rows. `holds`: whether the
  // guess does. All warps of the worker must say the same, also the scheduling one: by it they know
  // whether the first mailbox's first tile is number 0 or 2, and whether there is any.
  __device__ TileReceiver(Mailbox<C::BLOCKS> (&mailboxes)[C::CONSUMERS], int begin, int step,
                          const Guess<C>& guess, bool holds)
      : mailboxes_(mailboxes),
        guess_(guess),
        mailbox_(begin),
        step_(step),
        holds_(holds),
        none_in_mailbox_(guess.nothing_sent(holds)) {}

  // Who: a whole warp, before `next`. False: there is no tile.
  __device__ bool first(Tile& tile) {
    if (!holds_ || mailbox_ > 0) return next(tile);
    mailbox_ = step_ % C::CONSUMERS;
    // All lanes have the same tile. `uniform`, as in Mailbox::receive, lets the compiler know it:
    // consumers branch by its rows to wgmma, which a whole warp must execute.
    tile = gg::ptx::uniform(guess_.tile);  // its col0 is this block's already
    return tile.group >= 0;
  }
  // [next]
  // Who: a whole warp. False: there is no other tile.
  __device__ bool next(Tile& tile) {
    if (none_in_mailbox_) return false;
    tile = mailboxes_[mailbox_].receive(phases_ >> mailbox_ & 1);
    phases_ ^= 1 << mailbox_;
    mailbox_ = (mailbox_ + step_) % C::CONSUMERS;
    return tile.group >= 0;
  }
  // [/next]

 private:
  Mailbox<C::BLOCKS> (&mailboxes_)[C::CONSUMERS];
  const Guess<C>& guess_;
  int mailbox_, step_;  // the next tile's; from there to the one after it
  int phases_ = 0;      // bit i: that of mailbox i
  bool holds_, none_in_mailbox_;
};

// Finds tiles by their index, which counts those of all groups. Who: a whole warp. Lane l has group
// first_group_ + l. Tiles are counted in int: each has at least 144 bytes of B and D (one row, 8
// columns, K = 8), so 2^31 of them have over 300 GB. Rows too: an offset is below 2^31 (gg::Offsets).
// Guess numbers tiles in the same way: change both together.
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
  // this worker's first tile, or not at all.
  // Any plan must guarantee:
  // - whole_tiles_ is `workers` or more. Else a first tile, sent or guessed before the plan, is cut as well,
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
    return tile_of_group<C>(first_group_ + owner, begin, rows, tiles_m, tiles_n_, index - before * tiles_n_);
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

// Sends a worker's tiles and pieces, and then the end to both mailboxes. Who: the scheduling warp of its
// first block. `counter`: the number of this launch's, from next_counter.
template <class C>
__device__ void schedule_tiles(Mailbox<C::BLOCKS> (&mailboxes)[C::CONSUMERS], const Guess<C>& guess,
                               const gg::Offsets& offsets, int groups, int n, int k, int counter) {
  // [begin]
  static_assert(C::CONSUMERS == 2);  // mailbox ^ 1 is the other one
  const bool holds = guess.holds(offsets);
  if (guess.nothing_sent(holds)) return;  // all workers do: one tile each at most, so none claims
  const int workers = int(gridDim.x) / C::BLOCKS;
  TileFinder<C> finder(offsets, groups, n);
  int index = int(blockIdx.x) / C::BLOCKS;
  int mailbox = 0, phases = 0;  // the next tile's; bit i: the phase of mailbox i
  const auto send = [&](const Tile& tile) {
    mailboxes[mailbox].send(tile, phases >> mailbox & 1, C::BN);
    phases ^= 1 << mailbox;
    mailbox ^= 1;
  };
  bool more = true;
  if (holds) {  // every receiver has tile 0 already: the first message is tile 1, in mailbox 1
    mailbox = 1;
  } else {
    const Tile tile = finder.find(index);
    more = tile.group >= 0;
    send(tile);
  }
  // [/begin]
  finder.plan_last_round(workers);  // the first tile, guessed or sent already, need not wait for it
  const int indices = finder.indices();
  const bool claims = indices > workers && slices_of(k) >= LEAST_SLICES;
  // [send]
  while (more) {
    Tile tile;
    do {
      if (claims) {
        // Tile i is claimed only after message i - 1, in the other mailbox, was read: in each block
        // by the loading warp and by the consumer of tile i - 1. An index claimed earlier would be
        // bound to this worker, though another one may be idle first. The loading warps want tile i
        // when all loads of tile i - 1 are started. If the guess holds, no message 0 was sent, and
        // the first wait returns at once. One claim for each index that was found, with rows or not:
        // `claim` relies on it.
        mailboxes[mailbox ^ 1].wait_received(phases >> (mailbox ^ 1) & 1);
        index = claim(counter, workers, indices);
      } else {
        index += workers;
      }
      tile = finder.find(index);
    } while (tile.group >= 0 && tile.rows == 0);  // a piece without rows is never sent: no map is for it
    more = tile.group >= 0;
    send(tile);
  }
  send({-1, 0, 0, 0});  // the other consumer's end
  // [/send]
}

}  // namespace chapter
