// SPDX-License-Identifier: MIT
//
// The kernel's sizes, and where its roles find what they share.

#pragma once

#include "common/kernel/tensor_map.h"
#include "common/kernel/types.cuh"

namespace chapter {

constexpr int BK = 64;          // depth of a slice
constexpr int ROW_BYTES = 128;  // of a slice: the most that TMA swizzles

static_assert(BK * 2 == ROW_BYTES);  // elements have 16 bits

// Tiles of BM rows and BN columns.
template <int BM_, int BN_>
struct Config {
  static constexpr int BM = BM_, BN = BN_;
  static constexpr int CONSUMERS = 2;           // warpgroups that multiply: the first ones
  static constexpr int LOADER = 4 * CONSUMERS;  // a warp of the last warpgroup
  static constexpr int THREADS = 128 * (CONSUMERS + 1);
  // Registers of a thread: at the start, by __launch_bounds__(THREADS, 1), and after setmaxnreg.
  // Consumers can take what the last warpgroup gives back; one that asks for more waits for ever.
  static constexpr int START_REGISTERS = 65536 / THREADS / 8 * 8;
  static constexpr int CONSUMER_REGISTERS = 224, OTHER_REGISTERS = 56;
  static_assert(CONSUMERS * CONSUMER_REGISTERS + OTHER_REGISTERS <= (CONSUMERS + 1) * START_REGISTERS);
  static_assert(CONSUMERS == 2 && (BM == 64 || BM == 128));
  // Consumers have 64 rows each, or else half of the columns each.
  static constexpr bool BY_ROWS = BM == 128;
  static constexpr int SUM_COLUMNS = BY_ROWS ? BN : BN / 2;                 // of a consumer
  static_assert(SUM_COLUMNS % 8 == 0 && SUM_COLUMNS <= 256);                // what one wgmma computes
  static constexpr int A_BYTES = BM * ROW_BYTES, B_BYTES = BN * ROW_BYTES;  // of a slice
  static_assert(A_BYTES % 1024 == 0 && B_BYTES % 1024 == 0);  // stages start where the swizzle does
  // Room for stages: as many as fit. A block may have 227 KB, but seven stages of 128x128 took
  // longer than six. kernel.cuh adds barriers and headers, and asserts the limit.
  static constexpr int SHARED_BYTES = 200 * 1024;
  static constexpr int STAGES = SHARED_BYTES / (A_BYTES + B_BYTES);
  static_assert(STAGES >= 2);  // a consumer gives a stage back after it has begun with the next one
};

struct Maps {
  CUtensorMap a, b;
};

struct Tile {
  int group;
  int row0, rows;  // its first row, as A and D count, and how many it has
  int col0;
};

// Shared memory. The two barriers of a stage guard its slice and its header: they are written between
// `empty` and `full`, by TMA and the loading warp, and read between `full` and `empty`, by consumers.
struct Memory {
  uint32_t a_tile_addr;  // [STAGES][BM][BK], swizzled
  uint32_t b_tile_addr;  // [STAGES][BN][BK], swizzled
  uint32_t full_addr;    // [STAGES] barriers: the slice has landed. One arrival, and TMA's bytes.
  uint32_t empty_addr;   // [STAGES] barriers: the slice is multiplied. One arrival of each consumer warp.
  Tile* headers;         // [STAGES]: the tile whose first slice is in this stage
};

}  // namespace chapter
