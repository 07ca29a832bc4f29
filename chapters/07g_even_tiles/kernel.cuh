// SPDX-License-Identifier: MIT
//
// Chapter 07g: the tiles of a group have nearly as many rows as each other.
//
// Group g owns rows offsets[g] .. offsets[g+1]-1 of A [M,K] and D [M,N]; B is [G,N,K], K contiguous:
//     D[row, col] = sum over k of A[row, k] * B[g][col, k]
// New here: the widths of a column's tiles differ by one step of 32 rows at most.

#pragma once

#include "common/kernel/ptx/cluster.cuh"
#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/tma.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "common/kernel/ptx/warpgroup.cuh"
#include "config.cuh"
#include "load.cuh"
#include "multiply.cuh"
#include "schedule.cuh"

namespace chapter {

// One block per multiprocessor: at launch each of 384 threads may have 168 registers.
template <class C, class T>
__global__ void __launch_bounds__(C::THREADS, 1)
    grouped_gemm(const __grid_constant__ Maps<C> maps, T* d, const __grid_constant__ gg::Offsets offsets,
                 int groups, int n, int k) {
  constexpr int STAGES = C::STAGES;
  const int thread = int(threadIdx.x), warp = gg::ptx::uniform(thread / 32);
  const int rank = C::CLUSTER > 1 ? gg::ptx::cluster_ctarank() : 0;
  extern __shared__ __align__(1024) unsigned char shared[];
  __shared__ uint64_t bars[2 * STAGES];
  __shared__ Mailbox<C::CLUSTER> mailbox;
  // Both lie before `shared`, which is aligned. config.cuh leaves 2 KB for both and the gap.
  static_assert(sizeof(bars) + sizeof(mailbox) <= 1024);
  Memory memory;
  memory.a_tile_addr = gg::ptx::keep(gg::ptx::shared_addr(shared));
  memory.b_tile_addr = memory.a_tile_addr + STAGES * C::A_BYTES;
  memory.d_rows = shared + STAGES * (C::A_BYTES + C::B_BYTES);
  memory.full_addr = gg::ptx::keep(gg::ptx::shared_addr(bars));
  memory.empty_addr = memory.full_addr + STAGES * 8;
  if (thread == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      gg::ptx::mbarrier_init(memory.full_addr + stage * 8, 1);
      gg::ptx::mbarrier_init(memory.empty_addr + stage * 8, C::CLUSTER * C::CONSUMERS);  // from `release`
    }
    mailbox.init(C::CLUSTER * (1 + 4 * C::CONSUMERS));  // warps that load or multiply
    gg::ptx::fence_mbarrier_init();
    gg::ptx::prefetch_tensormap(&maps.a[C::BM / STEP - 1]);
    gg::ptx::prefetch_tensormap(&maps.b);
    gg::ptx::prefetch_tensormap(&maps.d);
  }
  __syncthreads();  // the barriers are there for all threads and for TMA
  if constexpr (C::CLUSTER > 1) {
    gg::ptx::cluster_arrive();
    gg::ptx::cluster_wait();  // and those of the other block
  }
  // [dependent]
  // Everything above may run before the previous kernel has ended: it reads no global memory.
  gg::ptx::griddepcontrol_launch_dependents();  // the next kernel's blocks may start where there is room
  gg::ptx::griddepcontrol_wait();               // the previous one has ended, and what it wrote is there
  // [/dependent]
  // [roles]
  const TileReceiver<C> tiles(mailbox, rank);
  if (warp < C::LOADER) {
    if constexpr (C::HOLDS_ROWS) gg::ptx::setmaxnreg_inc<C::CONSUMER_REGISTERS>();
    multiply_tiles<C>(maps.d, d, memory, tiles, n, k);
  } else {
    if constexpr (C::HOLDS_ROWS) gg::ptx::setmaxnreg_dec<C::OTHER_REGISTERS>();
    if (warp == C::LOADER) load_tiles<C>(maps, memory, tiles, rank, k);
    if (warp == C::SCHEDULER && rank == 0) schedule_tiles<C>(mailbox, offsets, groups, n);
  }
  // [/roles]
  if constexpr (C::CLUSTER > 1) {
    __syncwarp();  // lanes may end a role one by one; a cluster barrier is the whole warp's
    gg::ptx::cluster_arrive();
    gg::ptx::cluster_wait();  // nobody writes into this block any more: no `return` before this
  }
}

}  // namespace chapter
