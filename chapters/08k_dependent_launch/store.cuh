// SPDX-License-Identifier: MIT
//
// Four warps read sums from tensor memory, two parts of 32 columns at a time, for the epilogue.
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
__device__ void store_tiles(const Maps& maps, const Operands& operands, const Memory& memory, Tiles<C> tiles,
                            int n) {
  const int warp = int(threadIdx.x) / 32, rank = block_rank();
  const int r = rank * BLOCK_ROWS + int(threadIdx.x);  // this thread's row of the tile
  Ring<ACCUMULATORS> accumulator;
  Output output(memory.output + warp * OUTPUT_BYTES, operands.d_format);
  for (Tile tile; tiles.next(tile); accumulator.next()) {
    // Columns to visit: D's, and those from N on whose codes share a word with D's.
    const int cols = min(BN, (n - tile.col0 + WORD_COLUMNS - 1) / WORD_COLUMNS * WORD_COLUMNS);
    // So `cols` is whole words, as epilogue.cuh counts their parts, and whole reads. With one part
    // `first` would be negative in accumulator 0, and no warp would arrive at `taken`.
    static_assert(WORD_COLUMNS % READ_COLUMNS == 0);
    // [order]
    // Read 0, of READ_COLUMNS columns, has those to be visited that the next tile's products overwrite:
    // accumulator 0 has them at its end, accumulator 1 at its beginning.
    const bool down = accumulator.stage == 0;
    const int first = down ? cols - READ_COLUMNS : 0, step = down ? -READ_COLUMNS : READ_COLUMNS;
    // [/order]
    Epilogue epilogue(maps, operands, output, tile, tile.row0 + r, n, tile.col0 + first);
    gg::ptx::mbarrier_wait_parity(memory.ready_addr + accumulator.stage * 8, accumulator.phase);
    gg::ptx::tcgen05_fence_after();  // the tile's sums are complete
    // Downwards the loop ends below 0, upwards at `cols`. A read is two loads and two calls of
    // `apply`, as wide as `first`, `step` and config.cuh's assertion on SHARED_COLUMNS have it.
    for (int c0 = first; c0 >= 0 && c0 < cols; c0 += step) {
      uint32_t parts[2][PART];  // of the row
      // An accumulator begins where multiply.cuh puts the tile's sums.
      const int column = accumulator.stage * ACCUMULATOR_STEP + c0;  // of tensor memory
      const auto sums = gg::ptx::tmem_at(memory.sums, warp * 32, column);
      gg::ptx::tcgen05_ld_32x32b_x32(parts[0], sums);
      gg::ptx::tcgen05_ld_32x32b_x32(parts[1], gg::ptx::tmem_at(sums, 0, PART));
      gg::ptx::tcgen05_wait_ld(parts[0], parts[1]);
      // [taken]
      // From here on this warp reads no shared column of this tile, and nothing of the one before.
      if (c0 == first) {
        gg::ptx::tcgen05_fence_before();
        if (gg::ptx::elect()) gg::ptx::mbarrier_arrive(gg::ptx::mapa(memory.taken_addr, 0));
        // More tcgen05.ld follow, which want all lanes together.
        __syncwarp();
      }
      // [/taken]
      const int col = tile.col0 + c0;
      // `apply` loads the bias of the next part ahead: its last argument is that part's column.
      epilogue.apply(parts[0], col, col + PART);
      epilogue.apply(parts[1], col + PART, col + step);
    }
    epilogue.finish();
  }
  output.finish();
}

}  // namespace chapter
