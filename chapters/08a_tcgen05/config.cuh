// SPDX-License-Identifier: MIT
//
// The kernel's sizes, and where its roles find what they share.

#pragma once

#include "common/kernel/ptx/tcgen05.cuh"
#include "common/kernel/tensor_map.h"
#include "common/kernel/types.cuh"

namespace chapter {

constexpr int STORE_WARPS = 4;  // warps 0 to 3; warp w reaches 32 lanes of tensor memory from 32 * (w % 4) on
constexpr int LOADER = STORE_WARPS, MULTIPLIER = STORE_WARPS + 1;
constexpr int THREADS = 32 * (STORE_WARPS + 2);

constexpr int BM = 128;                   // rows of a tile: one for each lane of tensor memory
static_assert(32 * STORE_WARPS == BM);    // store.cuh: thread r of these warps has row r, in lane r
constexpr int BK = 64, ROW_BYTES = 128;   // depth of a slice: rows of 128 bytes, the most that TMA swizzles
static_assert(2 * BK == ROW_BYTES);       // elements of 16 bits
constexpr int PRODUCT_K = 16;             // depth of a product: 32 bytes, for all 16-bit types
static_assert(BK % PRODUCT_K == 0);       // a slice is a whole number of products
constexpr int SHARED_BYTES = 226 * 1024;  // of 227 KB: barriers and the like have the last

// T: the type of A and B. D: the type of D. BN: columns of a tile.
template <class T_, class D_, int BN_, class Offset_>
struct Config {
  using T = T_;
  using D = D_;
  using Offset = Offset_;
  // Steps along a row in multiply.cuh are for 2 bytes, descriptors and maps for rows of 128.
  static_assert(sizeof(T) == 2 && ROW_BYTES == 128);
  static constexpr int BN = BN_, ACCUMULATORS = 2;  // columns of a tile; tiles of sums in tensor memory
  // 1 accumulator would do: all else follows, but products would wait while a tile is stored.
  static_assert(ACCUMULATORS * BN <= gg::ptx::TMEM_COLUMNS);
  // tcgen05.alloc takes a power of two of columns; store.cuh loads 32 at a time.
  static_assert((ACCUMULATORS * BN & (ACCUMULATORS * BN - 1)) == 0 && BN % 32 == 0);
  static constexpr int A_BYTES = BM * ROW_BYTES, B_BYTES = BN * ROW_BYTES;  // of a slice
  static_assert(A_BYTES % 1024 == 0 && B_BYTES % 1024 == 0);  // each tile begins a pattern of the swizzle
  static constexpr int STAGE_BYTES = A_BYTES + B_BYTES;       // as many as the boxes of launch.cuh bring
  static constexpr int STAGES = SHARED_BYTES / STAGE_BYTES;   // slices in shared memory
  static_assert(STAGES >= 2);                                 // one is loaded while another one is multiplied
};

struct Maps {
  CUtensorMap a, b;
};

struct Memory {
  // Shared memory.
  uint32_t a_tile_addr;    // [STAGES][BM][BK], swizzled
  uint32_t b_tile_addr;    // [STAGES][BN][BK], swizzled
  uint32_t full_addr;      // [STAGES] barriers: the slice has landed. One arrival, and TMA's bytes.
  uint32_t empty_addr;     // [STAGES] barriers: the slice has been multiplied. One arrival, by a commit.
  uint32_t ready_addr;     // [ACCUMULATORS] barriers: the tile's sums are complete. One, by a commit.
  uint32_t taken_addr;     // [ACCUMULATORS] barriers: the sums have been read. One of each storing warp.
  gg::ptx::TmemAddr sums;  // [ACCUMULATORS][BN] columns of tensor memory
};

}  // namespace chapter
