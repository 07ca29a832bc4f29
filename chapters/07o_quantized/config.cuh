// SPDX-License-Identifier: MIT
//
// The kernel's sizes, and where its roles find what they share.

#pragma once

#include <algorithm>

#include "common/kernel/ptx/wgmma.cuh"
#include "common/kernel/tensor_map.h"
#include "common/kernel/types.cuh"

namespace chapter {

constexpr int BK = 64;            // depth of a slice
constexpr int ROW_BYTES = 128;    // of a slice: the most that TMA swizzles
constexpr int WARP_COLUMNS = 16;  // that a consumer's warp multiplies: M of wgmma is 64, and it has four
constexpr int D_BYTES = 64;       // of a row of D, of a consumer's 64 columns; the same of D_col
constexpr int STEP = 32;          // rows of a tile go in multiples of it; store.cuh is written for 32
constexpr int STORE_ROWS = 128;   // rows of D for which a consumer has room in shared memory
static_assert(D_BYTES == 4 * WARP_COLUMNS);
// The maps of D and D_col have it. Another one needs another formula in BoxStore::swizzled.
constexpr auto D_SWIZZLE = CU_TENSOR_MAP_SWIZZLE_64B;

__host__ __device__ constexpr int round_up(int value, int step) { return (value + step - 1) / step * step; }

// Tiles of up to BM rows, STAGES slices in shared memory. A worker is a cluster of blocks. CLUSTER
// of them are side by side in N and load each slice of A once, for all. Or SPLIT of them have one
// tile, and each some slices of K.
template <int CONSUMERS_, int BM_, int STAGES_, int CLUSTER_ = 1, int SPLIT_ = 1>
struct Config {
  static constexpr int CONSUMERS = CONSUMERS_;  // warpgroups that multiply: the first ones
  static constexpr int LOADER = 4 * CONSUMERS, SCHEDULER = LOADER + 1;  // warps of the last warpgroup
  static constexpr int THREADS = 128 * (CONSUMERS + 1);
  static constexpr int CONSUMER_REGISTERS = 224, OTHER_REGISTERS = 56;  // of a thread, once dealt out anew
  // For 256 rows ptxas 13.0 needs them: with 216 it spills.
  static_assert(CONSUMERS * CONSUMER_REGISTERS + OTHER_REGISTERS <= 65536 / 128);
  static constexpr int BM = BM_, BN = 64 * CONSUMERS, STAGES = STAGES_;
  static constexpr int CLUSTER = CLUSTER_, SPLIT = SPLIT_, BLOCKS = CLUSTER * SPLIT;  // of a worker
  static constexpr int COLUMNS = BN * CLUSTER;                                        // of a worker's tile
  // Splits: ranks along K are ranks in the cluster. More consumers are untested.
  static_assert(SPLIT == 1 || (CLUSTER == 1 && CONSUMERS == 1));
  static constexpr int A_BYTES = BM * ROW_BYTES, B_BYTES = BN * ROW_BYTES;  // of a slice
  static_assert(STEP / CLUSTER % 8 == 0);  // a block's rows of A begin where TMA's swizzle repeats
  // The other rows wait in registers (BoxStore). kernel.cuh gives the consumers of such tiles more
  // registers, and choose.cuh counts the longer end of a launch.
  static constexpr bool HOLDS_ROWS = BM > STORE_ROWS;
  static_assert(BM % STEP == 0 && BM <= 2 * STORE_ROWS);
  // A consumer's shared memory. D_BOX_BYTES: all boxes of one output, up to four. STORE_BYTES: D's
  // and D_col's. CODE_BYTES: a scale code for each row and warp, read as words.
  static constexpr int D_BOX_BYTES = std::min(BM, STORE_ROWS) * D_BYTES;
  static constexpr int STORE_BYTES = 2 * D_BOX_BYTES;
  static constexpr int CODE_BYTES = BM * 4;
  static_assert(STORE_BYTES % 1024 == 0);  // BoxStore's shared memory begins at such a multiple
  static constexpr int SUMS_BYTES = (SPLIT - 1) * BM * 64 * 4;  // of a consumer: the sums of other blocks
  static constexpr int SHARED_BYTES =
      STAGES * (A_BYTES + B_BYTES) + CONSUMERS * (STORE_BYTES + SUMS_BYTES + CODE_BYTES);
  static_assert(SHARED_BYTES % 4 == 0 && CODE_BYTES % 4 == 0);  // codes lie last: at a multiple of a word
  // A block has at most 227 KB. The barriers and the mailbox in kernel.cuh are less than 1 KB.
  static_assert(SHARED_BYTES + 1024 <= 227 * 1024);
};

template <class C>
struct Maps {
  // a[i] is for tiles of (i + 1) * STEP rows. Its box is what one block loads of a slice of A.
  CUtensorMap a[C::BM / STEP];
  CUtensorMap b, d, d_col;
};

// A consumer stores two outputs, both [rows,N] in memory.
enum Output { D, D_COL };

struct alignas(16) Tile {
  int group;  // -1: there is no other tile
  int row0;   // its first row, as A and D count
  int rows;   // 32 to BM, a multiple of STEP since groups are: a map and a width are picked by it
  int col0;   // in the mailbox, of the worker's first block
};

// Shared memory.
struct Memory {
  uint32_t a_tile_addr;   // [STAGES][BM][BK], swizzled
  uint32_t b_tile_addr;   // [STAGES][BN][BK], swizzled
  unsigned char* d_rows;  // [CONSUMERS][STORE_BYTES]: rows of 64 columns of D, and of D_col, swizzled
  unsigned char* sums;    // [CONSUMERS][SUMS_BYTES]: [SPLIT - 1][BM * 64] floats
  unsigned char* codes;   // [CONSUMERS][BM][4]: scale codes of D's rows, one for each warp's 16 columns
  uint32_t full_addr;     // [STAGES] barriers: the slice has landed. One arrival, and TMA's bytes.
  uint32_t empty_addr;   // [STAGES] barriers: the slice is multiplied. One arrival of each block's consumers.
  uint32_t landed_addr;  // [CONSUMERS][2] barriers of AddSums
};

}  // namespace chapter
