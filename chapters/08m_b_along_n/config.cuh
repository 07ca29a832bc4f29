// SPDX-License-Identifier: MIT
//
// The kernel's sizes, and where its roles find what they share.

#pragma once

#include <type_traits>

#include "common/kernel/ptx/tcgen05.cuh"
#include "common/kernel/tensor_map.h"
#include "common/kernel/types.cuh"

namespace chapter {

constexpr int STORE_WARPS = 8;  // warps 0 to 7; warp w reaches 32 lanes of tensor memory from 32 * (w % 4) on
constexpr int LOADER = STORE_WARPS, MULTIPLIER = STORE_WARPS + 1, SCHEDULER = STORE_WARPS + 2;
constexpr int THREADS = 32 * (STORE_WARPS + 3);

constexpr int CTA_GROUP = 2;    // blocks that multiply together: a pair. Rank 0 starts the products.
static_assert(CTA_GROUP == 2);  // as .cta_group::2, and as tma.cuh finds rank 0's barrier: it clears a bit
constexpr uint16_t PAIR_MASK = (1 << CTA_GROUP) - 1;  // its ranks, for what goes to both blocks
constexpr int BLOCK_ROWS = 128;                       // rows of a block: one for each lane of tensor memory
static_assert(32 * STORE_WARPS == 2 * BLOCK_ROWS);    // store.cuh: warps w and w + 4 have the same rows
constexpr int BM = CTA_GROUP * BLOCK_ROWS, BN = 256;  // rows and columns of a tile
constexpr int ROW_BYTES = 128;                        // of a slice: the most that TMA swizzles
constexpr int PRODUCT_BYTES = 32;                     // of a row, for one product
// How many lines, ROW_BYTES each, a box has: rows of A; of B columns if it is [N,K], k if [K,N]. A
// product takes PRODUCT_BYTES of each line of its box, but of [K,N] PRODUCT_K whole lines.
constexpr int BOX = 128;
static_assert(BOX == BN / CTA_GROUP);  // of [N,K] a box has a line for each of a block's columns
static_assert(BOX == ROW_BYTES);       // of [K,N] a line has a byte for each of them
// An atom: the scales of 128 rows and four scale blocks of V k. In tensor memory it has four
// columns, each with 32 rows, four times the same, 32 lanes apart.
constexpr int ATOM_ROWS = 128, ATOM_BLOCKS = 4;
constexpr int ATOM_BYTES = ATOM_ROWS * ATOM_BLOCKS, ATOM_COLUMNS = ATOM_ROWS / 32;
// Groups have multiples of so many rows, which `plan` checks.
constexpr int PAD_ROWS = 256;
static_assert(PAD_ROWS % BM == 0);                                  // tiles have all their rows
static_assert(BLOCK_ROWS % ATOM_ROWS == 0 && BN % ATOM_ROWS == 0);  // and begin and end with atoms
// Tiles of sums in tensor memory, at columns 0 and 208: they share 48 columns, since the last
// 48 are for scales.
constexpr int ACCUMULATORS = 2, SCALE_COLUMNS = 48;
constexpr int SHARED_COLUMNS = ACCUMULATORS * BN + SCALE_COLUMNS - gg::ptx::TMEM_COLUMNS;
constexpr int ACCUMULATOR_STEP = BN - SHARED_COLUMNS;  // from an accumulator's first column to the next one's
// Columns of a part, a piece of a row on which `apply` works. No other number will do: each lane has the
// bias of one of them, and amax leaves out 32 values where one is NaN.
constexpr int PART = 32;
constexpr int READ_COLUMNS = 2 * PART;  // of tensor memory, in one read: two loads
static_assert(ACCUMULATORS == 2 && SHARED_COLUMNS <= READ_COLUMNS);  // store.cuh reads them in one read
constexpr int OUTPUT_BYTES = 4096;  // of shared memory, for D of a storing warp: a box of f32, or several
static_assert(OUTPUT_BYTES % 1024 == 0);  // boxes and stages begin a pattern of the swizzle
constexpr int SHARED_BYTES = 226 * 1024;  // of 227 KB: barriers and the like have the last

// This block's rank in its cluster. It is x of the grid, as the grid (launch.cuh) and each cluster
// (kernel.cuh) are CTA_GROUP blocks wide.
__device__ inline int block_rank() { return int(blockIdx.x); }

// T: the type of A and B. V neighbours along K share a scale, of type Scale.
template <class T_, class Scale_, int V_>
struct Config {
  using T = T_;
  using Scale = Scale_;
  static constexpr int V = V_;
  static constexpr int IN_BYTE = std::is_same_v<T, gg::e2m1> ? 2 : 1;  // elements in a byte of A, B
  static constexpr int BK = ROW_BYTES * IN_BYTE;                       // depth of a slice
  static constexpr int PRODUCT_K = PRODUCT_BYTES * IN_BYTE;            // and of a product
  static_assert(ATOM_BLOCKS % (PRODUCT_K / V) == 0);                   // its scales are in one atom
  static_assert(BK % (V * ATOM_BLOCKS) == 0);                          // a slice has whole atoms
  // The instruction takes UE4M3 for 16 elements only.
  static_assert(V == 16 || std::is_same_v<Scale, gg::ue8m0>);
  static_assert(PRODUCT_K % 8 == 0);                      // [K,N]: each starts a swizzle pattern
  static constexpr int A_BYTES = BLOCK_ROWS * ROW_BYTES;  // of a block's part of a slice
  static constexpr int B_BYTES = BN / CTA_GROUP * ROW_BYTES;
  static_assert(A_BYTES % 1024 == 0 && B_BYTES % 1024 == 0);  // each tile begins a pattern of the swizzle
  // [atoms]
  static constexpr int ATOMS = BK / V / ATOM_BLOCKS;  // along K in a slice, for each 128 rows
  static constexpr int SFA_BYTES = ATOMS * ATOM_BYTES, SFB_BYTES = BN / ATOM_ROWS * SFA_BYTES;
  static constexpr int SFA_COLUMNS = ATOMS * ATOM_COLUMNS, SFB_COLUMNS = BN / ATOM_ROWS * SFA_COLUMNS;
  // [/atoms]
  static_assert(SFA_COLUMNS + SFB_COLUMNS <= SCALE_COLUMNS);
  static constexpr int STAGE_BYTES = A_BYTES + B_BYTES + SFA_BYTES + SFB_BYTES;
  // In boxes of maps.cuh: one of A, one of B for each BOX columns, one of scales for each row of atoms.
  static_assert(STAGE_BYTES ==
                (1 + BN / CTA_GROUP / BOX) * BOX * ROW_BYTES + (1 + BN / ATOM_ROWS) * ATOMS * ATOM_BYTES);
  static constexpr int STAGES = (SHARED_BYTES - STORE_WARPS * OUTPUT_BYTES) / STAGE_BYTES;  // slices
  static_assert(STAGES >= 2);  // one is loaded while another one is multiplied
};

struct alignas(128) WeightMaps {  // maps.cuh relies on the alignment: a kernel writes some of these
  CUtensorMap b, sfb;
};
struct Maps {
  CUtensorMap a, sfa, d;
  WeightMaps weights;  // of all groups; if `discrete`, the patterns, with which nothing may be loaded
  bool discrete;       // each group has maps of its own, in discrete_maps
  // B's matrices are [K,N], in FP8 only (make_maps), else [N,K]. The map weights.b, the coordinates
  // in load.cuh, and both descriptors and b_step in multiply.cuh must all go by this flag.
  bool kn;
};

// kernel.cuh lays both blocks out alike: the same offsets in shared memory, the same columns of tensor
// memory. (Shared addresses still differ in the block's rank, bits 24 and up.) Products, copies and
// commits rely on it: each is given rank 0's address, and acts at the same offset in both blocks.
// Only rank 0's `full` and `taken` are used, for the whole pair. A commit arrives at `empty` and `ready` of
// each of the two blocks.
struct Memory {
  // Shared memory.
  unsigned char* output;   // [STORE_WARPS][OUTPUT_BYTES]
  uint32_t a_tile_addr;    // [STAGES][BLOCK_ROWS][BK], swizzled
  uint32_t b_tile_addr;    // [STAGES][BN / CTA_GROUP][BK], swizzled; `kn`: [BK][BN / CTA_GROUP]
  uint32_t sfa_tile_addr;  // [STAGES][ATOMS][512]
  uint32_t sfb_tile_addr;  // [STAGES][BN / 128][ATOMS][512]
  uint32_t full_addr;      // [STAGES] barriers: the slice has landed. One arrival, and TMA's bytes.
  uint32_t empty_addr;     // [STAGES] barriers: the slice has been multiplied. One arrival, by a commit.
  uint32_t ready_addr;     // [ACCUMULATORS] barriers: the tile's sums are complete. One, by a commit.
  // A barrier: all columns of the tile before have been read, and of this one those that the next one shares.
  // One arrival of each storing warp of both blocks, also of one that has no columns of this tile, and only
  // after its wait for `ready`: else two of its arrivals could be in the same phase.
  uint32_t taken_addr;
  // Columns of tensor memory.
  gg::ptx::TmemAddr sums;  // [BN] of accumulator 0; the other one is ACCUMULATOR_STEP further
  gg::ptx::TmemAddr sfa;   // [ATOMS][4]
  gg::ptx::TmemAddr sfb;   // [ATOMS][BN / 128][4]: not as in shared memory, multiply.cuh says why
};

}  // namespace chapter
