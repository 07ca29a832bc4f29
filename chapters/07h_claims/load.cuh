// SPDX-License-Identifier: MIT
//
// The loading warp loads its block's rows of each slice of A into all blocks of the cluster, and the
// slice of B into its own: ahead of the consumers by as many slices as there are stages at most. It
// loads tile i + 1 only after all warps have received tile i, since the mailbox has one place.
// It waits for `empty`. Its arrival and TMA's bytes, from all blocks, end a phase of `full`.

#pragma once

#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/tma.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "config.cuh"
#include "ring.cuh"
#include "schedule.cuh"

namespace chapter {

// Who: the loading warp. It must count as many slices for a tile as multiply_tiles does: where one
// side counts a slice more, it waits for ever. A block of a cluster may have no columns of D, since
// N ends before them. It loads its rows of A all the same, for the others. TMA fills its B with
// zeros, and the store leaves its columns out.
template <class C>
__device__ void load_tiles(const Maps<C>& maps, const Memory& memory, TileReceiver<C> tiles, int rank,
                           int k) {
  const int k_tiles = (k + BK - 1) / BK;
  Ring<C::STAGES> ring;
  for (Tile tile; tiles.next(tile);) {
    // [load]
    const int width = round_up(tile.rows, STEP);  // as many rows as multiply_tiles multiplies
    const int box_rows = width / C::CLUSTER;      // of the box that a_map has (launch.cuh)
    const CUtensorMap& a_map = maps.a[width / STEP - 1];
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile, ring.next()) {
      const int stage = ring.stage, k0 = k_tile * BK;
      const uint32_t full_addr = memory.full_addr + stage * 8;
      // All consumers of the cluster have multiplied what was here. In lap 0 nothing was (ring.cuh).
      gg::ptx::mbarrier_wait_parity(memory.empty_addr + stage * 8, ring.phase ^ 1);
      if (gg::ptx::elect()) {
        // CLUSTER boxes of A, one from each block, and this block's box of B. Bytes of another block may
        // have landed already. They count, and the phase cannot end before this arrival.
        gg::ptx::mbarrier_arrive_expect_tx(full_addr, width * ROW_BYTES + C::B_BYTES);
        const uint32_t a_addr = memory.a_tile_addr + stage * C::A_BYTES + rank * box_rows * ROW_BYTES;
        const int row0 = tile.row0 + rank * box_rows;
        if constexpr (C::CLUSTER > 1) {
          gg::ptx::tma_load_2d_multicast(a_addr, &a_map, k0, row0, full_addr, (1 << C::CLUSTER) - 1);
        } else {
          gg::ptx::tma_load_2d(a_addr, &a_map, k0, row0, full_addr);
        }
        gg::ptx::tma_load_3d(memory.b_tile_addr + stage * C::B_BYTES, &maps.b, k0, tile.col0, tile.group,
                             full_addr);
      }
      __syncwarp();  // lanes go on together: right without it too, as they meet at the next elect
    }
    // [/load]
  }
}

}  // namespace chapter
