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
constexpr int STEP = 32;         // rows of a tile go in multiples of it; store.cuh is written for 32
constexpr int STORE_ROWS = 128;  // rows of D for which a consumer has room in shared memory

__host__ __device__ constexpr int round_up(int value, int step) { return (value + step - 1) / step * step; }

// Tiles of up to BM rows, STAGES slices in shared memory.
template <int BM_, int STAGES_>
struct Config {
  static constexpr int CONSUMERS = 2;  // warpgroups that multiply: the first ones
  static constexpr int LOADER = 4 * CONSUMERS, SCHEDULER = LOADER + 1;  // warps of the last warpgroup
  static constexpr int THREADS = 128 * (CONSUMERS + 1);
  static constexpr int CONSUMER_REGISTERS = 224, OTHER_REGISTERS = 56;  // where HOLDS_ROWS
  static_assert(CONSUMERS * CONSUMER_REGISTERS + OTHER_REGISTERS <= 65536 / 128);
  static constexpr int BM = BM_, BN = 64 * CONSUMERS, STAGES = STAGES_;
  static constexpr int A_BYTES = BM * ROW_BYTES, B_BYTES = BN * ROW_BYTES;  // of a slice
  static constexpr bool HOLDS_ROWS = BM > STORE_ROWS;  // the other rows wait in registers
  static_assert(BM % STEP == 0);
  static_assert(BM <= 2 * STORE_ROWS);  // held rows go where the first STORE_ROWS were
  static constexpr int STORE_BYTES = std::min(BM, STORE_ROWS) * ROW_BYTES;  // of a consumer
  // Operands and rows of D begin at multiples of 1024, as the swizzle wants.
  static_assert(A_BYTES % 1024 == 0 && B_BYTES % 1024 == 0 && STORE_BYTES % 1024 == 0);
  static constexpr int SHARED_BYTES = STAGES * (A_BYTES + B_BYTES) + CONSUMERS * STORE_BYTES;
  static_assert(SHARED_BYTES <= 226 * 1024);  // of 227 KB: barriers and the mailbox have the last
};

template <class C>
struct Maps {
  CUtensorMap a[C::BM / STEP];  // a[i] is for tiles of (i + 1) * STEP rows, which are one box of a slice of A
  CUtensorMap b, d;
};

struct alignas(16) Tile {
  int group;  // -1: there is no other tile
  int row0;   // its first row, as A and D count
  int rows;   // 1 to BM: load_tiles picks a map by it
  int col0;
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
