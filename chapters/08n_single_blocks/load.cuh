// SPDX-License-Identifier: MIT
//
// The loading warp of each block loads the block's rows of A, columns of B, and scales, as far
// ahead as there are stages. Of two sharing blocks each loads one half of B, by multicast to both.
// It waits for its block's `empty`. TMA's bytes count at `full` of the leader of the block that gets them.

#pragma once

#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/tensormap.cuh"
#include "common/kernel/ptx/tma.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "config.cuh"
#include "maps.cuh"
#include "ring.cuh"
#include "schedule.cuh"

namespace chapter {

// A box into this block's shared memory; its bytes count at its leader's `full`.
template <class C>
__device__ void load_box(uint32_t dst_addr, const CUtensorMap* map, int c0, int c1, int c2,
                         uint32_t full_addr) {
  if constexpr (C::CTA_GROUP == 2) gg::ptx::tma_load_3d_pair(dst_addr, map, c0, c1, c2, full_addr);
  if constexpr (C::CTA_GROUP == 1) gg::ptx::tma_load_3d(dst_addr, map, c0, c1, c2, full_addr);
}

// The same box to this address in every block of the cluster. The bytes of each copy count at `full`
// of the leader of the block that gets it.
template <class C>
__device__ void load_box_for_all(uint32_t dst_addr, const CUtensorMap* map, int c0, int c1, int c2,
                                 uint32_t full_addr) {
  if constexpr (C::CTA_GROUP == 2) {
    gg::ptx::tma_load_3d_pair_multicast(dst_addr, map, c0, c1, c2, full_addr, C::CLUSTER_MASK);
  } else if constexpr (C::BLOCKS == 2) {
    gg::ptx::tma_load_3d_multicast(dst_addr, map, c0, c1, c2, full_addr, C::CLUSTER_MASK);
  } else {
    load_box<C>(dst_addr, map, c0, c1, c2, full_addr);
  }
}

template <class C>
__device__ void load_tiles(const Maps& maps, const Memory& memory, Tiles<C> tiles, int n, int k) {
  const bool elected = gg::ptx::elect();  // one lane loads and counts in `ring`; all 32 find tiles
  const int rank = block_rank();
  const bool kn = C::IN_BYTE == 1 && maps.kn;  // the layout of weights.b; FP4 is always [N,K]
  const int k_tiles = (k + C::BK - 1) / C::BK;
  const int sfb_rows = (n + ATOM_ROWS - 1) / ATOM_ROWS;  // rows of atoms of a group's SFB, as in its map
  Ring<C::STAGES> ring;
  for (Tile tile; tiles.next(tile);) {
    const int row0 = tile.row0 + rank * BLOCK_ROWS, col0 = tile.col0 + rank * (BN / C::BLOCKS);
    const int sfa_row = row0 / ATOM_ROWS;  // row0, col0, sfa_row: this block's; sfb_row: the tile's first
    // [weights]
    // A reference, and both arms of ?: are lvalues: TMA cannot read a thread's copy of a map.
    const WeightMaps& weights = maps.discrete ? discrete_maps[tile.group] : maps.weights;
    const int matrix = maps.discrete ? 0 : tile.group;  // the group's number in its map
    if (maps.discrete) {
      // Before the tile's first load, in the lane that loads; others do not need it. Once a
      // launch would do for each map, but the warp does not note which maps it has acquired.
      gg::ptx::fence_tensormap_acquire(&weights.b);
      gg::ptx::fence_tensormap_acquire(&weights.sfb);
    }
    // [/weights]
    const int sfb_row = matrix * sfb_rows + tile.col0 / ATOM_ROWS;
    for (int k_tile = 0; elected && k_tile < k_tiles; ++k_tile, ring.next()) {
      const int stage = ring.stage, byte0 = k_tile * ROW_BYTES, atom0 = k_tile * C::ATOMS;
      const uint32_t full_addr = memory.full_addr + stage * 8;  // a pair's loads count at rank 0's
      // The slice that was in this stage has been multiplied, in every block that the loads below
      // write to. In lap 0 nothing was there, and those blocks' barriers are initialised: the first
      // cluster barrier of kernel.cuh has seen to it.
      gg::ptx::mbarrier_wait_parity(memory.empty_addr + stage * 8, ring.phase ^ 1);
      // [load]
      // All that will be written to the stages which this `full` serves, whichever block loads it.
      if (rank == C::leader()) gg::ptx::mbarrier_arrive_expect_tx(full_addr, C::CTA_GROUP * C::STAGE_BYTES);
      load_box<C>(memory.a_tile_addr + stage * C::A_BYTES, &maps.a, byte0, row0, 0, full_addr);
      const uint32_t b_addr = memory.b_tile_addr + stage * C::B_BYTES;
      for (int c = 0; c < BN / C::BLOCKS; c += BOX) {
        // The contiguous dimension comes first, as in the map. With `kn` an element is a byte.
        const int c0 = kn ? col0 + c : byte0, c1 = kn ? byte0 : col0 + c;
        if constexpr (C::BLOCKS > C::CTA_GROUP) {  // sharing blocks: half `rank` of B, for both
          static_assert(BN / C::BLOCKS == BOX);    // one box: c is 0, `rank` says which
          load_box_for_all<C>(b_addr + rank * C::B_BYTES / C::BLOCKS, &weights.b, c0, c1, matrix, full_addr);
        } else {  // all of this block's B: in a pair one box, in a block alone two
          load_box<C>(b_addr + c * ROW_BYTES, &weights.b, c0, c1, matrix, full_addr);
        }
      }
      load_box<C>(memory.sfa_tile_addr + stage * C::SFA_BYTES, &maps.sfa, 0, atom0, sfa_row, full_addr);
      // Every block needs the scales of all columns, so each loads its rows of atoms for all. Beyond N they
      // may be another group's: those columns are not stored.
      for (int row = rank; row < BN / ATOM_ROWS; row += C::BLOCKS) {
        load_box_for_all<C>(memory.sfb_tile_addr + stage * C::SFB_BYTES + row * C::SFA_BYTES, &weights.sfb, 0,
                            atom0, sfb_row + row, full_addr);
      }
      // [/load]
    }
  }
  // [drain]
  // The block must not end while commits of the other one are on their way to this block's `empty`.
  // A cluster barrier does not wait for them: the tensor core arrives, not a thread.
  for (int i = 0; elected && i < C::STAGES; ++i, ring.next()) {
    gg::ptx::mbarrier_wait_parity(memory.empty_addr + ring.stage * 8, ring.phase ^ 1);
  }
  // [/drain]
}

}  // namespace chapter
