// SPDX-License-Identifier: MIT
//
// The kernel's sizes, and where its roles find what they share.

#pragma once

#include "common/kernel/tensor_map.h"
#include "common/kernel/types.cuh"

namespace chapter {

constexpr int BK = 64;          // depth of a slice
constexpr int ROW_BYTES = 128;  // of a slice: the most that TMA swizzles
static_assert(ROW_BYTES == BK * 2, "one box has a slice's rows whole");
// A tile has 1 to BM rows. Its width is that number rounded up to STEP: so many rows of A are
// loaded and multiplied, as wgmma's N. load_tiles gets it by round_up, consumers by with_width_for.
constexpr int STEP = 32;
static_assert(STEP % 32 == 0, "as N gg::ptx::wgmma has only 8, 16 and the multiples of 32 up to 256");

__host__ __device__ constexpr int round_up(int value, int step) { return (value + step - 1) / step * step; }

// Tiles of up to BM rows, STAGES slices in shared memory.
template <int BM_, int STAGES_>
struct Config {
  static constexpr int CONSUMERS = 2;  // warpgroups that multiply: the first ones
  static constexpr int LOADER = 4 * CONSUMERS, SCHEDULER = LOADER + 1;  // warps of the last warpgroup
  static constexpr int THREADS = 128 * (CONSUMERS + 1);
  static constexpr int CONSUMER_REGISTERS = 224, OTHER_REGISTERS = 56;  // of a thread, after setmaxnreg
  // setmaxnreg hands out no more than the block starts with: a multiple of 8 for each thread.
  static_assert(CONSUMERS * CONSUMER_REGISTERS + OTHER_REGISTERS <=
                (CONSUMERS + 1) * (65536 / THREADS / 8 * 8));
  // A consumer has 64 of the tile's columns: wgmma's left operand, eight patterns of the swizzle.
  static constexpr int BM = BM_, BN = 64 * CONSUMERS, STAGES = STAGES_;
  static constexpr int A_BYTES = BM * ROW_BYTES, B_BYTES = BN * ROW_BYTES;  // of a slice
  static_assert(A_BYTES % 1024 == 0 && B_BYTES % 1024 == 0, "a part begins with a whole pattern");
  static constexpr int SHARED_BYTES = STAGES * (A_BYTES + B_BYTES);
  static_assert(BM % STEP == 0 && BM <= 256, "a box and wgmma's N have at most 256 rows");
  static_assert(SHARED_BYTES <= 226 * 1024);  // of 227 KB: barriers and mailbox have the last
  static_assert(STAGES >= 2);  // a consumer gives a stage back after it has begun with the next one
};

template <class C>
struct Maps {
  CUtensorMap a[C::BM / STEP];  // a[i] is for width (i + 1) * STEP: boxes of so many rows
  CUtensorMap b;
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
  uint32_t a_tile_addr;  // [STAGES][BM][BK], swizzled
  uint32_t b_tile_addr;  // [STAGES][BN][BK], swizzled
  uint32_t full_addr;    // [STAGES] barriers: the slice has landed. One arrival, and TMA's bytes.
  uint32_t empty_addr;   // [STAGES] barriers: the slice is multiplied. One arrival of each consumer.
};

}  // namespace chapter
