// SPDX-License-Identifier: MIT
//
// Four warps bring sums from tensor memory to D. If there are two accumulators, the next tile is
// multiplied meanwhile. The warps wait for `ready` and signal `taken`.

#pragma once

#include "common/kernel/ptx/cvt.cuh"
#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/tcgen05.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "config.cuh"
#include "ring.cuh"
#include "schedule.cuh"

namespace chapter {

// 16 bytes of D from the sums of as many columns as they hold.
template <class D>
__device__ uint4 pack(const uint32_t* sums) {
  static_assert(sizeof(D) == 2);  // two to a word
  uint4 words;
  uint32_t* word = &words.x;
  for (int i = 0; i < 4; ++i)
    word[i] = gg::ptx::cvt_rn_x2<D>(__uint_as_float(sums[2 * i]), __uint_as_float(sums[2 * i + 1]));
  return words;
}

template <class C>
__device__ void store_tiles(typename C::D* d, const Memory& memory, Tiles<C> tiles, int n) {
  using D = typename C::D;
  const int warp = int(threadIdx.x) / 32;
  const int r = int(threadIdx.x);  // this thread's row, and its lane of tensor memory: warps 0 to 3
  Ring<C::ACCUMULATORS> accumulator;
  for (Tile tile; tiles.next(tile); accumulator.next()) {
    D* row = d + int64_t(tile.row0 + r) * n;
    gg::ptx::mbarrier_wait_parity(memory.ready_addr + accumulator.stage * 8, accumulator.phase);
    gg::ptx::tcgen05_fence_after();  // the tile's sums are complete
    for (int c0 = 0; c0 < C::BN; c0 += 32) {
      uint32_t part[32];                                  // of the row
      const int column = accumulator.stage * C::BN + c0;  // of tensor memory
      gg::ptx::tcgen05_ld_32x32b_x32(part, gg::ptx::tmem_at(memory.sums, warp * 32, column));
      gg::ptx::tcgen05_wait_ld(part);
#pragma unroll
      for (int c = 0; c < 32; c += 16 / int(sizeof(D))) {
        const int col = tile.col0 + c0 + c;
        // N is a multiple of 8, so these 16 bytes are all inside D or all outside. Groups are padded,
        // so every row is the group's.
        if (col < n) *reinterpret_cast<uint4*>(row + col) = pack<D>(part + c);
      }
    }
    gg::ptx::tcgen05_fence_before();
    // Each lane has waited for its loads, and elect waits for all lanes: one may arrive for the warp.
    if (gg::ptx::elect()) {
      gg::ptx::mbarrier_arrive(memory.taken_addr + accumulator.stage * 8);
    }
  }
}

}  // namespace chapter
