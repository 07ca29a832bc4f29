// SPDX-License-Identifier: MIT
//
// Y = X W^T of 16 outputs at a time. Each storing warp puts X into tensor memory, over sums that
// nobody needs any more. When all eight warps of its half have, products leave Y beside X. The next
// tile uses none of these columns; a half's parts use them one after the other.
// The transforming warp waits for `x_ready`; its commits signal `y_ready` of both blocks.

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

// How a storing warp gets a part transformed: it sends X, then it receives Y. It has one exchange
// for all its tiles, since the phase of `y_ready` goes on from tile to tile.
class Exchange {
 public:
  // `half`: of the tile's columns, this warp's.
  __device__ Exchange(const Memory& memory, int half)
      : x_ready_addr_(gg::ptx::mapa(memory.x_ready_addr + half * 8, 0)),
        y_ready_addr_(memory.y_ready_addr + half * 8) {}

  // Who: a whole warp, each lane with X of its row. `x_place`: Columns::x_in_tmem, in its lanes.
  // Before: this warp needs nothing any more of what lies there, nor in the columns of Y. Its loads
  //   of sums, and of the Y before, have been waited for; the fence here orders them before products.
  // After: when all eight warps of the half have called this, products write Y in all their lanes.
  // [send_x]
  __device__ void send_x(gg::ptx::TmemAddr x_place, const uint32_t (&x)[PART / 2]) {
    gg::ptx::tcgen05_st_32x32b_x16(x_place, x);
    gg::ptx::tcgen05_wait_st();
    gg::ptx::tcgen05_fence_before();
    if (gg::ptx::elect()) gg::ptx::mbarrier_arrive(x_ready_addr_);
    __syncwarp();
  }
  // [/send_x]

  // Who: a whole warp, once after each `send_x`. After: the products have read X, too.
  // [receive_y]
  __device__ void receive_y(gg::ptx::TmemAddr x_place, float (&y)[PART]) {
    uint32_t bits[PART];
    gg::ptx::mbarrier_wait_parity(y_ready_addr_, y_ready_.phase);
    y_ready_.next();
    gg::ptx::tcgen05_fence_after();
    gg::ptx::tcgen05_ld_32x32b_x32(bits, gg::ptx::tmem_at(x_place, 0, X_COLUMNS));
    gg::ptx::tcgen05_wait_ld(bits);
#pragma unroll
    for (int i = 0; i < PART; ++i) y[i] = __uint_as_float(bits[i]);
  }
  // [/receive_y]

 private:
  gg::ptx::ClusterAddr x_ready_addr_;  // rank 0's
  uint32_t y_ready_addr_;
  Ring<1> y_ready_;
};

// Who: a warp of rank 0. One lane of it starts the products, for both blocks, in a fixed order:
//   read 0 of half 0 and of half 1, then read 1 of both. Either half may send its X first.
//   No instruction of the whole warp may stand in the inner loop: the others are in `tiles.next`.
// Relies on: X waited for here waits for no Y that was not started, else deadlock. X of read 1
//   waits for Y of read 0: started. X of read 0 waits for `ready` of this tile, so for all arrivals
//   at `taken` of the tile before. A warp that has columns there arrived before it sent their X
//   (store.cuh), received here. One that has none waits for `ready`, which has opened, and before
//   that for Y of earlier tiles: started.
// With the butterfly (`multiplies` is false) it only walks through the tiles: the mailbox counts it.
template <class C>
__device__ void transform_tiles(const Memory& memory, Tiles<C> tiles, int n, bool multiplies) {
  const bool elected = gg::ptx::elect();
  Ring<1> x_ready[HALVES];
  Ring<ACCUMULATORS> accumulator;
  for (Tile tile; tiles.next(tile); accumulator.next()) {
    // [transform]
    for (int i = 0; elected && multiplies && i < HALVES * READS; ++i) {
      const int half = i % HALVES, read = i / HALVES;
      const Columns columns(tile, n, half, accumulator.stage);
      if (!columns.has(read)) continue;  // nor do the storing warps arrive for it
      gg::ptx::mbarrier_wait_parity(memory.x_ready_addr + half * 8, x_ready[half].phase);
      x_ready[half].next();
      gg::ptx::tcgen05_fence_after();
      const auto x = gg::ptx::tmem_at(memory.sums, 0, columns.x_in_tmem());
      const auto y = gg::ptx::tmem_at(x, 0, X_COLUMNS);
      constexpr uint32_t Y_IDESC = gg::ptx::tcgen05_idesc_f16<bf16, BM, W_SIZE>();
      for (int c = 0; c < PART; c += W_SIZE) {  // column c of Y; in one of X are two bf16
        gg::ptx::tcgen05_mma_f16<CTA_GROUP>(gg::ptx::tmem_at(y, 0, c), gg::ptx::tmem_at(x, 0, c / 2),
                                            memory.w_desc, Y_IDESC, false);
      }
      gg::ptx::tcgen05_commit_multicast<CTA_GROUP>(memory.y_ready_addr + half * 8, PAIR_MASK);
    }
    // [/transform]
  }
}

// Who: all threads of a block. Does: copies its rows of W to shared memory, the first 16 bytes of
//   each row, then the others, and describes them. `w`: at a multiple of 16 bytes; if it is null,
//   nothing is copied. After: a cluster barrier, then products of the pair may read W.
// [w]
__device__ inline gg::ptx::Tcgen05Desc load_w(uint4 (&w_tile)[2][W_ROWS], const bf16* w) {
  const int chunk = int(threadIdx.x) / W_ROWS, row = int(threadIdx.x) % W_ROWS, rank = block_rank();
  if (w && chunk < 2) {
    w_tile[chunk][row] = reinterpret_cast<const uint4*>(w + (rank * W_ROWS + row) * W_SIZE)[chunk];
    gg::ptx::fence_proxy_async();
  }
  static_assert(W_SIZE * sizeof(bf16) == 2 * sizeof(uint4));  // a row of W is two chunks, of eight k each
  static_assert(W_ROWS == 8);                    // so products need K_BYTES, but never ROWS_BYTES
  constexpr int K_BYTES = sizeof(w_tile[0]);     // leading dimension: to the next eight k
  constexpr int ROWS_BYTES = 8 * sizeof(uint4);  // stride dimension: to the next eight rows
  return gg::ptx::tcgen05_desc_k_major(gg::ptx::shared_addr(w_tile), K_BYTES, ROWS_BYTES);
}
// [/w]

}  // namespace chapter
