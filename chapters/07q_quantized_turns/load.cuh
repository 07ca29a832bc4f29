// SPDX-License-Identifier: MIT
//
// The loading warp goes through the slices of K of all of its block's tiles, whichever consumer has
// them, one tile after the other, as far ahead as there are stages for the slices. Of each
// slice it loads the block's columns of B into this block and its rows of A into all blocks side by
// side in N. It waits for `empty`. TMA's bytes signal `full`: of its own loads, and of the
// neighbours' rows of A. It begins with the guessed tile, before it knows whether the guess holds.

#pragma once

#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/tma.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "config.cuh"
#include "guess.cuh"
#include "ring.cuh"
#include "schedule.cuh"

namespace chapter {

// Who: the loading warp. It must count as many slices for a tile as multiply_tiles does: where one
// side counts a slice more, it waits for ever. A block of a cluster may have no columns of D, since
// N ends before them. It loads its rows of A all the same, for the others. TMA fills its B with
// zeros, and the store leaves its columns out.
// `n_rank`: of the block along N.
template <class C>
__device__ void load_tiles(const Maps<C>& maps, const Memory<C>& memory,
                           Mailbox<C::BLOCKS> (&mailboxes)[C::CONSUMERS], const Guess<C>& guess,
                           const gg::Offsets& offsets, int slices, int n_rank, int n) {
  const uint64_t evict_first = gg::ptx::evict_first_policy();
  // [load]
  const auto load = [&](const Tile& tile, int k_tile, int stage) {
    const int width = round_up(tile.rows, STEP);  // as many rows as multiply_tiles multiplies
    const int box_rows = width / C::CLUSTER;      // of the box that a_map has (launch.cuh)
    const int k0 = k_tile * BK, row0 = tile.row0 + n_rank * box_rows;
    const uint32_t full_addr = memory.full_addr + stage * 8;
    const uint32_t a_addr = memory.a_tile_addr + stage * C::A_BYTES + n_rank * box_rows * ROW_BYTES;
    const uint32_t b_addr = memory.b_tile_addr + stage * C::B_BYTES;
    const CUtensorMap& a_map = maps.a[width / STEP - 1];
    if (gg::ptx::elect()) {
      // CLUSTER boxes of A, one from each block, and this block's box of B. Bytes of another block may
      // have landed already. They count, and the phase cannot end before this arrival.
      gg::ptx::mbarrier_arrive_expect_tx(full_addr, width * ROW_BYTES + C::B_BYTES);
      if constexpr (C::CLUSTER > 1) {
        gg::ptx::tma_load_2d_multicast(a_addr, &a_map, k0, row0, full_addr, (1 << C::CLUSTER) - 1);
      } else if (n <= C::BN) {  // nobody reads A again, so that it need not stay in the L2
        gg::ptx::tma_load_2d(a_addr, &a_map, k0, row0, full_addr, evict_first);
      } else {
        gg::ptx::tma_load_2d(a_addr, &a_map, k0, row0, full_addr);
      }
      gg::ptx::tma_load_5d(b_addr, &maps.b, k0, 0, 0, tile.col0 / WARP_COLUMNS, tile.group, full_addr);
    }
    __syncwarp();  // lanes go on together: right without it too, as they meet at the next elect
  };
  // [/load]
  // [guessed]
  Ring<C::STAGES> ring;
  // No wait for `empty`: at most STAGES slices, so each gets a stage in which nothing was.
#pragma unroll 1
  for (int k_tile = 0; k_tile < guess.slices; ++k_tile, ring.next()) load(guess.tile, k_tile, ring.stage);
  const bool holds = guess.holds(offsets);
  TileReceiver<C> tiles(mailboxes, 0, 1, guess, holds);
  int k_tile = holds ? guess.slices : 0;  // the first tile's slices before it are under way
  Tile tile;
  for (bool more = tiles.first(tile); more; more = tiles.next(tile)) {
#pragma unroll 1
    for (; k_tile < slices; ++k_tile, ring.next()) {
      // In all blocks of the cluster what was here is multiplied, by the consumer that it was for,
      // or it was a wrong guess's and warp 0 has released it. In lap 0 nothing was (ring.cuh).
      gg::ptx::mbarrier_wait_parity(memory.empty_addr + ring.stage * 8, ring.phase ^ 1);
      load(tile, k_tile, ring.stage);
    }
    k_tile = 0;
  }
  // [/guessed]
}

}  // namespace chapter
