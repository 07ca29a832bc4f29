// SPDX-License-Identifier: MIT
//
// The kernel's sizes, and where its roles find what they share.

#pragma once

#include "common/kernel/tensor_map.h"
#include "common/kernel/types.cuh"

namespace chapter {

constexpr int BK = 64;          // depth of a slice
constexpr int ROW_BYTES = 128;  // of a slice: the most that TMA swizzles

// Tiles of BM rows and BN columns.
template <int BM_, int BN_>
struct Config {
  static constexpr int BM = BM_, BN = BN_;
  static constexpr int CONSUMERS = 2;           // warpgroups that multiply: the first ones
  static constexpr int LOADER = 4 * CONSUMERS;  // a warp of the last warpgroup
  static constexpr int THREADS = 128 * (CONSUMERS + 1);
  static constexpr int CONSUMER_REGISTERS = 224, OTHER_REGISTERS = 56;  // of a thread, once dealt out anew
  static_assert(CONSUMERS * CONSUMER_REGISTERS + OTHER_REGISTERS <= 65536 / 128);
  static_assert(CONSUMERS == 2 && (BM == 64 || BM == 128));
  static constexpr bool BY_ROWS = BM == 128;  // consumers have 64 rows each, else half of the columns each
  static constexpr int SUM_COLUMNS = BY_ROWS ? BN : BN / 2;                 // of a consumer
  static constexpr int A_BYTES = BM * ROW_BYTES, B_BYTES = BN * ROW_BYTES;  // of a slice
  static constexpr int SHARED_BYTES = 200 * 1024;  // stages of any of these tiles fill 192 KB of it
  static constexpr int STAGES = SHARED_BYTES / (A_BYTES + B_BYTES);  // slices in shared memory
};

struct alignas(128) Maps {  // a kernel may change a map only where it lies at a multiple of 128
  CUtensorMap a, b;
};
static_assert(sizeof(CUtensorMap) == 128, "b, too, lies at a multiple of 128");

struct Tile {
  int group;
  int row0, rows;  // its first row, as the map of A counts, and how many it has
  int col0, cols;  // the same of columns, as the map of B counts
  int k;
  int ldd;  // elements from one row of D to the next
  void* d;  // D's element at the tile's corner, a T of the kernel
  // Loading warp and consumers count a tile's slices by this, so that both count alike.
  __device__ int slices() const { return (k + BK - 1) / BK; }
};

// Shared memory.
struct Memory {
  uint32_t a_tile_addr;  // [STAGES][BM][BK], swizzled
  uint32_t b_tile_addr;  // [STAGES][BN][BK], swizzled
  uint32_t full_addr;    // [STAGES] barriers: the slice has landed. One arrival, and TMA's bytes.
  uint32_t empty_addr;   // [STAGES] barriers: the slice is multiplied. One arrival of each consumer's warps.
  Tile* headers;         // [STAGES]: the tile whose first slice is in this stage
};

}  // namespace chapter
