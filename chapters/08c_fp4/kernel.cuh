// SPDX-License-Identifier: MIT
//
// Chapter 08c: four bits an element, and a scale for each 32 or each 16 of them.
//
// Group g has rows ends[g-1] .. ends[g]-1 of A and D, a multiple of PAD_ROWS; B[g] is [N,K], K contiguous:
//     D[row, col] = sum over k of A[row, k] * SFA[row, k/V] * B[g][col, k] * SFB[g][col, k/V]
// New here: two elements to a byte, so that one product uses two scales of a row or four.

#pragma once

#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/tcgen05.cuh"
#include "config.cuh"
#include "load.cuh"
#include "multiply.cuh"
#include "schedule.cuh"
#include "store.cuh"

namespace chapter {

// One block per multiprocessor: it takes most of the shared memory, and all of tensor memory.
template <class C>
__global__ void __launch_bounds__(THREADS, 1)
    grouped_gemm(const __grid_constant__ Maps maps, typename C::D* d, const int* ends, int groups, int n,
                 int k) {
  constexpr int STAGES = C::STAGES;
  const int thread = int(threadIdx.x), warp = thread / 32;
  extern __shared__ __align__(1024) unsigned char shared[];
  // full, empty, ready, taken, one after the other: the four addresses below are these arrays'.
  __shared__ uint64_t bars[2 * STAGES + 2 * C::ACCUMULATORS];
  __shared__ gg::ptx::TmemAddr sums_slot;
  // These come first, `shared` begins at the next multiple of 1024, and a block has at most 227 KB.
  static_assert(sizeof(bars) + sizeof(sums_slot) <= 1024 && SHARED_BYTES + 1024 <= 227 * 1024);
  Memory memory;
  memory.a_tile_addr = gg::ptx::shared_addr(shared);
  memory.b_tile_addr = memory.a_tile_addr + STAGES * C::A_BYTES;
  // After all A and B, whose stages begin at multiples of 1024 bytes; atoms need multiples of 128.
  memory.sfa_tile_addr = memory.b_tile_addr + STAGES * C::B_BYTES;
  memory.sfb_tile_addr = memory.sfa_tile_addr + STAGES * C::SFA_BYTES;
  memory.full_addr = gg::ptx::shared_addr(bars);
  memory.empty_addr = memory.full_addr + STAGES * 8;
  memory.ready_addr = memory.empty_addr + STAGES * 8;
  memory.taken_addr = memory.ready_addr + C::ACCUMULATORS * 8;
  if (thread == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      gg::ptx::mbarrier_init(memory.full_addr + stage * 8, 1);
      gg::ptx::mbarrier_init(memory.empty_addr + stage * 8, 1);
    }
    for (int stage = 0; stage < C::ACCUMULATORS; ++stage) {
      gg::ptx::mbarrier_init(memory.ready_addr + stage * 8, 1);
      gg::ptx::mbarrier_init(memory.taken_addr + stage * 8, STORE_WARPS);
    }
    gg::ptx::fence_mbarrier_init();
  }
  if (warp == MULTIPLIER) {
    // Sums and scales take over 256 columns, and only a power of two can be allocated.
    gg::ptx::tcgen05_alloc<gg::ptx::TMEM_COLUMNS>(gg::ptx::shared_addr(&sums_slot));
    // Lets other blocks allocate: without effect here, as shared memory has room for one block.
    gg::ptx::tcgen05_relinquish_alloc_permit();
  }
  // tcgen05.alloc and dealloc are synchronous: a barrier orders them; only loads and products want fences.
  __syncthreads();  // the barriers are there for all threads and for TMA, and so is tensor memory
  // [columns]
  memory.sums = sums_slot;
  memory.sfa = gg::ptx::tmem_at(memory.sums, 0, C::ACCUMULATORS * C::BN);
  memory.sfb = gg::ptx::tmem_at(memory.sfa, 0, C::SFA_COLUMNS);
  // [/columns]
  // Each role walks through the same tiles and slices, and counts its stages and accumulators for
  // itself: if one counted differently, another could wait for ever.
  const Tiles<C> tiles(ends, groups);
  if (warp == LOADER) {
    load_tiles<C>(maps, memory, tiles, n, k);
  } else if (warp == MULTIPLIER) {
    multiply_tiles<C>(memory, tiles, k);
  } else {
    store_tiles<C>(d, memory, tiles, n);
  }
  __syncwarp();     // one lane multiplied, or loaded
  __syncthreads();  // the last tile's sums are complete and have been read: tensor memory is unused
  if (warp == MULTIPLIER) gg::ptx::tcgen05_dealloc<gg::ptx::TMEM_COLUMNS>(memory.sums);
}

}  // namespace chapter
