// SPDX-License-Identifier: MIT
//
// The loading warp of each block brings its rows of A, half of the columns of B, and scales to shared memory,
// as far ahead as there are stages. It waits for its block's `empty`. Rank 0's arrival and TMA's
// bytes, those of both blocks, end a phase of rank 0's `full`.

#pragma once

#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/tma.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "config.cuh"
#include "ring.cuh"
#include "schedule.cuh"

namespace chapter {

template <class C>
__device__ void load_tiles(const Maps& maps, const Memory& memory, Tiles<C> tiles, int n, int k) {
  const bool elected = gg::ptx::elect();  // one lane loads and counts in `ring`; all 32 find tiles
  const int rank = block_rank();
  static_assert(BN / ATOM_ROWS == CTA_GROUP);  // a row of SFB's atoms for each rank to load
  const int k_tiles = (k + C::BK - 1) / C::BK;
  const int sfb_rows = (n + ATOM_ROWS - 1) / ATOM_ROWS;  // rows of atoms of a group's SFB, as in its map
  Ring<C::STAGES> ring;
  for (Tile tile; tiles.next(tile);) {
    const int row0 = tile.row0 + rank * BLOCK_ROWS, col0 = tile.col0 + rank * (BN / CTA_GROUP);
    const int sfa_row = row0 / ATOM_ROWS;  // row0, col0, sfa_row: this block's; sfb_row: the tile's first
    const int sfb_row = tile.group * sfb_rows + tile.col0 / ATOM_ROWS;
    for (int k_tile = 0; elected && k_tile < k_tiles; ++k_tile, ring.next()) {
      const int stage = ring.stage, byte0 = k_tile * ROW_BYTES, atom0 = k_tile * C::ATOMS;
      const uint32_t full_addr = memory.full_addr + stage * 8;  // its own: _pair loads use rank 0's
      // The slice that was in this stage has been multiplied; in lap 0 nothing was there.
      gg::ptx::mbarrier_wait_parity(memory.empty_addr + stage * 8, ring.phase ^ 1);
      const uint32_t sfb_addr = memory.sfb_tile_addr + stage * C::SFB_BYTES;
      // [load]
      // Bytes for both blocks' stages. Rank 1's may land first: no phase ends without this arrival.
      if (rank == 0) gg::ptx::mbarrier_arrive_expect_tx(full_addr, CTA_GROUP * C::STAGE_BYTES);
      gg::ptx::tma_load_3d_pair(memory.a_tile_addr + stage * C::A_BYTES, &maps.a, byte0, row0, 0, full_addr);
      gg::ptx::tma_load_3d_pair(memory.b_tile_addr + stage * C::B_BYTES, &maps.b, byte0, col0, tile.group,
                                full_addr);
      gg::ptx::tma_load_3d_pair(memory.sfa_tile_addr + stage * C::SFA_BYTES, &maps.sfa, 0, atom0, sfa_row,
                                full_addr);
      // Each block needs the scales of all columns. Each loads those of its own half of B, for both.
      // Beyond N they may be another group's, for columns that are not stored.
      gg::ptx::tma_load_3d_pair_multicast(sfb_addr + rank * (C::SFB_BYTES / CTA_GROUP), &maps.sfb, 0, atom0,
                                          sfb_row + rank, full_addr, PAIR_MASK);
      // [/load]
    }
  }
  // [drain]
  // The block must not end while commits of rank 0 are on their way to this block's `empty`.
  // A cluster barrier does not wait for them: the tensor core arrives, not a thread.
  for (int i = 0; elected && i < C::STAGES; ++i, ring.next()) {
    gg::ptx::mbarrier_wait_parity(memory.empty_addr + ring.stage * 8, ring.phase ^ 1);
  }
  // [/drain]
}

}  // namespace chapter
