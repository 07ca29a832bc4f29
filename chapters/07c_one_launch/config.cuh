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
  static constexpr int CONSUMERS = 2;  // warpgroups that multiply: the first ones
  static constexpr int LOADER = 4 * CONSUMERS, SCHEDULER = LOADER + 1;  // warps of the last warpgroup
  static constexpr int THREADS = 128 * (CONSUMERS + 1);
  static constexpr int CONSUMER_REGISTERS = 224, OTHER_REGISTERS = 56;  // of a thread, after setmaxnreg
  // setmaxnreg hands out no more than the block starts with: a multiple of 8 for each thread.
  static_assert(CONSUMERS * CONSUMER_REGISTERS + OTHER_REGISTERS <=
                (CONSUMERS + 1) * (65536 / THREADS / 8 * 8));
  static_assert(CONSUMERS == 2 && (BM == 64 || BM == 128));
  // Consumers have 64 rows each, or else half of the columns each.
  static constexpr bool BY_ROWS = BM == 128;
  static constexpr int SUM_COLUMNS = BY_ROWS ? BN : BN / 2;                 // of a consumer
  static_assert(SUM_COLUMNS % 8 == 0 && SUM_COLUMNS <= 256);                // what one wgmma computes
  static constexpr int A_BYTES = BM * ROW_BYTES, B_BYTES = BN * ROW_BYTES;  // of a slice
  static_assert(A_BYTES % 1024 == 0 && B_BYTES % 1024 == 0);  // stages start where the swizzle does
  // Room for stages: as many as fit. A block may have 227 KB, but seven stages of 128x128 took
  // longer than six.
  static constexpr int SHARED_BYTES = 200 * 1024;
  static_assert(SHARED_BYTES <= 226 * 1024);  // of 227 KB: barriers and mailbox have the last
  static constexpr int STAGES = SHARED_BYTES / (A_BYTES + B_BYTES);
  static_assert(STAGES >= 2);  // a consumer gives a stage back after it has begun with the next one
};

struct Maps {
  CUtensorMap a, b;
};

// A message of the scheduling warp. One instruction writes its 16 bytes, but nothing relies on
// that: it may grow.
struct alignas(16) Tile {
  int group;       // -1: there is no other tile
  int row0, rows;  // its first row, as A and D count, and how many it has
  int col0;
};

// Shared memory.
struct Memory {
  uint32_t a_tile_addr;  // [STAGES][BM][BK], swizzled
  uint32_t b_tile_addr;  // [STAGES][BN][BK], swizzled
  uint32_t full_addr;    // [STAGES] barriers: the slice has landed. One arrival, and TMA's bytes.
  uint32_t empty_addr;   // [STAGES] barriers: the slice is multiplied. One arrival of each consumer.
};

}  // namespace chapter
