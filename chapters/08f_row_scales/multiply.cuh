// SPDX-License-Identifier: MIT
//
// One thread of a pair of blocks multiplies for both.
// It waits for `full` and `taken`. Commits signal `empty` and `ready` of both blocks.

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
  constexpr uint32_t IDESC = gg::ptx::tcgen05_idesc_block_scale<typename C::T, typename C::Scale, BM, BN>();
  const bool elected = gg::ptx::elect();
  const int k_tiles = (k + C::BK - 1) / C::BK;
  Ring<C::STAGES> ring;
  Ring<ACCUMULATORS> accumulator;
  for (Tile tile; tiles.next(tile);) {
    // From here on one lane, which alone counts in `ring` and `accumulator`. No instruction of the
    // whole warp may stand below: the others wait in the next `tiles.next`, or at the
    // __syncwarp in kernel.cuh.
    if (!elected) continue;
    // The sums that were here have been read, in both blocks. The fence after the wait for `full`, which
    // follows, serves this wait too.
    gg::ptx::mbarrier_wait_parity(memory.taken_addr + accumulator.stage * 8, accumulator.phase ^ 1);
    const gg::ptx::TmemAddr sums = gg::ptx::tmem_at(memory.sums, 0, accumulator.stage * BN);
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile, ring.next()) {
      const int stage = ring.stage;
      gg::ptx::mbarrier_wait_parity(memory.full_addr + stage * 8, ring.phase);  // landed in both blocks
      gg::ptx::tcgen05_fence_after();
      const auto a = gg::ptx::tcgen05_desc_k_major_128b(memory.a_tile_addr + stage * C::A_BYTES);
      const auto b = gg::ptx::tcgen05_desc_k_major_128b(memory.b_tile_addr + stage * C::B_BYTES);
      // [scales]
      // All slices use the same columns: these copies must execute after the products of the slice
      // before, which read them. This is assumed: PTX does not promise it.
      const auto sfa_desc = gg::ptx::tcgen05_desc_scales(memory.sfa_tile_addr + stage * C::SFA_BYTES);
      const auto sfb_desc = gg::ptx::tcgen05_desc_scales(memory.sfb_tile_addr + stage * C::SFB_BYTES);
      for (int atom = 0; atom < C::ATOMS; ++atom) {
        gg::ptx::tcgen05_cp_32x128b_warpx4<CTA_GROUP>(gg::ptx::tmem_at(memory.sfa, 0, atom * ATOM_COLUMNS),
                                                      gg::ptx::tcgen05_advance(sfa_desc, atom * ATOM_BYTES));
        for (int i = 0; i < BN / ATOM_ROWS; ++i) {  // 128 columns of B each
          // `from`: along K first, as TMA brings them. `to`: along B's columns first, as products
          // find them: column c's scales are c / 32 columns after the address that a product gets.
          const int from = i * C::ATOMS + atom, to = atom * (BN / ATOM_ROWS) + i;
          gg::ptx::tcgen05_cp_32x128b_warpx4<CTA_GROUP>(
              gg::ptx::tmem_at(memory.sfb, 0, to * ATOM_COLUMNS),
              gg::ptx::tcgen05_advance(sfb_desc, from * ATOM_BYTES));
        }
      }
      // [/scales]
      // [multiply]
      // A product (IDESC: BM by BN) is both blocks': each one's rows of A times all columns of B.
      // PTX promises that these products execute after the copies. A product's scales begin with
      // number `first` of the slice: in atom `atom`, byte `id` of a row's four. They end in the same
      // atom: config.cuh asserts it. The addresses are those of the copies of `atom` with i = 0.
      for (int product = 0; product < C::BK / C::PRODUCT_K; ++product) {  // uses 1, 2 or 4 scales of a row
        const int first = product * C::PRODUCT_K / C::V, atom = first / ATOM_BLOCKS, id = first % ATOM_BLOCKS;
        gg::ptx::tcgen05_mma_block_scale<typename C::T, C::V, CTA_GROUP>(
            sums, gg::ptx::tcgen05_advance(a, product * PRODUCT_BYTES),
            gg::ptx::tcgen05_advance(b, product * PRODUCT_BYTES), IDESC | gg::ptx::tcgen05_scale_ids(id, id),
            gg::ptx::tmem_at(memory.sfa, 0, atom * ATOM_COLUMNS),
            gg::ptx::tmem_at(memory.sfb, 0, atom * (BN / ATOM_ROWS) * ATOM_COLUMNS),
            k_tile > 0 || product > 0);
      }
      // [/multiply]
      // [commit]
      // Arrives in both blocks when the copies and products so far are done: the slice is free.
      gg::ptx::tcgen05_commit_multicast<CTA_GROUP>(memory.empty_addr + stage * 8, PAIR_MASK);
      // [/commit]
    }
    // [ready]
    // Likewise: the tile's sums are complete.
    gg::ptx::tcgen05_commit_multicast<CTA_GROUP>(memory.ready_addr + accumulator.stage * 8, PAIR_MASK);
    // [/ready]
    accumulator.next();
  }
}

}  // namespace chapter
