// SPDX-License-Identifier: MIT
//
// The loading warp loads its block's share of each slice of A into all blocks of the cluster, and
// the slice of B into its own, as far ahead as there are stages. It waits for `empty`. TMA's bytes,
// those from all blocks, signal `full`.

#pragma once

#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/tma.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "config.cuh"
#include "ring.cuh"
#include "schedule.cuh"

namespace chapter {

template <class C>
__device__ void load_tiles(const Maps& maps, const Memory& memory,
                           Mailbox<C::CLUSTER> (&mailboxes)[C::CONSUMERS], int rank, int slices) {
  TileReceiver<C> tiles(mailboxes, 0, 1);
  Ring<C::STAGES> ring;
  for (Tile tile; tiles.next(tile);) {
    // [load]
    // Where a tile has no lower half, A's rows there are not loaded (config.cuh).
    const int halves = tile.rows > HALF ? 2 : 1, share = rank * C::SHARE, col0 = tile.col0 + rank * BN;
    for (int slice = 0; slice < slices; ++slice, ring.next()) {
      const int stage = ring.stage, k0 = slice * BK;
      const uint32_t full_addr = memory.full_addr + stage * 8;
      // empty[stage]: in each block of the cluster the slice that was in this stage is multiplied. In
      // lap 0 there was none, and the wait returns at once (ring.cuh).
      gg::ptx::mbarrier_wait_parity(memory.empty_addr + stage * 8, ring.phase ^ 1);
      if (gg::ptx::elect()) {
        gg::ptx::mbarrier_arrive_expect_tx(full_addr, halves * HALF * ROW_BYTES + C::B_BYTES);
        for (int half = 0; half < halves; ++half) {
          const int row = half * HALF + share;  // of the tile
          const uint32_t a_addr = memory.a_tile_addr + stage * C::A_BYTES + row * ROW_BYTES;
          if constexpr (C::CLUSTER > 1) {
            gg::ptx::tma_load_2d_multicast(a_addr, &maps.a, k0, tile.row0 + row, full_addr,
                                           (1 << C::CLUSTER) - 1);
          } else {
            gg::ptx::tma_load_2d(a_addr, &maps.a, k0, tile.row0 + row, full_addr);
          }
        }
        const uint32_t b_addr = memory.b_tile_addr + stage * C::B_BYTES;
#pragma unroll
        for (int col = 0; col < BN; col += BOX)
          gg::ptx::tma_load_3d(b_addr + col * ROW_BYTES, &maps.b, col0 + col, k0, tile.group, full_addr);
      }
      __syncwarp();  // lanes go on together: right without it too, as they meet at the next elect
    }
    // [/load]
  }
}

}  // namespace chapter
