// SPDX-License-Identifier: MIT
//
// Y = X W^T of 16 outputs at a time. The tensor cores read X from tensor memory, where storing warps have put
// it, and leave Y beside it: both where the part's sums were.
// The transforming warp waits for `x_ready`. Commits signal `y_ready` of both blocks.

#pragma once

#include "columns.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/shared.cuh"
#include "common/ptx/tcgen05.cuh"
#include "common/ptx/tma.cuh"
#include "common/ptx/warp.cuh"
#include "config.cuh"
#include "ring.cuh"
#include "schedule.cuh"

namespace chapter {

// A storing warp has one for all its tiles, since it keeps the barriers' phases. It sends X of a part, and
// receives Y. `part`: of the tile, 0 to PARTS - 1 by its columns.
class Transform {
 public:
  __device__ explicit Transform(const Memory& memory) : memory_(memory) {}

  // Who: a whole warp, each lane with its row. `place`: where sums of the part were, in this warp's lanes.
  // [send_x]
  __device__ void send_x(int part, gg::ptx::TmemAddr place, const uint32_t (&x)[PART / 2]) {
    gg::ptx::tcgen05_st_32x32b_x16(place, x);
    gg::ptx::tcgen05_wait_st();
    gg::ptx::tcgen05_fence_before();
    if (gg::ptx::elect()) {
      gg::ptx::mbarrier_arrive(gg::ptx::mapa(memory_.x_ready_addr + part * 8, 0));
    }
    __syncwarp();
  }
  // [/send_x]

  // Who: a whole warp, behind `send_x` of the same part.
  // [receive_y]
  __device__ void receive_y(int part, gg::ptx::TmemAddr place, float (&y)[PART]) {
    uint32_t bits[PART];
    gg::ptx::mbarrier_wait_parity(memory_.y_ready_addr + part * 8, phases_ >> part & 1);
    phases_ ^= 1u << part;
    gg::ptx::tcgen05_fence_after();
    gg::ptx::tcgen05_ld_32x32b_x32(bits, gg::ptx::tmem_at(place, 0, X_COLUMNS));
    gg::ptx::tcgen05_wait_ld(bits);
#pragma unroll
    for (int i = 0; i < PART; ++i) y[i] = __uint_as_float(bits[i]);
  }
  // [/receive_y]

 private:
  const Memory& memory_;
  uint32_t phases_ = 0;  // bit p: of part p's `y_ready`
};

// One thread of a pair starts the products of all parts: the first of each half of the tile, then the others.
// Without W it walks through the tiles all the same: the mailbox counts this warp among its readers
// (kernel.cuh).
template <class C>
__device__ void transform_tiles(const Memory& memory, Tiles<C> tiles, int n, bool with_w) {
  constexpr uint32_t IDESC = gg::ptx::tcgen05_idesc_f16<bf16, BM, W_SIZE>();
  constexpr uint16_t PAIR = (1 << CTA_GROUP) - 1;
  const bool elected = gg::ptx::elect();
  uint32_t phases = 0;  // bit p: of part p's `x_ready`
  Ring<ACCUMULATORS> accumulator;
  for (Tile tile; tiles.next(tile); accumulator.next()) {
    for (int i = 0; elected && with_w && i < PARTS; ++i) {
      const Columns columns(i % 2, min(BN, n - tile.col0), accumulator.stage);
      if (!columns.has(i / 2)) continue;
      const int c0 = columns.at(i / 2), part = c0 / (2 * PART);
      // [transform]
      gg::ptx::mbarrier_wait_parity(memory.x_ready_addr + part * 8, phases >> part & 1);
      phases ^= 1u << part;
      gg::ptx::tcgen05_fence_after();
      const auto x = gg::ptx::tmem_at(memory.sums, 0, accumulator.stage * (BN - SHARED_COLUMNS) + c0);
      const auto y = gg::ptx::tmem_at(x, 0, X_COLUMNS);
      for (int c = 0; c < PART; c += W_SIZE) {  // two bf16 in a column of X
        gg::ptx::tcgen05_mma_f16<CTA_GROUP>(gg::ptx::tmem_at(y, 0, c), gg::ptx::tmem_at(x, 0, c / 2),
                                            memory.w, IDESC, false);
      }
      gg::ptx::tcgen05_commit_multicast<CTA_GROUP>(memory.y_ready_addr + part * 8, PAIR);
      // [/transform]
    }
  }
}

// Who: all threads of a block. Does: copies its rows of W to shared memory, the first 16 bytes of each row,
//   then the others. Before the products: a cluster barrier.
// [w]
__device__ inline gg::ptx::Tcgen05Desc load_w(uint4 (&w_tile)[2][W_ROWS], const bf16* w) {
  const int half = int(threadIdx.x) / W_ROWS, row = int(threadIdx.x) % W_ROWS, rank = int(blockIdx.x);
  if (w && half < 2) {
    w_tile[half][row] = reinterpret_cast<const uint4*>(w + (rank * W_ROWS + row) * W_SIZE)[half];
    gg::ptx::fence_proxy_async();
  }
  return gg::ptx::tcgen05_desc_k_major(gg::ptx::shared_addr(w_tile), W_ROWS * 16, 8 * 16);
}
// [/w]

}  // namespace chapter
