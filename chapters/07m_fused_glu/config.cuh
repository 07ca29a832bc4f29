// SPDX-License-Identifier: MIT
//
// The kernel's sizes, and where its roles find what they share.

#pragma once

#include <algorithm>

#include "common/kernel/ptx/wgmma.cuh"
#include "common/kernel/tensor_map.h"
#include "common/kernel/types.cuh"

namespace chapter {

constexpr int BK = 64;           // depth of a slice
constexpr int ROW_BYTES = 128;   // of a slice: the most that TMA swizzles
constexpr int PAIR = 64;         // columns of B that a consumer has: 32 gates, then their 32 ups
constexpr int D_BYTES = 64;      // of a row of D: the 32 columns, of bf16, that a consumer makes of them
constexpr int STORE_ROWS = 128;  // rows of D for which a consumer has room in shared memory
static_assert(ROW_BYTES == BK * 2, "one box has a slice's rows whole");
static_assert(D_BYTES == PAIR / 2 * sizeof(bf16));
// The 64 of BN, SUMS_BYTES, b_desc (multiply.cuh), BLOCK_FLOATS (split_k.cuh) and n_multiple
// (main.cu) is a PAIR's columns too.
static_assert(PAIR == 64);
// A tile has 1 to BM rows. Its width, wgmma's N and the rows of A that are loaded, is that rounded
// up to STEP. A box of D has STEP rows, too.
constexpr int STEP = 32;
static_assert(STORE_ROWS % STEP == 0 && STEP % 8 == 0, "the swizzle repeats after 8 rows");

__host__ __device__ constexpr int round_up(int value, int step) { return (value + step - 1) / step * step; }

// A worker is a cluster of BLOCKS blocks, or a single block. Its tiles have up to BM rows and
// COLUMNS columns. Each block has STAGES slices in its shared memory, of BM rows of A and BN
// columns of B. The blocks of a cluster divide either the columns or K:
// - CLUSTER blocks are side by side in N. The block of rank r multiplies and activates BN columns,
//   from the tile's column r * BN on. They load each slice of A once, for all.
// - SPLIT blocks each multiply some slices of K, for all rows and columns of the tile, and load
//   for themselves alone. Rank 0 adds up the sums and stores.
template <int CONSUMERS_, int BM_, int STAGES_, int CLUSTER_ = 1, int SPLIT_ = 1>
struct Config {
  static constexpr int CONSUMERS = CONSUMERS_;  // warpgroups that multiply: the first ones
  static constexpr int LOADER = 4 * CONSUMERS, SCHEDULER = LOADER + 1;  // warps of the last warpgroup
  static constexpr int THREADS = 128 * (CONSUMERS + 1);
  static constexpr int CONSUMER_REGISTERS = 224, OTHER_REGISTERS = 56;  // of a thread, where HOLDS_ROWS
  static_assert(CONSUMERS * CONSUMER_REGISTERS + OTHER_REGISTERS <=
                    (CONSUMERS + 1) * (65536 / THREADS / 8 * 8),  // what a thread has at first
                "with more, setmaxnreg_inc would wait for ever");
  static constexpr int BM = BM_, BN = 64 * CONSUMERS, STAGES = STAGES_;
  static constexpr int CLUSTER = CLUSTER_, SPLIT = SPLIT_, BLOCKS = CLUSTER * SPLIT;  // of a worker
  static constexpr int COLUMNS = BN * CLUSTER;                                        // of a worker's tile
  static constexpr int A_BYTES = BM * ROW_BYTES, B_BYTES = BN * ROW_BYTES;            // of a slice
  static_assert(CLUSTER == 1 || CLUSTER == 2);                                        // more was never tried
  static_assert(CLUSTER == 1 || SPLIT == 1, "AddSums passes ranks along K as ranks in the cluster");
  static_assert(SPLIT == 1 || (CONSUMERS == 1 && BM <= STORE_ROWS), "splits of larger tiles are untested");
  static_assert(STEP / CLUSTER % 8 == 0);  // a block's rows of A begin where TMA's swizzle repeats
  static_assert(BN == CONSUMERS * PAIR);   // consumer c has PAIR c of a block's tile, and of a box of B
  static constexpr bool HOLDS_ROWS = BM > STORE_ROWS;  // the other rows wait in registers
  // HOLDS_ROWS also decides setmaxnreg (kernel.cuh) and `per_launch` (choose.cuh), meant for
  // BM > 128. So with another STORE_ROWS let these two test BM > 128 instead.
  static_assert(STORE_ROWS == 128);
  static_assert(BM % STEP == 0 && BM <= 256, "a box and wgmma's N have at most 256 rows");
  static_assert(BM <= 2 * STORE_ROWS, "held rows go where the first STORE_ROWS were");
  static constexpr int STORE_BYTES = std::min(BM, STORE_ROWS) * D_BYTES;  // of a consumer
  static_assert(A_BYTES % 1024 == 0 && B_BYTES % 1024 == 0 && STORE_BYTES % 1024 == 0,
                "the swizzle wants operands at multiples of 1024, and rows of D at multiples of 512");
  static constexpr int SUMS_BYTES = (SPLIT - 1) * BM * 64 * 4;  // of a consumer: the sums of other blocks
  static constexpr int SHARED_BYTES = STAGES * (A_BYTES + B_BYTES) + CONSUMERS * (STORE_BYTES + SUMS_BYTES);
  static_assert(SHARED_BYTES + 2048 <= 227 * 1024,
                "a block may have 227 KB; barriers, mailbox and the stages' alignment take under 2 KB");
  static_assert(STAGES >= 2);  // a consumer gives a stage back after it has begun with the next one
};

template <class C>
struct Maps {
  // a[i] is for tiles of width (i + 1) * STEP. Its box is what one block loads of a slice of A.
  CUtensorMap a[C::BM / STEP];
  CUtensorMap b, d;
};

// A worker's tile. TileReceiver::next makes col0 the first of the block's own columns. A receiver
// arrives only if the bitwise or of these four words is not INT_MIN (gg::ptx::has_come). It never is:
// group is at least -1, and the others are not negative. If it were, the worker would wait for ever.
// Mailbox::send relies on the order of the words.
struct alignas(16) Tile {
  int group;  // -1: there is no other tile
  int row0;   // its first row, as A and D count
  int rows;   // 1 to BM: load_tiles picks a map by it
  int col0;   // its first column, of B; N or more where a block has no columns of D
};
static_assert(Tile{0, 1, 2, 3}.row0 == 1 && Tile{0, 1, 2, 3}.rows == 2 && Tile{0, 1, 2, 3}.col0 == 3);

// Shared memory.
struct Memory {
  uint32_t a_tile_addr;   // [STAGES][BM][BK], swizzled
  uint32_t b_tile_addr;   // [STAGES][BN][BK], swizzled
  unsigned char* d_rows;  // [CONSUMERS][STORE_BYTES]: rows of 32 columns, swizzled
  unsigned char* sums;    // [CONSUMERS][SUMS_BYTES]: [SPLIT - 1][BM * 64] floats of other blocks
  uint32_t full_addr;     // [STAGES] barriers: the slice has landed. One arrival, and TMA's bytes.
  uint32_t empty_addr;    // [STAGES] barriers: all consumers that read this block's loads are done
  uint32_t landed_addr;   // [CONSUMERS][2] barriers: `landed` and `read` of AddSums
};

}  // namespace chapter
