// SPDX-License-Identifier: MIT
//
// Four warps read sums from tensor memory, a part of 32 columns at a time, for the epilogue.
// They wait for their block's `ready` and signal rank 0's `taken`.

#pragma once

#include "common/kernel/ptx/cluster.cuh"
#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/tcgen05.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "config.cuh"
#include "epilogue.cuh"
#include "ring.cuh"
#include "schedule.cuh"

namespace chapter {

template <class C>
__device__ void store_tiles(const Operands& operands, const Memory& memory, Tiles<C> tiles, int n) {
  const int warp = int(threadIdx.x) / 32, rank = block_rank();
  const int r = rank * BLOCK_ROWS + int(threadIdx.x);  // this thread's row of the tile
  Ring<ACCUMULATORS> accumulator;
  for (Tile tile; tiles.next(tile); accumulator.next()) {
    Epilogue epilogue(operands, tile, tile.row0 + r, n);
    const int cols = min(BN, n - tile.col0);  // so many columns of the tile are D's
    gg::ptx::mbarrier_wait_parity(memory.ready_addr + accumulator.stage * 8, accumulator.phase);
    gg::ptx::tcgen05_fence_after();  // the tile's sums are complete
    // All parts below `cols`, from the left: `apply` relies on it. A tile begins before column N,
    // so it has a last part, with which each warp arrives.
    for (int c0 = 0; c0 < cols; c0 += PART) {
      uint32_t part[PART];  // of the row
      // [taken]
      const int column = accumulator.stage * BN + c0;  // of tensor memory
      gg::ptx::tcgen05_ld_32x32b_x32(part, gg::ptx::tmem_at(memory.sums, warp * 32, column));
      gg::ptx::tcgen05_wait_ld(part);
      // With the last part in registers this warp reads no tensor memory before the next `ready`: from its
      // arrival on, products may overwrite the sums.
      if (c0 + PART >= cols) {
        gg::ptx::tcgen05_fence_before();
        if (gg::ptx::elect()) {
          gg::ptx::mbarrier_arrive(gg::ptx::mapa(memory.taken_addr + accumulator.stage * 8, 0));
        }
      }
      // [/taken]
      epilogue.apply(part, tile.col0 + c0);  // of registers only: the sums may be the next tile's by now
    }
    epilogue.finish();
  }
}

}  // namespace chapter
