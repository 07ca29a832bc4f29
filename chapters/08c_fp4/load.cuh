// SPDX-License-Identifier: MIT
//
// The loading warp brings slices of A and B, and their scales, to shared memory, as far ahead as there are
// stages. It waits for `empty`. Its arrival and TMA's bytes end a phase of `full`.

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
  const int k_tiles = (k + BK - 1) / BK;
  const int sfb_rows = (n + ATOM_ROWS - 1) / ATOM_ROWS;  // rows of atoms of a group's SFB, as in its map
  Ring<C::STAGES> ring;
  for (Tile tile; tiles.next(tile);) {
    // Rows of atoms: those of the tile's first row and of its first column.
    const int sfa_row = tile.row0 / ATOM_ROWS;  // no remainder: groups are padded
    const int sfb_row = tile.group * sfb_rows + tile.col0 / ATOM_ROWS;
    for (int k_tile = 0; elected && k_tile < k_tiles; ++k_tile, ring.next()) {
      const int stage = ring.stage, byte0 = k_tile * ROW_BYTES;
      const uint32_t full_addr = memory.full_addr + stage * 8;
      // The slice that was in this stage has been multiplied; in lap 0 nothing was there.
      gg::ptx::mbarrier_wait_parity(memory.empty_addr + stage * 8, ring.phase ^ 1);
      // [load]
      gg::ptx::mbarrier_arrive_expect_tx(full_addr, C::STAGE_BYTES);
      gg::ptx::tma_load_3d(memory.a_tile_addr + stage * C::A_BYTES, &maps.a, byte0, tile.row0, 0, full_addr);
      gg::ptx::tma_load_3d(memory.b_tile_addr + stage * C::B_BYTES, &maps.b, byte0, tile.col0, tile.group,
                           full_addr);
      // Along K, the maps of A and B count bytes, those of SFA and SFB atoms.
      gg::ptx::tma_load_3d(memory.sfa_tile_addr + stage * C::SFA_BYTES, &maps.sfa, 0, k_tile * C::ATOMS,
                           sfa_row, full_addr);
      gg::ptx::tma_load_3d(memory.sfb_tile_addr + stage * C::SFB_BYTES, &maps.sfb, 0, k_tile * C::ATOMS,
                           sfb_row, full_addr);
      // [/load]
    }
  }
}

}  // namespace chapter
