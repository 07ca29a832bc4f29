// SPDX-License-Identifier: MIT
//
// Chapter 09a: D quantised by rows, for the next product, and by columns, for the backward pass.
//
// Group g has rows ends[g-1] .. ends[g]-1 of A and D, a multiple of PAD_ROWS; B[g] is [N,K] or [K,N]:
//     sum[row, col] = sum over k of A[row, k] * SFA[row, k/V] * B[g][col, k] * SFB[g][col, k/V]
//     (where B[g] is [K,N], B[g][k, col])
//     D[row, col] = alpha[g] * sum * prob[row], or with a bias alpha[g] * sum + prob[row] * bias[g, col]
//     amax[g] = the group's largest |D| before rounding
// Where 32 columns of a row share a scale S, a power of two, D[row, col] is the above * norm_const / S.
// New here: D_col, the above * norm_const / S for an S of each 32 rows of a column; amax[g] is without S.

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

namespace chapter {

// One block per multiprocessor: it takes most of the shared memory, and all of tensor memory.
template <class C>
__global__ void __cluster_dims__(C::BLOCKS) __launch_bounds__(THREADS, 1)
    grouped_gemm(const __grid_constant__ Maps maps, const __grid_constant__ Operands operands,
                 const int* ends, int groups, int n, int k, bool dynamic) {
  constexpr int STAGES = C::STAGES;
  const int thread = int(threadIdx.x), warp = thread / 32;
  extern __shared__ __align__(1024) unsigned char shared[];
  // full, empty, ready, taken, one after the other: the four addresses below are these arrays'.
  __shared__ uint64_t bars[2 * STAGES + ACCUMULATORS + 1];
  __shared__ Mailbox mailbox;
  __shared__ gg::ptx::TmemAddr sums_slot;
  // These come first, `shared` begins at the next multiple of 1024, and a block has at most 227 KB.
  static_assert(sizeof(bars) + sizeof(mailbox) + sizeof(sums_slot) <= 1024 &&
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
  if (thread == 0) {
    // [barriers]
    // `empty` takes a commit of each leader in the cluster, `ready` one of the block's own leader alone.
    for (int stage = 0; stage < STAGES; ++stage) {
      gg::ptx::mbarrier_init(memory.full_addr + stage * 8, 1);
      gg::ptx::mbarrier_init(memory.empty_addr + stage * 8, C::BLOCKS / C::CTA_GROUP);
    }
    for (int stage = 0; stage < ACCUMULATORS; ++stage) {
      gg::ptx::mbarrier_init(memory.ready_addr + stage * 8, 1);
    }
    gg::ptx::mbarrier_init(memory.taken_addr, C::CTA_GROUP * STORE_WARPS);  // with or without columns
    // Readers: the warps to which the roles below pass `tiles`. They store or load in each block, and
    // multiply in a leader.
    mailbox.init(C::BLOCKS * (STORE_WARPS + 1) + C::BLOCKS / C::CTA_GROUP);
    // [/barriers]
    gg::ptx::fence_mbarrier_init();
  }
  if (warp == MULTIPLIER) {
    // All columns: so the first one has the same address in both blocks, as products of a pair want it.
    gg::ptx::tcgen05_alloc<gg::ptx::TMEM_COLUMNS, C::CTA_GROUP>(gg::ptx::shared_addr(&sums_slot));
    // Lets other blocks allocate: without effect here, as shared memory has room for one block.
    gg::ptx::tcgen05_relinquish_alloc_permit<C::CTA_GROUP>();
  }
  // tcgen05.alloc and dealloc are synchronous: a barrier orders them; only loads and products want fences.
  // A cluster barrier is .aligned: a warp's lanes execute it together. ptxas joins them again after
  // `thread == 0`; PTX does not promise it. If single lanes do more above, add a __syncwarp here.
  gg::ptx::cluster_arrive();
  gg::ptx::cluster_wait();  // the barriers and tensor memory of all blocks are there
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
  static_assert(THREADS == 32 * (SCHEDULER + 1));  // so only storing warps get to the last branch
  if (warp == SCHEDULER) {
    if (block_rank() == 0) schedule_tiles<C>(mailbox, schedule.first[groups], dynamic);
  } else if (warp == LOADER) {
    load_tiles<C>(maps, memory, tiles, n, k);
  } else if (warp == MULTIPLIER) {
    if (block_rank() == C::leader()) multiply_tiles<C>(memory, tiles, k, maps.kn);
  } else {
    store_tiles<C>(maps, operands, memory, tiles, n);
  }
  // [drain]
  __syncwarp();  // one lane multiplied, or loaded: barrier.cluster.arrive.aligned wants all lanes
  gg::ptx::cluster_arrive();
  gg::ptx::cluster_wait();  // nobody uses the cluster's tensor memory or barriers any more
  if (warp == MULTIPLIER) gg::ptx::tcgen05_dealloc<gg::ptx::TMEM_COLUMNS, C::CTA_GROUP>(memory.sums);
  // [/drain]
}

}  // namespace chapter
