// SPDX-License-Identifier: MIT
//
// Eight warps read sums from tensor memory, two parts of 32 columns at a time, for the epilogue.
// Warps w and w + 4 have the same rows; `Columns` gives half of the tile's columns to each.
// They wait for their block's `ready` and signal their leader's `taken`.

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
  Output output(memory.output + warp * OUTPUT_BYTES, operands.d_format);
  for (Tile tile; tiles.next(tile); accumulator.next()) {
    // Columns to visit: D's, and those from N on whose codes share a word with D's.
    const int cols = min(BN, (n - tile.col0 + WORD_COLUMNS - 1) / WORD_COLUMNS * WORD_COLUMNS);
    // So `cols` is whole words, as epilogue.cuh counts their parts, and whole reads, as `Columns` wants.
    static_assert(WORD_COLUMNS % READ_COLUMNS == 0);
    const Columns columns(half, cols, accumulator.stage);
    Epilogue epilogue(maps, operands, output, tile, tile.row0 + rank * BLOCK_ROWS + row, n,
                      tile.col0 + columns.at(0));
    gg::ptx::mbarrier_wait_parity(memory.ready_addr + accumulator.stage * 8, accumulator.phase);
    gg::ptx::tcgen05_fence_after();  // the tile's sums are complete
    // [taken]
    const auto arrive_taken = [&] {
      gg::ptx::tcgen05_fence_before();  // orders this warp's loads so far before the arrival
      if (gg::ptx::elect()) gg::ptx::mbarrier_arrive(gg::ptx::mapa(memory.taken_addr, C::leader()));
      __syncwarp();  // more tcgen05.ld may follow, which want all lanes together
    };
    bool arrived = false;  // for this tile: each storing warp arrives once, after its wait for `ready`
    // A read is two loads, READ_COLUMNS columns together: as far as `Columns::at` goes from read to
    // read, and enough for all shared columns, as config.cuh asserts.
    for (int i = 0; columns.has(i); ++i) {
      uint32_t parts[2][PART];  // of the row
      // An accumulator begins where multiply.cuh puts the tile's sums.
      const int column = accumulator.stage * ACCUMULATOR_STEP + columns.at(i);  // of tensor memory
      const auto sums = gg::ptx::tmem_at(memory.sums, row / 32 * 32, column);
      gg::ptx::tcgen05_ld_32x32b_x32(parts[0], sums);
      gg::ptx::tcgen05_ld_32x32b_x32(parts[1], gg::ptx::tmem_at(sums, 0, PART));
      gg::ptx::tcgen05_wait_ld(parts[0], parts[1]);
      if (!arrived) arrive_taken();  // shared columns, if this warp has any, have been read now
      arrived = true;
      const int col = tile.col0 + columns.at(i);  // of D
      // The last argument is the column of the next call, whose bias `apply` starts to load.
      epilogue.apply(parts[0], col, col + PART);
      epilogue.apply(parts[1], col + PART, tile.col0 + columns.at(i + 1));
    }
    if (!arrived) arrive_taken();  // without columns too: `taken` counts every storing warp
    // [/taken]
    epilogue.finish();
  }
  output.finish();
}

}  // namespace chapter
