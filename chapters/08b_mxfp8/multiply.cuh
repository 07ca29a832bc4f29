// SPDX-License-Identifier: MIT
//
// One thread multiplies for the whole block: it starts products, and the tensor core says when they are done.
// It waits for `full` and `taken`. Commits signal `empty` and `ready`.

#pragma once

#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/tcgen05.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "config.cuh"
#include "ring.cuh"
#include "schedule.cuh"

namespace chapter {

template <class C>
__device__ void multiply_tiles(const Memory& memory, Tiles<C> tiles, int k) {
  constexpr uint32_t IDESC = gg::ptx::tcgen05_idesc_mxf8f6f4<typename C::T, BM, C::BN>();
  const bool elected = gg::ptx::elect();
  const int k_tiles = (k + BK - 1) / BK;
  Ring<C::STAGES> ring;
  Ring<C::ACCUMULATORS> accumulator;
  for (Tile tile; tiles.next(tile);) {
    // From here on one lane, which alone counts in `ring` and `accumulator`. No instruction of the
    // whole warp may stand below: the others wait in the next `tiles.next`, or at the
    // __syncwarp in kernel.cuh.
    if (!elected) continue;
    // The sums that were here have been read. The fence after the wait for `full`, which
    // follows, serves this wait too.
    gg::ptx::mbarrier_wait_parity(memory.taken_addr + accumulator.stage * 8, accumulator.phase ^ 1);
    const gg::ptx::TmemAddr sums = gg::ptx::tmem_at(memory.sums, 0, accumulator.stage * C::BN);
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile, ring.next()) {
      const int stage = ring.stage;
      gg::ptx::mbarrier_wait_parity(memory.full_addr + stage * 8, ring.phase);  // the slice has landed
      gg::ptx::tcgen05_fence_after();
      const auto a = gg::ptx::tcgen05_desc_k_major_128b(memory.a_tile_addr + stage * C::A_BYTES);
      const auto b = gg::ptx::tcgen05_desc_k_major_128b(memory.b_tile_addr + stage * C::B_BYTES);
      // [scales]
      // All slices use the same columns: these copies must execute after the products of the slice
      // before, which read them. This is assumed: PTX does not promise it.
      const auto sfa_desc = gg::ptx::tcgen05_desc_scales(memory.sfa_tile_addr + stage * C::SFA_BYTES);
      const auto sfb_desc = gg::ptx::tcgen05_desc_scales(memory.sfb_tile_addr + stage * C::SFB_BYTES);
      gg::ptx::tcgen05_cp_32x128b_warpx4(memory.sfa, sfa_desc);
      for (int i = 0; i < C::BN / ATOM_ROWS; ++i) {  // as many atoms as SFB's box has
        gg::ptx::tcgen05_cp_32x128b_warpx4(gg::ptx::tmem_at(memory.sfb, 0, i * ATOM_COLUMNS),
                                           gg::ptx::tcgen05_advance(sfb_desc, i * ATOM_BYTES));
      }
      // [/scales]
      // [multiply]
      // PTX promises that these products execute after the copies. Each is one scale block deep and
      // takes byte k_block of the four of each row of A and of B.
      for (int k_block = 0; k_block < BK / PRODUCT_K; ++k_block) {
        gg::ptx::tcgen05_mma_mxf8f6f4(sums, gg::ptx::tcgen05_advance(a, k_block * PRODUCT_BYTES),
                                      gg::ptx::tcgen05_advance(b, k_block * PRODUCT_BYTES),
                                      IDESC | gg::ptx::tcgen05_scale_ids(k_block, k_block), memory.sfa,
                                      memory.sfb, k_tile > 0 || k_block > 0);
      }
      // [/multiply]
      gg::ptx::tcgen05_commit(memory.empty_addr + stage * 8);  // arrives when products and copies are done
    }
    gg::ptx::tcgen05_commit(memory.ready_addr + accumulator.stage * 8);  // .. when the tile's are done
    accumulator.next();
  }
}

}  // namespace chapter
