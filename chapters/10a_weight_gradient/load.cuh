// SPDX-License-Identifier: MIT
//
// For each slice the loading warp loads its block's columns of A, and SHARE of the slice's tokens of
// B, these into all blocks of the cluster. It loads as far ahead as there are stages.
// It waits for `empty`. TMA's bytes, from all blocks of the cluster, signal `full`.

#pragma once

#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/tma.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "config.cuh"
#include "place.cuh"
#include "ring.cuh"
#include "schedule.cuh"

namespace chapter {

// A slice is BK rows: tokens of one group, and zeros after its last one. TMA fills with zeros what
// a map does not have, rows as well as columns. Zeros count as bytes, so `full` expects as many bytes
// of each slice.
template <class C>
__device__ void load_tiles(const Maps& maps, const Memory& memory,
                           Mailbox<C::CLUSTER> (&mailboxes)[C::CONSUMERS], int rank, int n, int k) {
  const TileList<C> list(n, k);
  TileReceiver<C> tiles(mailboxes, 0, 1);
  for (Tile tile; tiles.next(tile);) {
    // [load]
    const auto place = list.place(tile.index);
    const int a_col = place.row + rank * BM;  // a row of D is a column of A
    Ring<C::STAGES> ring(tile.position);
    for (int token = 0; token < tile.tokens; token += BK, ring.next()) {
      const int stage = ring.stage;
      // The group's tokens from its `token`th on: rows of A and B before `stop`, then zeros (token_map).
      const int kept = min(tile.tokens - token, BK), missing = BK - kept, stop = tile.token0 + token + kept;
      const uint32_t full_addr = memory.full_addr + stage * 8;
      // empty[stage]: in each block of the cluster the slice that was in this stage is multiplied. In
      // lap 0 there was none, and the wait returns at once (ring.cuh).
      gg::ptx::mbarrier_wait_parity(memory.empty_addr + stage * 8, ring.phase ^ 1);
      if (gg::ptx::elect()) {
        gg::ptx::mbarrier_arrive_expect_tx(full_addr, C::A_BYTES + C::B_BYTES);
        const uint32_t a_addr = memory.a_tile_addr + stage * C::A_BYTES;
#pragma unroll
        for (int box = 0; box < BOXES_A; ++box)
          gg::ptx::tma_load_3d(a_addr + box * BOX_BYTES, &maps.a, a_col + box * BOX, missing, stop,
                               full_addr);
        const int row = rank * C::SHARE;  // of a box of B: the first of SHARE that this block loads
        const uint32_t b_addr = memory.b_tile_addr + stage * C::B_BYTES + row * ROW_BYTES;
#pragma unroll
        for (int box = 0; box < BOXES_B; ++box) {
          const int b_col = place.col + box * BOX;
          if constexpr (C::CLUSTER > 1) {
            gg::ptx::tma_load_3d_multicast(b_addr + box * BOX_BYTES, &maps.b, b_col, missing + row, stop,
                                           full_addr, (1 << C::CLUSTER) - 1);
          } else {
            gg::ptx::tma_load_3d(b_addr + box * BOX_BYTES, &maps.b, b_col, missing, stop, full_addr);
          }
        }
      }
      __syncwarp();  // lanes go on together: right without it too, as they meet at the next elect
    }
    // [/load]
  }
}

}  // namespace chapter
