// SPDX-License-Identifier: MIT
//
// Chapter 09c: a gated epilogue, whose outputs the tensor cores multiply once more.
//
// Group g has rows ends[g-1] .. ends[g]-1 of A and D, a multiple of PAD_ROWS; B[g] is [N,K], K contiguous:
//     sum[row, col] = sum over k of A[row, k] * SFA[row, k/V] * B[g][col, k] * SFB[g][col, k/V]
//     C[row, col] = alpha[g] * sum, or with a bias alpha[g] * sum + bias[g, col]
//     X[row, j] = GLU(C[row, gate column of j], C[row, up column of j]) * prob[row], from C before rounding
//     D[row, 16q + j] = sum over i of X[row, 16q + i] * W[j, i], with X in bf16
//     amax[g] = the group's largest |D| before rounding
// New here: registers become A of a product through tensor memory, and its sums come back.

#pragma once

#include "common/kernel/ptx/cluster.cuh"
#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/tcgen05.cuh"
#include "common/kernel/ptx/warpgroup.cuh"
#include "config.cuh"
#include "load.cuh"
#include "multiply.cuh"
#include "schedule.cuh"
#include "store.cuh"
#include "transform.cuh"

namespace chapter {

// One block per multiprocessor: it takes most of the shared memory, and all of tensor memory.
template <class C>
__global__ void __cluster_dims__(CTA_GROUP) __launch_bounds__(THREADS, 1)
    grouped_gemm(const __grid_constant__ Maps maps, const __grid_constant__ Operands operands,
                 const int* ends, int groups, int n, int k, bool dynamic) {
  constexpr int STAGES = C::STAGES;
  const int thread = int(threadIdx.x), warp = thread / 32;
  extern __shared__ __align__(1024) unsigned char shared[];
  // In this sum, and so in the addresses below: full, empty, ready, taken, x_ready, y_ready.
  __shared__ uint64_t bars[2 * STAGES + ACCUMULATORS + 1 + 2 * HALVES];
  // This block's rows of W: the first 16 bytes of each, then the others. Products of the pair apply
  // rank 0's `w_desc` in both blocks: in both, static shared memory has the same addresses.
  __shared__ __align__(16) uint4 w_tile[2][W_ROWS];
  __shared__ Mailbox mailbox;
  __shared__ gg::ptx::TmemAddr sums_slot;
  // These come first, `shared` begins at the next multiple of 1024, and a block has at most 227 KB.
  static_assert(sizeof(bars) + sizeof(w_tile) + sizeof(mailbox) + sizeof(sums_slot) <= 1024 &&
                SHARED_BYTES + 1024 <= 227 * 1024);
  Memory memory;
  // [output]
  memory.output = shared;
  memory.a_tile_addr = gg::ptx::shared_addr(shared) + STORE_WARPS * OUTPUT_BYTES;
  // [/output]
  memory.b_tile_addr = memory.a_tile_addr + STAGES * C::A_BYTES;
  // After all A and B, whose stages begin at multiples of 1024 bytes; atoms need multiples of 128.
  memory.sfa_tile_addr = memory.b_tile_addr + STAGES * C::B_BYTES;
  memory.sfb_tile_addr = memory.sfa_tile_addr + STAGES * C::SFA_BYTES;
  memory.full_addr = gg::ptx::shared_addr(bars);
  memory.empty_addr = memory.full_addr + STAGES * 8;
  memory.ready_addr = memory.empty_addr + STAGES * 8;
  memory.taken_addr = memory.ready_addr + ACCUMULATORS * 8;
  memory.x_ready_addr = memory.taken_addr + 8;
  memory.y_ready_addr = memory.x_ready_addr + HALVES * 8;
  if (thread == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      gg::ptx::mbarrier_init(memory.full_addr + stage * 8, 1);
      gg::ptx::mbarrier_init(memory.empty_addr + stage * 8, 1);
    }
    for (int stage = 0; stage < ACCUMULATORS; ++stage) {
      gg::ptx::mbarrier_init(memory.ready_addr + stage * 8, 1);
    }
    gg::ptx::mbarrier_init(memory.taken_addr, CTA_GROUP * STORE_WARPS);  // with or without columns
    for (int half = 0; half < HALVES; ++half) {
      gg::ptx::mbarrier_init(memory.x_ready_addr + half * 8, CTA_GROUP * STORE_WARPS / HALVES);
      gg::ptx::mbarrier_init(memory.y_ready_addr + half * 8, 1);
    }
    // Readers: the warps to which the roles below pass `tiles`. They store or load in each block,
    // and multiply and transform in rank 0.
    mailbox.init(CTA_GROUP * (STORE_WARPS + 1) + 2);
    gg::ptx::fence_mbarrier_init();
  }
  memory.w_desc = load_w(w_tile, operands.w);  // no wait for `plan`: W was written before it began
  if (warp == MULTIPLIER) {
    // All columns: so the first one has the same address in both blocks, as products of a pair want it.
    gg::ptx::tcgen05_alloc<gg::ptx::TMEM_COLUMNS, CTA_GROUP>(gg::ptx::shared_addr(&sums_slot));
    // Lets other blocks allocate: without effect here, as shared memory has room for one block.
    gg::ptx::tcgen05_relinquish_alloc_permit<CTA_GROUP>();
  }
  // tcgen05.alloc and dealloc are synchronous: a barrier orders them; only loads and products want fences.
  // A cluster barrier is .aligned: a warp's lanes execute it together. ptxas joins them again after
  // `thread == 0`; PTX does not promise it, nor that they join after load_w, where 16 lanes copy W.
  gg::ptx::cluster_arrive();
  gg::ptx::cluster_wait();  // the barriers, W and tensor memory of both blocks are there
  // [columns]
  memory.sums = sums_slot;
  memory.sfa = gg::ptx::tmem_at(memory.sums, 0, gg::ptx::TMEM_COLUMNS - SCALE_COLUMNS);
  memory.sfb = gg::ptx::tmem_at(memory.sfa, 0, C::SFA_COLUMNS);
  // [/columns]
  // [dependent]
  // All above may run while `plan` does. What uses `schedule`, as Tiles's constructor, must stay
  // below. Other inputs need no wait: they were complete before `plan`, an ordinary launch, began.
  gg::ptx::griddepcontrol_wait();
  // [/dependent]
  // Each role walks through the same tiles and slices, and counts its stages and accumulators for
  // itself: if one counted differently, another could wait for ever.
  const Tiles<C> tiles(mailbox, ends, groups);
  // Those who get `tiles` here are the readers that mailbox.init expects; all call next to the end.
  static_assert(THREADS == 32 * (TRANSFORMER + 1));  // so only storing warps get to the last branch
  if (warp == SCHEDULER) {
    if (block_rank() == 0) schedule_tiles(mailbox, schedule.first[groups], dynamic);
  } else if (warp == LOADER) {
    load_tiles<C>(maps, memory, tiles, n, k);
  } else if (warp == MULTIPLIER) {
    if (block_rank() == 0) multiply_tiles<C>(memory, tiles, k);  // for both blocks
  } else if (warp == TRANSFORMER) {
    if (block_rank() == 0) transform_tiles<C>(memory, tiles, n, !operands.butterfly());  // for both
  } else {
    store_tiles<C>(maps, operands, memory, tiles, n);
  }
  // [drain]
  __syncwarp();  // one lane multiplied, or loaded: barrier.cluster.arrive.aligned wants all lanes
  gg::ptx::cluster_arrive();
  gg::ptx::cluster_wait();  // nobody uses the pair's tensor memory, or the other block's barriers, any more
  if (warp == MULTIPLIER) gg::ptx::tcgen05_dealloc<gg::ptx::TMEM_COLUMNS, CTA_GROUP>(memory.sums);
  // [/drain]
}

}  // namespace chapter
