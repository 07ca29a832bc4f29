// SPDX-License-Identifier: MIT
//
// The loading warp finds the block's tiles and orders slices of A and B from TMA, as far ahead as
// there are stages. It waits for `empty`. Its arrival and TMA's bytes end a phase of `full`.

#pragma once

#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/tensormap.cuh"
#include "common/kernel/ptx/tma.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "config.cuh"
#include "ring.cuh"
#include "schedule.cuh"

namespace chapter {

// Who: the loading warp. Its tiles, and the slices of each, are those of multiply_tiles, in the same
// order: where one side counts a slice more, it waits for ever.
// If `own_maps`, each group has its maps in `schedule`. `plan` changes these in each launch, so
// they must be acquired. Otherwise `packed` has the maps of all A and all B. It is a
// __grid_constant__ parameter of the kernel, so TMA reads this launch's maps without a fence.
template <class C, class T>
__device__ void load_tiles(const Maps& packed, bool own_maps, const Memory& memory, Tiles<C, T> tiles) {
  Ring<C::STAGES> ring;
  for (Tile tile; tiles.next(tile);) {
    // [load]
    const int k_tiles = tile.slices();
    // TMA gets a map's address, and cannot read a copy on a thread's stack. So this is a reference,
    // and both arms of ?: are lvalues.
    const Maps& maps = own_maps ? schedule.maps[tile.group] : packed;
    const int matrix = own_maps ? 0 : tile.group;  // coordinate in dimension 2 of B's map
    if (own_maps) {
      // A block needs this once a launch for each map, but does not note which maps it has acquired.
      gg::ptx::fence_tensormap_acquire(&maps.a);
      gg::ptx::fence_tensormap_acquire(&maps.b);
    }
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile, ring.next()) {
      const int stage = ring.stage, k0 = k_tile * BK;
      const uint32_t full_addr = memory.full_addr + stage * 8;
      // All consumers have multiplied what was in this stage; in lap 0 nothing was (ring.cuh).
      gg::ptx::mbarrier_wait_parity(memory.empty_addr + stage * 8, ring.phase ^ 1);
      if (gg::ptx::elect()) {
        if (k_tile == 0) memory.headers[stage] = tile;  // before the arrival, so seen after `full`
        gg::ptx::mbarrier_arrive_expect_tx(full_addr, C::A_BYTES + C::B_BYTES);
        gg::ptx::tma_load_3d(memory.a_tile_addr + stage * C::A_BYTES, &maps.a, k0, tile.row0, 0, full_addr);
        gg::ptx::tma_load_3d(memory.b_tile_addr + stage * C::B_BYTES, &maps.b, k0, tile.col0, matrix,
                             full_addr);
      }
      __syncwarp();  // lanes go on together: right without it too, as they meet at the next elect
    }
    // [/load]
  }
}

}  // namespace chapter
