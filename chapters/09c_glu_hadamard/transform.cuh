// SPDX-License-Identifier: MIT
//
// Y = X W^T of 16 outputs at a time. The tensor cores read X from tensor memory, where storing warps have put
// it, and leave Y beside it: both in 64 unshared columns of the half, one part after the other, once all its
// warps have read their sums. The transforming warp waits for `x_ready`. Commits signal `y_ready`
// of both blocks.

#pragma once

#include "columns.cuh"
#include "common/kernel/ptx/cluster.cuh"
#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/tcgen05.cuh"
#include "common/kernel/ptx/tma.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "config.cuh"
#include "ring.cuh"
#include "schedule.cuh"

namespace chapter {

// A storing warp has one for all its tiles, since it keeps a phase. It sends X of a part, and
// then receives Y.
class Transform {
 public:
  // `half`: of the tile, this warp's.
  __device__ Transform(const Memory& memory, int half)
      : x_ready_addr_(gg::ptx::mapa(memory.x_ready_addr + half * 8, 0)),
        y_ready_addr_(memory.y_ready_addr + half * 8) {}

  // Who: a whole warp, each lane with its row. `place`: columns of this warp's lanes that nobody else uses.
  // [send_x]
  __device__ void send_x(gg::ptx::TmemAddr place, const uint32_t (&x)[PART / 2]) {
    gg::ptx::tcgen05_st_32x32b_x16(place, x);
    gg::ptx::tcgen05_wait_st();
    gg::ptx::tcgen05_fence_before();
    if (gg::ptx::elect()) gg::ptx::mbarrier_arrive(x_ready_addr_);
    __syncwarp();
  }
  // [/send_x]

  // Who: a whole warp, after `send_x`.
  // [receive_y]
  __device__ void receive_y(gg::ptx::TmemAddr place, float (&y)[PART]) {
    uint32_t bits[PART];
    gg::ptx::mbarrier_wait_parity(y_ready_addr_, y_.phase);
    y_.next();
    gg::ptx::tcgen05_fence_after();
    gg::ptx::tcgen05_ld_32x32b_x32(bits, gg::ptx::tmem_at(place, 0, X_COLUMNS));
    gg::ptx::tcgen05_wait_ld(bits);
#pragma unroll
    for (int i = 0; i < PART; ++i) y[i] = __uint_as_float(bits[i]);
  }
  // [/receive_y]

 private:
  gg::ptx::ClusterAddr x_ready_addr_;  // rank 0's
  uint32_t y_ready_addr_;
  Ring<1> y_;
};

// One thread of a pair starts the products of all parts, in turns for the halves of the tile. Without W it
// walks through the tiles all the same: the mailbox counts this warp among its readers (kernel.cuh).
template <class C>
__device__ void transform_tiles(const Memory& memory, Tiles<C> tiles, int n, bool with_w) {
  constexpr uint32_t IDESC = gg::ptx::tcgen05_idesc_f16<bf16, BM, W_SIZE>();
  const bool elected = gg::ptx::elect();
  Ring<1> x_ready[HALVES];
  Ring<ACCUMULATORS> accumulator;
  for (Tile tile; tiles.next(tile); accumulator.next()) {
    for (int i = 0; elected && with_w && i < BN / (2 * PART); ++i) {
      const int half = i % HALVES;
      const Columns columns(half, min(BN, n - tile.col0), accumulator.stage);
      if (!columns.has(i / HALVES)) continue;
      // [transform]
      gg::ptx::mbarrier_wait_parity(memory.x_ready_addr + half * 8, x_ready[half].phase);
      x_ready[half].next();
      gg::ptx::tcgen05_fence_after();
      const int column = accumulator.stage * (BN - SHARED_COLUMNS) + columns.unshared();
      const auto x = gg::ptx::tmem_at(memory.sums, 0, column), y = gg::ptx::tmem_at(x, 0, X_COLUMNS);
      for (int c = 0; c < PART; c += W_SIZE) {  // two bf16 in a column of X
        gg::ptx::tcgen05_mma_f16<CTA_GROUP>(gg::ptx::tmem_at(y, 0, c), gg::ptx::tmem_at(x, 0, c / 2),
                                            memory.w, IDESC, false);
      }
      gg::ptx::tcgen05_commit_multicast<CTA_GROUP>(memory.y_ready_addr + half * 8, PAIR_MASK);
      // [/transform]
    }
  }
}

// Who: all threads of a block. Does: copies its rows of W to shared memory, the first 16 bytes of each row,
//   then the others. Before the products: a cluster barrier.
// [w]
__device__ inline gg::ptx::Tcgen05Desc load_w(uint4 (&w_tile)[2][W_ROWS], const bf16* w) {
  const int half = int(threadIdx.x) / W_ROWS, row = int(threadIdx.x) % W_ROWS, rank = block_rank();
  if (w && half < 2) {
    w_tile[half][row] = reinterpret_cast<const uint4*>(w + (rank * W_ROWS + row) * W_SIZE)[half];
    gg::ptx::fence_proxy_async();
  }
  return gg::ptx::tcgen05_desc_k_major(gg::ptx::shared_addr(w_tile), W_ROWS * 16, 8 * 16);
}
// [/w]

}  // namespace chapter
