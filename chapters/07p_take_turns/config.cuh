// SPDX-License-Identifier: MIT
//
// The kernel's sizes, and where its roles find what they share.

#pragma once

#include <algorithm>

#include "common/kernel/ptx/wgmma.cuh"
#include "common/kernel/tensor_map.h"
#include "common/kernel/types.cuh"

namespace chapter {

constexpr int BK = 64;          // depth of a slice
constexpr int ROW_BYTES = 128;  // of a slice: the most that TMA swizzles
constexpr int PAIR = 64;        // neighbouring columns of B: 32 gates, then their 32 ups
static_assert(ROW_BYTES == BK * 2, "one box has a slice's rows whole");
// A tile has 1 to BM rows. Its width, wgmma's N and the rows of A that are loaded, is that rounded
// up to STEP. A box of D has STEP rows, too.
constexpr int STEP = 32;

__host__ __device__ constexpr int round_up(int value, int step) { return (value + step - 1) / step * step; }

// A worker is a cluster of BLOCKS blocks, or a single block. Its tiles have up to BM rows and
// COLUMNS columns. Each block has STAGES slices in its shared memory, of BM rows of A and BN
// columns of B. The blocks of a cluster are side by side in N. The block of rank r multiplies and
// activates BN columns, from the tile's column r * BN on. They load each slice of A once, for all.
// Each of a block's two consumers multiplies whole tiles: the first one those of even numbers, as the
// worker gets them, the second one the others.
template <int BM_, int STAGES_, int CLUSTER_ = 1>
struct Config {
  static constexpr int CONSUMERS = 2;  // warpgroups that multiply: the first ones
  static constexpr int LOADER = 4 * CONSUMERS, SCHEDULER = LOADER + 1;  // warps of the last warpgroup
  static constexpr int THREADS = 128 * (CONSUMERS + 1);
  // A thread begins with 168 registers, by the launch bound, and only these are dealt out anew.
  static constexpr int FIRST_REGISTERS = 168, CONSUMER_REGISTERS = 232, OTHER_REGISTERS = 40;
  static_assert(FIRST_REGISTERS == 65536 / THREADS / 8 * 8);  // of 65536, a multiple of 8
  static_assert(CONSUMERS * CONSUMER_REGISTERS + OTHER_REGISTERS <= (CONSUMERS + 1) * FIRST_REGISTERS);
  static constexpr int BM = BM_, STAGES = STAGES_;
  static constexpr int PAIRS = 2, BN = PAIRS * PAIR;  // columns of a block's tile: all of them one consumer's
  static constexpr int CLUSTER = CLUSTER_, BLOCKS = CLUSTER;                // of a worker
  static constexpr int COLUMNS = BN * CLUSTER;                              // of a worker's tile
  static constexpr int A_BYTES = BM * ROW_BYTES, B_BYTES = BN * ROW_BYTES;  // of a slice
  static_assert(CLUSTER == 1 || CLUSTER == 2);                              // more was never tried
  static_assert(STEP / CLUSTER % 8 == 0);  // a block's rows of A begin where TMA's swizzle repeats
  static_assert(BM % STEP == 0 && BM <= 256, "a box and wgmma's N have at most 256 rows");
  static constexpr int D_BYTES = BN / 2 * sizeof(bf16);  // of a row of D
  static constexpr int BOX_BYTES = STEP * D_BYTES;
  static constexpr int BOXES = std::min(BM / STEP, 3);  // of D, for which a consumer has room
  static_assert(A_BYTES % 1024 == 0 && B_BYTES % 1024 == 0 && BOX_BYTES % 1024 == 0,
                "the swizzle wants operands and rows of D to begin at multiples of 1024");
  static constexpr int SHARED_BYTES = STAGES * (A_BYTES + B_BYTES) + CONSUMERS * BOXES * BOX_BYTES;
  // A block has at most 227 KB. Factors, barriers and mailboxes have 3 KB of them, as kernel.cuh checks.
  // Tiles of 192 rows take all of it: another stage or box has no room.
  static_assert(SHARED_BYTES + 3 * 1024 <= 227 * 1024);
  static_assert(STAGES >= 2);  // a consumer gives a stage back after it has begun with the next one
};

// The slices of K, of any tile.
__host__ __device__ constexpr int slices_of(int k) { return (k + BK - 1) / BK; }

template <class C>
struct Maps {
  // a[i] is for tiles of width (i + 1) * STEP. Its box is what one block loads of a slice of A.
  CUtensorMap a[C::BM / STEP];
  CUtensorMap b, d;
};

// A block's tile. A receiver arrives only if the bitwise or of these four words is not INT_MIN
// (gg::ptx::has_come). It never is: group is at least -1, and the others are not negative. If it
// were, the worker would wait for ever. Mailbox::send relies on the order of the words.
struct alignas(16) Tile {
  int group;  // -1: there is no other tile
  int row0;   // its first row, as A and D count
  int rows;   // 1 to BM: load_tiles picks a map by it
  int col0;   // its first column, of B; N or more where a block has no columns of D
};
static_assert(Tile{0, 1, 2, 3}.row0 == 1 && Tile{0, 1, 2, 3}.rows == 2 && Tile{0, 1, 2, 3}.col0 == 3);

template <int ROWS, int COLUMNS>
struct Factors;

// Shared memory.
template <class C>
struct Memory {
  uint32_t a_tile_addr;            // [STAGES][BM][BK], swizzled
  uint32_t b_tile_addr;            // [STAGES][BN][BK], swizzled
  unsigned char* d_rows;           // [CONSUMERS][BOXES][STEP][D_BYTES], swizzled
  Factors<C::BM, C::BN>* factors;  // [CONSUMERS]
  uint32_t full_addr;              // [STAGES] barriers: the slice has landed. One arrival, and TMA's bytes.
  // [STAGES] barriers: the stage may be loaded again. One arrival of each block: of the consumer
  // that has multiplied the slice, or of warp 0 for a slice of a wrong guess.
  uint32_t empty_addr;
  uint32_t turn_addr;  // [CONSUMERS] barriers: this consumer may multiply. The other one's four warps arrive.
};

}  // namespace chapter
