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
constexpr int PAIR = 64;        // columns of B that a consumer has: 32 gates, then their 32 ups
constexpr int D_BYTES = 64;     // of a row of D: the 32 columns, of bf16, that a consumer makes of them
static_assert(ROW_BYTES == BK * 2, "one box has a slice's rows whole");
static_assert(D_BYTES == PAIR / 2 * sizeof(bf16));
// The 64 of BN, SUMS_BYTES, b_desc (multiply.cuh) and BLOCK_FLOATS (split_k.cuh) is a PAIR's columns too.
static_assert(PAIR == 64);
// A tile has 1 to BM rows. Its width, wgmma's N and the rows of A that are loaded, is that rounded
// up to STEP. A box of D has STEP rows, too.
constexpr int STEP = 32;
constexpr int BOX_BYTES = STEP * D_BYTES;
constexpr int SWIZZLE_BYTES = 8 * D_BYTES;  // after so many, 8 rows, D's swizzle repeats

// The byte of a box at which a chunk begins, 16 bytes of a row. TMA's swizzle of 64 bytes moves
// chunk c of row r to c xor r/2 % 4. Outbox, Transform and store_tiles access boxes by this alone.
// D's tensor map (launch.cuh) says the same to TMA, and no assertion compares the two.
// TMA takes r/2 % 4 from the address, `swizzled` from the row of the box. So each box must begin at
// a multiple of SWIZZLE_BYTES. That is asserted of its offset in shared memory below, and of the
// beginning of shared memory in kernel.cuh.
__device__ inline int swizzled(int row, int chunk) { return row * D_BYTES + (chunk ^ row / 2 % 4) * 16; }
static_assert(D_BYTES == 64);  // CU_TENSOR_MAP_SWIZZLE_64B in launch.cuh
static_assert(BOX_BYTES % SWIZZLE_BYTES == 0);

constexpr int MOST_CONSUMERS = 2;  // of a block

// Numbers of named barriers, those of consumer 0: consumer c has the number + c. 0: __syncthreads.
enum NamedBarrier {
  OF_CONSUMER = 1,                        // its four warps: multiply.cuh and split_k.cuh
  FILLED = OF_CONSUMER + MOST_CONSUMERS,  // it and its storing warp: HandOver in store.cuh
  EMPTIED = FILLED + MOST_CONSUMERS,      // the same
  BARRIERS_END = EMPTIED + MOST_CONSUMERS
};
static_assert(BARRIERS_END <= 16);

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
  static constexpr int STORING = SCHEDULER + 1;  // consumer 0's storing warp, the next one is consumer 1's
  static constexpr int THREADS = 128 * (CONSUMERS + 1);
  static_assert(CONSUMERS <= MOST_CONSUMERS && STORING + CONSUMERS <= THREADS / 32);
  // Registers of a thread. A TALL kernel starts with all that ptxas may give (kernel.cuh), and
  // setmaxnreg then moves some from the last warpgroup to the consumers: no more than there are, or
  // setmaxnreg.inc would wait for ever. A spill fails the build: ptxas 13.0 spills with 176 for
  // consumers, not with 184, and with 64 for the others, not with 72. Other splits were not timed.
  static constexpr int FIRST_REGISTERS = std::min(255, 65536 / THREADS / 8 * 8);
  static constexpr int CONSUMER_REGISTERS = 208, OTHER_REGISTERS = 88;
  static_assert(CONSUMERS * CONSUMER_REGISTERS + OTHER_REGISTERS <= (CONSUMERS + 1) * FIRST_REGISTERS);
  static constexpr int BM = BM_, BN = 64 * CONSUMERS, STAGES = STAGES_;
  static constexpr int CLUSTER = CLUSTER_, SPLIT = SPLIT_, BLOCKS = CLUSTER * SPLIT;  // of a worker
  static constexpr int COLUMNS = BN * CLUSTER;                                        // of a worker's tile
  static constexpr int A_BYTES = BM * ROW_BYTES, B_BYTES = BN * ROW_BYTES;            // of a slice
  static_assert(CLUSTER == 1 || CLUSTER == 2);                                        // more was never tried
  static_assert(CLUSTER == 1 || SPLIT == 1, "AddSums passes ranks along K as ranks in the cluster");
  static_assert(SPLIT == 1 || (CONSUMERS == 1 && BM <= 128), "splits of larger tiles are untested");
  static_assert(STEP / CLUSTER % 8 == 0);  // a block's rows of A begin where TMA's swizzle repeats
  static_assert(BN == CONSUMERS * PAIR);   // consumer c has PAIR c of a block's tile, and of a box of B
  // A consumer's thread may have more than 64 sums: kernel.cuh moves registers, and choose.cuh counts
  // the longer end of a launch.
  static constexpr bool TALL = BM > 128;
  static_assert(!TALL || (OTHER_REGISTERS <= FIRST_REGISTERS && FIRST_REGISTERS <= CONSUMER_REGISTERS));
  static_assert(BM % STEP == 0 && BM <= 256, "a box and wgmma's N have at most 256 rows");
  static constexpr int STORE_BYTES = BM * D_BYTES;  // of a consumer
  static_assert(A_BYTES % 1024 == 0 && B_BYTES % 1024 == 0 && STORE_BYTES % 1024 == 0,
                "the swizzle wants operands at multiples of 1024, and rows of D at multiples of 512");
  static constexpr int SUMS_BYTES = (SPLIT - 1) * BM * 64 * 4;  // of a consumer: the sums of other blocks
  static constexpr int SHARED_BYTES = STAGES * (A_BYTES + B_BYTES) + CONSUMERS * (STORE_BYTES + SUMS_BYTES);
  // Offsets of boxes, for `swizzled`: after all slices, and after boxes of the consumer before.
  static_assert(STAGES * (A_BYTES + B_BYTES) % SWIZZLE_BYTES == 0 && STORE_BYTES % SWIZZLE_BYTES == 0);
  static_assert(SHARED_BYTES + 2048 <= 227 * 1024,
                "a block may have 227 KB; barriers, mailbox, output_tiles and alignment take under 2 KB");
  static_assert(STAGES >= 2);  // a consumer gives a stage back after it has begun with the next one
};

// Whether a block has a tile's whole sums: of those that split K, the one with k_rank 0. Only there
// do consumers call put and put_none (multiply.cuh), and only there do storing warps run
// (kernel.cuh). One side without the other would wait for ever.
__device__ inline bool hands_over(int k_rank) { return k_rank == 0; }

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

// A tile of a consumer's 32 columns of X in shared memory: what its storing warp has to know.
struct alignas(16) OutputTile {
  int group;   // -1: there is no other tile
  int row0;    // its first row, as D counts
  int rows;    // 1 to BM
  int d_col0;  // its first column of D: half of the consumer's first column of B
};

// Shared memory.
struct Memory {
  uint32_t a_tile_addr;      // [STAGES][BM][BK], swizzled
  uint32_t b_tile_addr;      // [STAGES][BN][BK], swizzled
  unsigned char* boxes;      // [CONSUMERS][STORE_BYTES]: X, and then D, of 32 columns, swizzled
  OutputTile* output_tiles;  // [CONSUMERS]: whose X or D lies there
  unsigned char* sums;       // [CONSUMERS][SUMS_BYTES]: [SPLIT - 1][BM * 64] floats of other blocks
  uint32_t full_addr;        // [STAGES] barriers: the slice has landed. One arrival, and TMA's bytes.
  uint32_t empty_addr;       // [STAGES] barriers: all consumers that read this block's loads are done
  uint32_t landed_addr;      // [CONSUMERS][2] barriers: `landed` and `read` of AddSums
};

}  // namespace chapter
