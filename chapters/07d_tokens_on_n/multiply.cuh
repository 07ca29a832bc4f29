// SPDX-License-Identifier: MIT
//
// A consumer is a warpgroup that multiplies 64 columns of each tile's D and stores them.
// It waits for `full` and signals `empty`. tiles.next() waits for the mailbox's `sent` and signals
// its `received`, in each of the four warps.

#pragma once

#include <type_traits>

#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "common/kernel/ptx/wgmma.cuh"
#include "config.cuh"
#include "ring.cuh"
#include "schedule.cuh"
#include "store.cuh"

namespace chapter {

// [widths]
// Calls f with the width of a tile that has 0 < rows <= MOST, as a std::integral_constant, because
// wgmma's N is part of the instruction.
template <int MOST, class F>
__device__ __forceinline__ void with_width_for(int rows, F& f) {
  if constexpr (MOST > STEP) {
    if (rows <= MOST - STEP) return with_width_for<MOST - STEP>(rows, f);
  }
  // Here MOST - STEP < rows <= MOST. For all of these round_up gives load_tiles MOST, too.
  static_assert(round_up(MOST - STEP + 1, STEP) == MOST && round_up(MOST, STEP) == MOST);
  f(std::integral_constant<int, MOST>());
}
// [/widths]

// Who: a consumer's four warps. Sums stay in registers only if all of it is inlined, do_tile and
// with_width_for too. Where one is not, `registers` is in local memory: `.local` in the PTX.
template <class C, class T>
__device__ __forceinline__ void multiply_tiles(T* d, const Memory& memory, TileReceiver tiles, int n, int k) {
  const int consumer = gg::ptx::uniform(int(threadIdx.x) / 128), k_tiles = (k + BK - 1) / BK;
  const gg::ptx::TileLayout layout = {.swizzle = gg::ptx::Swizzle::b128, .stride_bytes = 8 * ROW_BYTES};
  const auto a_desc = gg::ptx::wgmma_desc(memory.a_tile_addr, layout);
  const auto b_desc = gg::ptx::wgmma_desc(memory.b_tile_addr + consumer * 64 * ROW_BYTES, layout);
  // To be called after a wait for the products of the stage's slice. wgmma is one operation of four
  // warps. So we conclude: when the wait returns in one of them, all four have waited for `full`,
  // and none reads the stage any more. One thread arrives for all.
  const auto release = [&](int stage) {
    if (threadIdx.x % 128 == 0) gg::ptx::mbarrier_arrive(memory.empty_addr + stage * 8);
  };
  Ring<C::STAGES> ring;
  for (Tile tile; tiles.next(tile);) {
    // [multiply]
    // A thread's sums of the widest tile. `sums`, the first WIDTH / 2 of them, has the length that
    // selects wgmma's N. All indices are constants once all is inlined, so they are registers.
    float registers[C::BM / 2];
    const auto do_tile = [&]<int WIDTH>(std::integral_constant<int, WIDTH>) {
      static_assert(WIDTH <= C::BM);
      auto& sums = reinterpret_cast<float(&)[WIDTH / 2]>(registers);
      int last = 0;  // stage of the slice before, whose products may still run
#pragma unroll 1
      for (int k_tile = 0; k_tile < k_tiles; ++k_tile, ring.next()) {
        const int stage = ring.stage;
        gg::ptx::mbarrier_wait_parity(memory.full_addr + stage * 8, ring.phase);  // it has landed
        const auto a = gg::ptx::wgmma_advance(a_desc, stage * C::A_BYTES);
        const auto b = gg::ptx::wgmma_advance(b_desc, stage * C::B_BYTES);
        gg::ptx::wgmma_fence(sums);
#pragma unroll
        for (int kk = 0; kk < BK; kk += 16) {
          gg::ptx::wgmma<T>(sums, gg::ptx::wgmma_advance(b, kk * 2), gg::ptx::wgmma_advance(a, kk * 2),
                            k_tile > 0 || kk > 0);
        }
        // [/multiply]
        gg::ptx::wgmma_commit_group();
        if (k_tile > 0) {
          gg::ptx::wgmma_wait_group<1>();  // the slice before is multiplied, while this one goes on
          release(last);
        }
        last = stage;
      }
      gg::ptx::wgmma_wait_group<0>(sums);  // all slices are multiplied
      release(last);                       // there was one, for k > 0
      store_sums(sums, d, tile, consumer * 64, n);
    };
    with_width_for<C::BM>(tile.rows, do_tile);  // the same branch in all four warps, as wgmma wants
  }
}

}  // namespace chapter
