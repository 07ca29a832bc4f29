// SPDX-License-Identifier: MIT
//
// The loading warp brings slices of A and B to shared memory, as far ahead as there are stages. It
// loads tile i + 1 only after all warps have received tile i, since the mailbox has one place.
// It waits for `empty`. Its arrival and TMA's bytes end a phase of `full`. tiles.next() waits for
// the mailbox's `sent` and signals its `received`.

#pragma once

#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/tma.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "config.cuh"
#include "ring.cuh"
#include "schedule.cuh"

namespace chapter {

// Who: the loading warp. It must count as many slices for a tile as multiply_tiles does: where one
// side counts a slice more, it waits for ever.
template <class C>
__device__ void load_tiles(const Maps& maps, const Memory& memory, TileReceiver tiles, int k) {
  const int k_tiles = (k + BK - 1) / BK;
  Ring<C::STAGES> ring;
  for (Tile tile; tiles.next(tile);) {
    // [load]
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile, ring.next()) {
      const int stage = ring.stage, k0 = k_tile * BK;
      const uint32_t full_addr = memory.full_addr + stage * 8;
      // All consumers have multiplied what was in this stage; in lap 0 nothing was (ring.cuh).
      gg::ptx::mbarrier_wait_parity(memory.empty_addr + stage * 8, ring.phase ^ 1);
      if (gg::ptx::elect()) {
        gg::ptx::mbarrier_arrive_expect_tx(full_addr, C::A_BYTES + C::B_BYTES);
        gg::ptx::tma_load_2d(memory.a_tile_addr + stage * C::A_BYTES, &maps.a, k0, tile.row0, full_addr);
        gg::ptx::tma_load_3d(memory.b_tile_addr + stage * C::B_BYTES, &maps.b, k0, tile.col0, tile.group,
                             full_addr);
      }
      __syncwarp();  // lanes go on together: right without it too, as they meet at the next elect
    }
    // [/load]
  }
}

}  // namespace chapter
