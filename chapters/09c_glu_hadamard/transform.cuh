// SPDX-License-Identifier: MIT
//
// Chapter 09c: Y = X W^T of 16 outputs at a time. The tensor cores read X from tensor memory, where storing
// warps have put it, and leave Y beside it.

#pragma once

#include "common/epilogue_glu.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/shared.cuh"
#include "common/ptx/tcgen05.cuh"
#include "common/ptx/tma.cuh"
#include "common/ptx/warp.cuh"

namespace chapter {

constexpr int PART = gg::epilogue::GLU_COLUMNS;  // columns that a thread has together: gates, ups or outputs
constexpr int PAIR = 2;                          // blocks that multiply together
constexpr int W_SIZE = gg::epilogue::HADAMARD_SIZE, W_ROWS = W_SIZE / PAIR;        // of W; rows of a block
constexpr int PLACES = 2, X_COLUMNS = PART / 2, PLACE_COLUMNS = X_COLUMNS + PART;  // of tensor memory

// The way of parts through tensor memory, each in turn through one of PLACES. Each thread has a copy.
struct Handoffs {
  gg::ptx::TmemAddr first;     // [PLACES][X_COLUMNS of X, PART of Y]
  uint32_t handed_addr;        // [PLACES] barriers: X is there in all blocks of the pair; rank 0's is used
  uint32_t turned_addr;        // [PLACES] barriers: and Y is
  int handed = 0, turned = 0;  // parts of which this thread has handed over X, or awaited Y

  // Who: one thread. `storers`: warps of a block that hand X over.
  __device__ void init(int storers) const {
    for (int i = 0; i < PLACES; ++i) {
      gg::ptx::mbarrier_init(handed_addr + i * 8, PAIR * storers);
      gg::ptx::mbarrier_init(turned_addr + i * 8, 1);
    }
  }

  // For a storing warp from the first lane on that it reaches; for products from lane 0 on.
  __device__ gg::ptx::TmemAddr place(int part, int lane = int(threadIdx.x) / 32 * 32) const {
    return gg::ptx::tmem_at(first, lane, part % PLACES * PLACE_COLUMNS);
  }

  // Who: a whole storing warp. Before: it has collected all but the last part.
  // [hand]
  __device__ void hand(const uint32_t (&x)[PART / 2]) {
    gg::ptx::tcgen05_st_32x32b_x16(place(handed), x);
    gg::ptx::tcgen05_wait_st();
    gg::ptx::tcgen05_fence_before();
    if (gg::ptx::elect()) gg::ptx::mbarrier_arrive(gg::ptx::mapa(handed_addr + handed % PLACES * 8, 0));
    __syncwarp();
    ++handed;
  }
  // [/hand]

  // [collect]
  __device__ void collect(float (&y)[PART]) {
    uint32_t bits[PART];
    gg::ptx::mbarrier_wait_parity(turned_addr + turned % PLACES * 8, turned / PLACES % 2);  // Y is complete
    gg::ptx::tcgen05_fence_after();
    gg::ptx::tcgen05_ld_32x32b_x32(bits, gg::ptx::tmem_at(place(turned++), 0, X_COLUMNS));
    gg::ptx::tcgen05_wait_ld(bits);
#pragma unroll
    for (int i = 0; i < PART; ++i) y[i] = __uint_as_float(bits[i]);
  }
  // [/collect]

  // Who: the thread of rank 0 that starts all products of the pair. `w`: load_w's.
  // [turn]
  __device__ void turn(gg::ptx::Tcgen05Desc w) {
    constexpr uint32_t IDESC = gg::ptx::tcgen05_idesc_f16<bf16, PAIR * gg::ptx::TMEM_LANES, W_SIZE>();
    gg::ptx::mbarrier_wait_parity(handed_addr + turned % PLACES * 8, turned / PLACES % 2);  // X is there
    gg::ptx::tcgen05_fence_after();
    const auto x = place(turned, 0), y = gg::ptx::tmem_at(x, 0, X_COLUMNS);
    for (int c = 0; c < PART; c += W_SIZE) {  // two bf16 in a column of X
      gg::ptx::tcgen05_mma_f16<PAIR>(gg::ptx::tmem_at(y, 0, c), gg::ptx::tmem_at(x, 0, c / 2), w, IDESC,
                                     false);
    }
    gg::ptx::tcgen05_commit_multicast<PAIR>(turned_addr + turned % PLACES * 8, (1 << PAIR) - 1);
    ++turned;
  }
  // [/turn]
};

// Who: all threads of a block. Does: copies its rows of W to shared memory: 16 bytes of each row, then the
// others. Before the products: a cluster barrier.
// [w]
__device__ inline gg::ptx::Tcgen05Desc load_w(uint4 (&tile)[2][W_ROWS], const bf16* w, int rank) {
  const int half = int(threadIdx.x) / W_ROWS, row = int(threadIdx.x) % W_ROWS;
  if (w && half < 2) {
    tile[half][row] = reinterpret_cast<const uint4*>(w + (rank * W_ROWS + row) * W_SIZE)[half];
    gg::ptx::fence_proxy_async();
  }
  return gg::ptx::tcgen05_desc_k_major(gg::ptx::shared_addr(tile), W_ROWS * 16, 8 * 16);
}
// [/w]

}  // namespace chapter
