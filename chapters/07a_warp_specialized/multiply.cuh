// SPDX-License-Identifier: MIT
//
// A consumer is a warpgroup that multiplies 64 rows or half of the columns of each tile, and stores
// them. It waits for `full` and arrives at `empty`, each of its four warps once for every slice.

#pragma once

#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "common/kernel/ptx/wgmma.cuh"
#include "config.cuh"
#include "ring.cuh"
#include "store.cuh"

namespace chapter {

// Who: a consumer's four warps. `tiles`: the number of all groups' tiles. Sums stay in registers,
// so all of it is inlined.
template <class C, class T>
__device__ __forceinline__ void multiply_tiles(T* d, const Memory& memory, int tiles, int n, int k) {
  const int consumer = gg::ptx::uniform(int(threadIdx.x) / 128), k_tiles = (k + BK - 1) / BK;
  const int row_in_tile = C::BY_ROWS ? consumer * 64 : 0;  // where its sums begin
  const int col_in_tile = C::BY_ROWS ? 0 : consumer * C::SUM_COLUMNS;
  const gg::ptx::TileLayout layout = {.swizzle = gg::ptx::Swizzle::b128, .stride_bytes = 8 * ROW_BYTES};
  // Both start where a swizzle's pattern of eight rows does: 64 and SUM_COLUMNS are multiples of 8.
  const auto a_desc = gg::ptx::wgmma_desc(memory.a_tile_addr + row_in_tile * ROW_BYTES, layout);
  const auto b_desc = gg::ptx::wgmma_desc(memory.b_tile_addr + col_in_tile * ROW_BYTES, layout);
  // [consumer]
  // Says that this warp needs neither slice nor header of the stage any more. To be called after a
  // wait for the slice's products. The warp's lanes started them together, each after it had copied
  // the header: so one lane arrives for all. That is our conclusion, PTX does not promise it.
  const auto release = [&](int stage) {
    if (gg::ptx::elect()) gg::ptx::mbarrier_arrive(memory.empty_addr + stage * 8);
  };
  Ring<C::STAGES> ring;
  // The numbers that the loading warp's Tiles goes through: both sides must count the same slices.
  for (int index = int(blockIdx.x); index < tiles; index += int(gridDim.x)) {
    // The tile's first slice has landed, and the header before it. The harness refuses K = 0.
    gg::ptx::mbarrier_wait_parity(memory.full_addr + ring.stage * 8, ring.phase);
    const Tile tile = memory.headers[ring.stage];  // before any product: `release` relies on it
    // [/consumer]
    float sums[C::SUM_COLUMNS / 2];
    // [multiply]
    int last = 0;  // stage of the slice before, whose products may still run
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile, ring.next()) {
      const int stage = ring.stage;
      gg::ptx::mbarrier_wait_parity(memory.full_addr + stage * 8, ring.phase);  // it has landed
      const auto a = gg::ptx::wgmma_advance(a_desc, stage * C::A_BYTES);
      const auto b = gg::ptx::wgmma_advance(b_desc, stage * C::B_BYTES);
      gg::ptx::wgmma_fence(sums);
#pragma unroll
      for (int kk = 0; kk < BK; kk += 16) {
        gg::ptx::wgmma<T>(sums, gg::ptx::wgmma_advance(a, kk * 2), gg::ptx::wgmma_advance(b, kk * 2),
                          k_tile > 0 || kk > 0);
      }
      gg::ptx::wgmma_commit_group();
      if (k_tile > 0) {
        gg::ptx::wgmma_wait_group<1>();  // the slice before is multiplied, while this one goes on
        release(last);
      }
      last = stage;
    }
    gg::ptx::wgmma_wait_group<0>(sums);  // all slices are multiplied
    release(last);
    // [/multiply]
    store_sums<C>(sums, d, tile, row_in_tile, col_in_tile, n);
  }
}

}  // namespace chapter
