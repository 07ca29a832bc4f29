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
constexpr int BK = 128, ROW_BYTES = 128;  // depth of a slice: rows of 128 bytes, the most that TMA swizzles
constexpr int PRODUCT_K = 32, PRODUCT_BYTES = 32;              // depth of a product, and its bytes of a row
static_assert(BK == ROW_BYTES && PRODUCT_K == PRODUCT_BYTES);  // elements of 8 bits, as IDESC asserts of T
// An atom: the scales of 128 rows and four scale blocks of 32 k. In tensor memory it has four
// columns, each with 32 rows, four times the same, 32 lanes apart.
constexpr int ATOM_ROWS = 128, ATOM_BLOCKS = 4;
constexpr int ATOM_BYTES = ATOM_ROWS * ATOM_BLOCKS, ATOM_COLUMNS = ATOM_ROWS / 32;
// A slice has one atom for each 128 rows. Its product i takes scale block i of it, by scale id i.
static_assert(BK == ATOM_BLOCKS * PRODUCT_K);
// Groups have multiples of so many rows, which `plan` checks. BM would do here; pairs of blocks, in
// chapter 08d, need 256.
constexpr int PAD_ROWS = 256;
static_assert(PAD_ROWS % BM == 0);        // tiles have all their rows
static_assert(BM == ATOM_ROWS);           // a slice has one atom of SFA: one in TMA's box, and one copy
constexpr int SHARED_BYTES = 226 * 1024;  // of 227 KB: barriers and the like have the last

// T: the type of A and B. D: the type of D. BN: columns of a tile.
template <class T_, class D_, int BN_>
struct Config {
  using T = T_;
  using D = D_;
  static constexpr int BN = BN_;
  static_assert(BN % ATOM_ROWS == 0);  // a tile's columns begin and end with atoms
  static constexpr int SFA_BYTES = ATOM_BYTES, SFB_BYTES = BN / ATOM_ROWS * ATOM_BYTES;  // of a slice
  static constexpr int SFA_COLUMNS = ATOM_COLUMNS, SFB_COLUMNS = SFB_BYTES / ATOM_BYTES * ATOM_COLUMNS;
  // Two tiles of sums if they fit beside the scales of one slice, or one.
  static constexpr int ACCUMULATORS = 2 * BN + SFA_COLUMNS + SFB_COLUMNS <= gg::ptx::TMEM_COLUMNS ? 2 : 1;
  static_assert(ACCUMULATORS * BN + SFA_COLUMNS + SFB_COLUMNS <= gg::ptx::TMEM_COLUMNS);
  static constexpr int A_BYTES = BM * ROW_BYTES, B_BYTES = BN * ROW_BYTES;  // of a slice
  static_assert(A_BYTES % 1024 == 0 && B_BYTES % 1024 == 0);  // each tile begins a pattern of the swizzle
  // As many as the four boxes of launch.cuh bring: else `full` completes too early or never.
  static constexpr int STAGE_BYTES = A_BYTES + B_BYTES + SFA_BYTES + SFB_BYTES;
  static constexpr int STAGES = SHARED_BYTES / STAGE_BYTES;  // slices in shared memory
  static_assert(STAGES >= 2);                                // one is loaded while another one is multiplied
};

struct Maps {
  CUtensorMap a, b, sfa, sfb;
};

struct Memory {
  // Shared memory.
  uint32_t a_tile_addr;    // [STAGES][BM][BK], swizzled
  uint32_t b_tile_addr;    // [STAGES][BN][BK], swizzled
  uint32_t sfa_tile_addr;  // [STAGES][512]
  uint32_t sfb_tile_addr;  // [STAGES][BN / 128][512]
  uint32_t full_addr;      // [STAGES] barriers: the slice has landed. One arrival, and TMA's bytes.
  uint32_t empty_addr;     // [STAGES] barriers: the slice has been multiplied. One arrival, by a commit.
  uint32_t ready_addr;     // [ACCUMULATORS] barriers: the tile's sums are complete. One, by a commit.
  uint32_t taken_addr;     // [ACCUMULATORS] barriers: the sums have been read. One of each storing warp.
  // Columns of tensor memory.
  gg::ptx::TmemAddr sums;  // [ACCUMULATORS][BN]
  gg::ptx::TmemAddr sfa;   // [4]
  gg::ptx::TmemAddr sfb;   // [BN / 128][4]
};

}  // namespace chapter
