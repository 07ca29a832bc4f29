// SPDX-License-Identifier: MIT
//
// The kernel's sizes, and where its roles find what they share.

#pragma once

#include <algorithm>

#include "common/kernel/tensor_map.h"
#include "common/kernel/types.cuh"

namespace chapter {

constexpr int BK = 64;           // depth of a slice
constexpr int ROW_BYTES = 128;   // of a slice, and of 64 columns of D: the most that TMA swizzles
constexpr int STORE_ROWS = 128;  // rows of D for which a consumer has room in shared memory
static_assert(ROW_BYTES == BK * 2, "one box has a slice's rows whole");
// A tile has 1 to BM rows. Its width, wgmma's N and the rows of A that are loaded, is that rounded
// up to STEP. A box of D has STEP rows, too.
constexpr int STEP = 32;
static_assert(STORE_ROWS % STEP == 0 && STEP % 8 == 0, "the swizzle repeats after 8 rows");

__host__ __device__ constexpr int round_up(int value, int step) { return (value + step - 1) / step * step; }

// Tiles of up to BM rows, STAGES slices in shared memory.
template <int BM_, int STAGES_>
struct Config {
  static constexpr int CONSUMERS = 2;  // warpgroups that multiply: the first ones
  static constexpr int LOADER = 4 * CONSUMERS, SCHEDULER = LOADER + 1;  // warps of the last warpgroup
  static constexpr int THREADS = 128 * (CONSUMERS + 1);
  static constexpr int CONSUMER_REGISTERS = 224, OTHER_REGISTERS = 56;  // of a thread, where HOLDS_ROWS
  static_assert(CONSUMERS * CONSUMER_REGISTERS + OTHER_REGISTERS <=
                    (CONSUMERS + 1) * (65536 / THREADS / 8 * 8),  // what a thread has at first
                "with more, setmaxnreg_inc would wait for ever");
  static constexpr int BM = BM_, BN = 64 * CONSUMERS, STAGES = STAGES_;
  static constexpr int A_BYTES = BM * ROW_BYTES, B_BYTES = BN * ROW_BYTES;  // of a slice
  static constexpr bool HOLDS_ROWS = BM > STORE_ROWS;  // the other rows wait in registers
  static_assert(BM % STEP == 0 && BM <= 256, "a box and wgmma's N have at most 256 rows");
  static_assert(BM <= 2 * STORE_ROWS, "held rows go where the first STORE_ROWS were");
  static constexpr int STORE_BYTES = std::min(BM, STORE_ROWS) * ROW_BYTES;  // of a consumer
  static_assert(A_BYTES % 1024 == 0 && B_BYTES % 1024 == 0 && STORE_BYTES % 1024 == 0,
                "the swizzle wants operands and rows of D to begin at multiples of 1024");
  static constexpr int SHARED_BYTES = STAGES * (A_BYTES + B_BYTES) + CONSUMERS * STORE_BYTES;
  static_assert(SHARED_BYTES + 2048 <= 227 * 1024,
                "a block may have 227 KB; barriers, mailbox and the stages' alignment take under 2 KB");
  static_assert(STAGES >= 2);  // a consumer gives a stage back after it has begun with the next one
};

template <class C>
struct Maps {
  CUtensorMap a[C::BM / STEP];  // a[i] is for width (i + 1) * STEP: boxes of so many rows
  CUtensorMap b, d;
};

// A message of the scheduling warp. One instruction writes its 16 bytes, but nothing relies on
// that: it may grow.
struct alignas(16) Tile {
  int group;  // -1: there is no other tile
  int row0;   // its first row, as A and D count
  int rows;   // 1 to BM. load_tiles and multiply_tiles round it up to the tile's width
  int col0;   // its first column, as D counts
};

// Shared memory.
struct Memory {
  uint32_t a_tile_addr;   // [STAGES][BM][BK], swizzled
  uint32_t b_tile_addr;   // [STAGES][BN][BK], swizzled
  unsigned char* d_rows;  // [CONSUMERS][STORE_BYTES]: rows of 64 columns, swizzled
  uint32_t full_addr;     // [STAGES] barriers: the slice has landed. One arrival, and TMA's bytes.
  uint32_t empty_addr;    // [STAGES] barriers: the slice is multiplied. One arrival of each consumer.
};

}  // namespace chapter
