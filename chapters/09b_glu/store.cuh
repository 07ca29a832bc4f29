// SPDX-License-Identifier: MIT
//
// Eight warps read sums from tensor memory, 32 gates and their 32 ups at a time, for the epilogue: warps w
// and w + 4 have the same rows, and half of the columns each. They wait for their block's `ready` and signal
// rank 0's `taken`.

#pragma once

#include "columns.cuh"
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
__device__ void store_tiles(const Maps& maps, const Operands& operands, const Memory& memory, Tiles<C> tiles,
                            int n) {
  const int warp = int(threadIdx.x) / 32, rank = block_rank();
  // The row of the block is also the lane of tensor memory: warp w has lanes 32 * (w % 4) on. As a
  // row has two warps (config.cuh, STORE_WARPS), a tile has two halves, 0 and 1, of BN / 2 columns.
  const int row = int(threadIdx.x) % BLOCK_ROWS, half = warp / (STORE_WARPS / 2);
  Ring<ACCUMULATORS> accumulator;
  // Boxes fit D's type. A wider type of C would be written past them, so launch.cuh refuses it.
  Output output(memory.output + warp * OUTPUT_BYTES, operands.d_format);
  for (Tile tile; tiles.next(tile); accumulator.next()) {
    // Whole reads, by config.cuh (BN) and launch.cuh (N): so each begins with gates, and none goes past N.
    const int cols = min(BN, n - tile.col0);
    const Columns columns(half, cols, accumulator.stage);
    Epilogue epilogue(maps, operands, output, tile, tile.row0 + rank * BLOCK_ROWS + row, n,
                      tile.col0 + columns.at(0));
    gg::ptx::mbarrier_wait_parity(memory.ready_addr + accumulator.stage * 8, accumulator.phase);
    gg::ptx::tcgen05_fence_after();  // the tile's sums are complete
    // [taken]
    const auto arrive_taken = [&] {
      gg::ptx::tcgen05_fence_before();  // orders this warp's loads so far before the arrival
      if (gg::ptx::elect()) gg::ptx::mbarrier_arrive(gg::ptx::mapa(memory.taken_addr, 0));
      __syncwarp();  // more tcgen05.ld may follow, which want all lanes together
    };
    bool arrived = false;  // for this tile: each storing warp arrives once, after its wait for `ready`
    // A read is two loads, READ_COLUMNS columns together: as far as `Columns::at` goes from read to
    // read, and enough for all shared columns, as config.cuh asserts.
    for (int i = 0; columns.has(i); ++i) {
      // [gates]
      uint32_t gate_sums[PART], up_sums[PART];  // of this row
      // An accumulator begins where multiply.cuh puts the tile's sums.
      const int column = accumulator.stage * ACCUMULATOR_STEP + columns.at(i);  // of tensor memory
      const auto sums = gg::ptx::tmem_at(memory.sums, row / 32 * 32, column);
      gg::ptx::tcgen05_ld_32x32b_x32(gate_sums, sums);
      gg::ptx::tcgen05_ld_32x32b_x32(up_sums, gg::ptx::tmem_at(sums, 0, PART));
      gg::ptx::tcgen05_wait_ld(gate_sums, up_sums);
      if (!arrived) arrive_taken();  // shared columns, if this warp has any, have been read now
      arrived = true;
      // The last argument: where read i + 1 begins, whose biases `apply` starts to load.
      epilogue.apply(gate_sums, up_sums, tile.col0 + columns.at(i), tile.col0 + columns.at(i + 1));
      // [/gates]
    }
    if (!arrived) arrive_taken();  // without columns too: `taken` counts every storing warp
    // [/taken]
    epilogue.finish();
  }
  output.finish();
}

}  // namespace chapter
