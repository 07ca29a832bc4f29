// SPDX-License-Identifier: MIT
//
// The kernel's sizes, and where its roles find what they share.

#pragma once

#include "common/kernel/epilogue_glu.cuh"
#include "common/kernel/tensor_map.h"
#include "common/kernel/types.cuh"

namespace chapter {

constexpr int BK = 64;          // depth of a slice
constexpr int ROW_BYTES = 128;  // of a box: 64 columns, the most that TMA swizzles
constexpr int BOX = 64;         // rows and columns of a box
constexpr int BOX_BYTES = BOX * ROW_BYTES;
constexpr int HALF = BOX;                         // rows of a half of a tile: as a wgmma and a box have them
constexpr int BM = 2 * HALF, BN = 128;            // rows and columns of a block's tile of the product
constexpr int UNITS = gg::epilogue::GLU_COLUMNS;  // columns of y in a pair: a gate and an up each
static_assert(2 * UNITS == BOX);

// A tile has so many boxes of C, and as many of D. Boxes 2 i and 2 i + 1 have the columns of pair
// i, and the rows of the tile's upper half and of its lower half.
constexpr int PAIRS = BN / UNITS, TILE_BOXES = 2 * PAIRS;

// A tile of over HALF rows has a lower half. Without one, A and C of the lower half are not loaded,
// and nothing is multiplied there. Loads, products and boxes must agree: load_tiles, Boxes::stride
// and make_gradients compare with HALF, with_width_for<BM, HALF> with BM - HALF, and multiply_tiles
// asserts that both are the same.
//
// A worker is a cluster of CLUSTER blocks, side by side along N, or a single block. All its blocks
// multiply the same rows of A: each loads its share of each half, for all.
// Each of a block's two consumers multiplies whole tiles: the first one those of even numbers, as the
// worker gets them, the second one the others.
template <int STAGES_, int CLUSTER_>
struct Config {
  static constexpr int CONSUMERS = 2;  // warpgroups that multiply: the first ones
  static constexpr int LOADER = 4 * CONSUMERS, SCHEDULER = LOADER + 1;  // warps of the last warpgroup
  static constexpr int THREADS = 128 * (CONSUMERS + 1);
  // A thread begins with 168 registers, by the launch bound, and only these are dealt out anew.
  static constexpr int FIRST_REGISTERS = 168, CONSUMER_REGISTERS = 232, OTHER_REGISTERS = 40;
  static_assert(FIRST_REGISTERS == 65536 / THREADS / 8 * 8);  // of 65536, a multiple of 8
  static_assert(CONSUMERS * CONSUMER_REGISTERS + OTHER_REGISTERS <= (CONSUMERS + 1) * FIRST_REGISTERS);
  static constexpr int STAGES = STAGES_, CLUSTER = CLUSTER_;
  static_assert(CLUSTER == 1 || CLUSTER == 2);                              // more was never tried
  static constexpr int COLUMNS = BN * CLUSTER;                              // of a worker's tile
  static constexpr int A_BYTES = BM * ROW_BYTES, B_BYTES = BN * ROW_BYTES;  // of a slice
  static constexpr int SHARE = HALF / CLUSTER;  // rows of a half that a block loads
  static_assert(SHARE % 8 == 0);                // so it begins where TMA's swizzle repeats
  static constexpr int SLOTS = 4;               // of a consumer, each for a box of C or D
  // Each tile uses a slot an even number of times, or, for a lower half that is not there, never.
  // So the parity of a box's load depends on its number in the tile alone (boxes.cuh).
  static_assert(TILE_BOXES % (2 * SLOTS) == 0 && SLOTS % 2 == 0);
  // Without a lower half Boxes::put(box) loads box - 2 + SLOTS. With two slots that would be `box`
  // itself, for which all have to wait before this put: they would wait for ever.
  static_assert(SLOTS >= 4);  // with eight boxes of a tile, both asserts leave only 4
  static constexpr int SHARED_BYTES = STAGES * (A_BYTES + B_BYTES) + CONSUMERS * SLOTS * BOX_BYTES;
  // A block has at most 227 KB. Barriers, mailboxes and sums of warps in kernel.cuh are less
  // than 3 KB.
  static_assert(SHARED_BYTES + 3 * 1024 <= 227 * 1024);
};

// The slices of K, of any tile.
__host__ __device__ constexpr int slices_of(int k) { return (k + BK - 1) / BK; }

struct Maps {
  CUtensorMap a;     // boxes of SHARE rows and BK columns
  CUtensorMap b;     // of BK rows and 64 columns, of one group
  CUtensorMap c, d;  // of BOX rows and BOX columns of a window (token_map)
};

struct Operands {      // of the epilogue, in global memory
  const float* alpha;  // [G]
  const float* prob;   // [rows]
};

// A worker's tile, or an end: four words, as Mailbox::send wants. In Mailbox::receive a warp arrives
// only if the bitwise or of the words is not INT_MIN, which has the sign bit alone (has_come in
// common/kernel/ptx/cluster.cuh says why). It never is: a tile has no negative word, so the sign bit
// is not set, and an end has a -1, so all bits are. With a word that breaks this the worker would
// wait for ever.
struct alignas(16) Tile {
  int group;  // -1: there is no other tile
  int row0;   // its first row, as A, C and D count
  int rows;   // 1 to BM
  int col0;   // of the product, for the worker's first block
};

// Sums of the 64 columns of a box over the rows that each warp has of a tile.
struct WarpSums {
  float of[4][BOX];
};

// Shared memory.
struct Memory {
  uint32_t a_tile_addr;  // [STAGES][BM][BK], swizzled
  uint32_t b_tile_addr;  // [STAGES][BN / 64][BK][64], swizzled
  uint32_t boxes_addr;   // [CONSUMERS][SLOTS][BOX][BOX], swizzled
  WarpSums* warp_sums;   // [CONSUMERS]
  uint32_t full_addr;    // [STAGES] barriers: the slice has landed. One arrival, and TMA's bytes.
  uint32_t empty_addr;   // [STAGES] barriers: a consumer of each block has multiplied the slice
  uint32_t turn_addr;    // [CONSUMERS] barriers: this consumer may begin its next tile (Turns)
  uint32_t landed_addr;  // [CONSUMERS][SLOTS] barriers: a box of C has landed
};

}  // namespace chapter
