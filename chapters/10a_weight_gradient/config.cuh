// SPDX-License-Identifier: MIT
//
// The kernel's sizes, and where its roles find what they share.

#pragma once

#include "common/kernel/tensor_map.h"
#include "common/kernel/types.cuh"

namespace chapter {

constexpr int BK = 64;          // tokens, that is rows of A and B, in a slice
constexpr int BOX = 64;         // columns of A or B in a box: 128 bytes, the most that TMA swizzles
constexpr int ROW_BYTES = 128;  // of a box
constexpr int BOX_BYTES = BK * ROW_BYTES;              // BK tokens, BOX columns of each
constexpr int BOXES_A = 2, BOXES_B = 3;                // of a slice of a block's tile
constexpr int BM = BOXES_A * BOX, BN = BOXES_B * BOX;  // rows and columns of D in a block's tile
// A wgmma sums over 16 tokens. And the swizzle wants boxes that begin at multiples of 1024.
static_assert(BK % 16 == 0 && BOX_BYTES % 1024 == 0);
// A wgmma makes 64 rows of D, from the columns of a box of A: SUM_ROWS. It makes at most 256 columns.
// multiply.cuh has sums for two boxes of A, `upper` and `lower`.
constexpr int SUM_ROWS = BOX;
static_assert(SUM_ROWS == 64 && BOXES_A == 2 && BN <= 256);
// A box of D, as TMA stores it: 8 rows of 128 bytes, which are 32 columns of f32 or 64 of 16 bits. K is
// a multiple of D_ROWS, so a box lies in one group or past its end.
constexpr int D_ROWS = 8, D_BOX_BYTES = D_ROWS * ROW_BYTES;
template <class D>
constexpr int D_COLUMNS = ROW_BYTES / int(sizeof(D));
// In store.cuh a lane's row in a box is lane / 4, and a warp's 16 rows are two boxes.
static_assert(D_ROWS == 8);

// A worker is a cluster of CLUSTER blocks, or a single block. Its tiles have ROWS rows and BN columns
// of D, of which the block of rank r has BM rows, from the tile's row r * BM on. So all its blocks
// multiply the same columns of B: each loads its share of the slice's tokens, for all.
// Each of a block's two consumers multiplies whole tiles: the first one those of even numbers, as the
// worker gets them, the second one the others.
template <int CLUSTER_>
struct Config {
  static constexpr int CONSUMERS = 2;  // warpgroups that multiply: the first ones
  // Turns and schedule_tiles find the other consumer, and its mailbox, by `^ 1`.
  static_assert(CONSUMERS == 2);
  static constexpr int LOADER = 4 * CONSUMERS, SCHEDULER = LOADER + 1;  // warps of the last warpgroup
  static constexpr int THREADS = 128 * (CONSUMERS + 1);
  // A thread begins with 168 registers, by the launch bound, and only these are dealt out anew.
  static constexpr int FIRST_REGISTERS = 168, CONSUMER_REGISTERS = 232, OTHER_REGISTERS = 40;
  static_assert(FIRST_REGISTERS == 65536 / THREADS / 8 * 8);  // of 65536, a multiple of 8
  static_assert(CONSUMERS * CONSUMER_REGISTERS + OTHER_REGISTERS <= (CONSUMERS + 1) * FIRST_REGISTERS);
  static constexpr int STAGES = 5, CLUSTER = CLUSTER_, ROWS = BM * CLUSTER;
  static_assert(CLUSTER == 1 || CLUSTER == 2);  // more was never tried
  // Each warp that multiplies has so many boxes, for neighbouring columns of D. It fills them all
  // before it waits again, a whole number of times for 8 rows of a tile.
  static constexpr int BOXES_D = 3;
  static_assert(BN / D_COLUMNS<float> % BOXES_D == 0 && BN / D_COLUMNS<bf16> % BOXES_D == 0);
  static constexpr int SHARE = BK / CLUSTER;  // tokens of B that a block loads, for all
  // TMA swizzles by the address: each share begins where the pattern does, at a multiple of 1024.
  static_assert(BK % CLUSTER == 0 && SHARE * ROW_BYTES % 1024 == 0);
  static constexpr int A_BYTES = BOXES_A * BOX_BYTES, B_BYTES = BOXES_B * BOX_BYTES;  // of a slice
  static constexpr int B_OFFSET = STAGES * A_BYTES;  // all stages of A lie before those of B
  static constexpr int SLICES_BYTES = STAGES * (A_BYTES + B_BYTES);
  // D's boxes follow the slices. TMA swizzles by the address, store_boxes by the row in a box: these
  // agree where a box begins at a multiple of 1024.
  static_assert(SLICES_BYTES % 1024 == 0 && D_BOX_BYTES % 1024 == 0);
  // Warps before LOADER multiply, and each has boxes of its own.
  static constexpr int SHARED_BYTES = SLICES_BYTES + LOADER * BOXES_D * D_BOX_BYTES;
  // A block has at most 227 KB. Barriers and mailboxes in kernel.cuh are less than 1 KB.
  static_assert(SHARED_BYTES + 1024 <= 227 * 1024);
  static_assert(STAGES >= 2);  // a consumer gives a stage back after it has begun with the next one
};

struct Maps {
  CUtensorMap a;  // boxes of BK rows and BOX columns of a window (token_map)
  CUtensorMap b;  // boxes of a block's SHARE of rows, and of BOX columns, likewise
  CUtensorMap d;  // boxes of D_ROWS rows and D_COLUMNS columns
};

// A worker's tile, or an end: four words, as Mailbox::send wants. In Mailbox::receive a warp arrives
// only if the bitwise or of the words is not INT_MIN, which has the sign bit alone (has_come in
// common/kernel/ptx/cluster.cuh says why). It never is: a tile has no negative word, so the sign bit
// is not set, and an end has a -1, so all bits are. With a word that breaks this the worker would
// wait for ever.
struct alignas(16) Tile {
  int index;     // in the list of all groups' tiles; -1: there is no other tile
  int token0;    // the first one of its group, a row of A and of B
  int tokens;    // of the group, over which the sum runs: 0 or more
  int position;  // of its first slice in the ring: 0 to Ring::POSITIONS - 1 (ring.cuh)
};

// Shared memory.
struct Memory {
  unsigned char* slices;   // [STAGES][BOXES_A][BK][BOX] of A, from B_OFFSET on the same of B, swizzled
  unsigned char* d_boxes;  // [warps that multiply][BOXES_D][D_ROWS] rows of ROW_BYTES of D, swizzled
  uint32_t a_tile_addr, b_tile_addr;  // where the slices begin
  uint32_t full_addr;   // [STAGES] barriers: the slice has landed. One arrival, and TMA's bytes.
  uint32_t empty_addr;  // [STAGES] barriers: a consumer of each block has multiplied the slice
  uint32_t turn_addr;   // [CONSUMERS] barriers: this consumer may begin its next tile (Turns)
};

}  // namespace chapter
