// SPDX-License-Identifier: MIT
//
// The kernel's sizes, and where its roles find what they share.

#pragma once

#include "common/kernel/ptx/tcgen05.cuh"
#include "common/kernel/tensor_map.h"
#include "common/kernel/types.cuh"

namespace chapter {

constexpr int STORE_WARPS = 4;  // warps 0 to 3: a warp reaches 32 of the 128 lanes of tensor memory
constexpr int LOADER = 4, MULTIPLIER = 5;
constexpr int THREADS = 32 * 6;

constexpr int BM = 128;                   // rows of a tile: one for each lane of tensor memory
constexpr int BK = 256, ROW_BYTES = 128;  // depth of a slice: rows of 128 bytes, the most that TMA swizzles
constexpr int ATOM_ROWS = 128, ATOM_BYTES = 512;  // an atom: the scales of 128 rows and four blocks of V k
constexpr int SHARED_BYTES = 226 * 1024;          // of 227 KB: barriers and the like have the last

// Scales are of V elements of K each. D: of D. BN: columns of a tile.
template <class Scale_, int V_, class D_, int BN_>
struct Config {
  using Scale = Scale_;
  using D = D_;
  static constexpr int V = V_, BN = BN_;
  static constexpr int ACCUMULATORS = BN == 256 ? 1 : 2;  // tiles of sums that fit beside the scales
  static constexpr int A_BYTES = BM * ROW_BYTES, B_BYTES = BN * ROW_BYTES;  // of a slice
  static constexpr int ATOMS = BK / V / 4;  // of a slice's scales, one behind the other along K
  static constexpr int SFA_BYTES = ATOMS * ATOM_BYTES, SFB_BYTES = BN / ATOM_ROWS * SFA_BYTES;
  static constexpr int STAGE_BYTES = A_BYTES + B_BYTES + SFA_BYTES + SFB_BYTES;
  static constexpr int STAGES = SHARED_BYTES / STAGE_BYTES;  // slices in shared memory
};

struct Maps {
  CUtensorMap a, b, sfa, sfb;
};

struct Memory {
  // Shared memory.
  uint32_t a_tile_addr;    // [STAGES][BM][BK], swizzled
  uint32_t b_tile_addr;    // [STAGES][BN][BK], swizzled
  uint32_t sfa_tile_addr;  // [STAGES][ATOMS][512]
  uint32_t sfb_tile_addr;  // [STAGES][BN / 128][ATOMS][512]
  uint32_t full_addr;      // [STAGES] barriers: the slice has landed. One arrival, and TMA's bytes.
  uint32_t empty_addr;     // [STAGES] barriers: the slice has been multiplied. One arrival, by a commit.
  uint32_t ready_addr;     // [ACCUMULATORS] barriers: the tile's sums are complete. One, by a commit.
  uint32_t taken_addr;     // [ACCUMULATORS] barriers: the sums have been read. One of each storing warp.
  // Columns of tensor memory.
  gg::ptx::TmemAddr sums;  // [ACCUMULATORS][BN]
  gg::ptx::TmemAddr sfa;   // [ATOMS][4]
  gg::ptx::TmemAddr sfb;   // [ATOMS][BN / 128][4]
};

}  // namespace chapter
