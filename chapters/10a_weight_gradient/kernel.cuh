// SPDX-License-Identifier: MIT
//
// Chapter 10a: the gradient of the weights, whose sum runs over a group's rows.
//
// Group g owns rows offsets[g] .. offsets[g+1]-1 of A [M,K] and B [M,N]; D is [G,K,N]:
//     D[g][i, j] = sum over the group's rows r of A[r, i] * B[r, j]
// New here: the inner dimension is ragged. Tiles of D are known beforehand, and the offsets say how
// long their sums are. A token, that is a row of A and B, is a k of wgmma. `k` counts rows of D, which
// are wgmma's M, and `n` columns of D.

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

// One block per multiprocessor: 65536 registers for 384 threads, 168 each before they are dealt out anew.
template <class C, class T, class D>
__global__ void __launch_bounds__(C::THREADS, 1)
    weight_gradient(const __grid_constant__ Maps maps, const D* d,
                    const __grid_constant__ gg::Offsets offsets, int groups, int n, int k, bool accumulate,
                    int counter) {
  constexpr int STAGES = C::STAGES;
  const int thread = int(threadIdx.x), warp = gg::ptx::uniform(thread / 32);
  const int rank = C::CLUSTER > 1 ? gg::ptx::cluster_ctarank() : 0;
  extern __shared__ __align__(1024) unsigned char shared[];
  __shared__ uint64_t bars[2 * STAGES + C::CONSUMERS];
  __shared__ Mailbox<C::CLUSTER> mailboxes[C::CONSUMERS];
  static_assert(sizeof(bars) + sizeof(mailboxes) <= 1024);  // config.cuh relies on it
  Memory memory;
  memory.slices = shared;
  memory.d_boxes = shared + C::SLICES_BYTES;
  memory.a_tile_addr = gg::ptx::keep(gg::ptx::shared_addr(shared));
  memory.b_tile_addr = memory.a_tile_addr + C::B_OFFSET;
  memory.full_addr = gg::ptx::keep(gg::ptx::shared_addr(bars));
  memory.empty_addr = memory.full_addr + STAGES * 8;
  memory.turn_addr = memory.empty_addr + STAGES * 8;
  if (thread == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      gg::ptx::mbarrier_init(memory.full_addr + stage * 8, 1);
      gg::ptx::mbarrier_init(memory.empty_addr + stage * 8, C::CLUSTER);
    }
    for (int i = 0; i < C::CONSUMERS; ++i) {
      gg::ptx::mbarrier_init(memory.turn_addr + i * 8, 4);  // warps of the other consumer
      mailboxes[i].init(C::CLUSTER * (1 + 4));  // warps that load, or are consumer i's
    }
    gg::ptx::fence_mbarrier_init();
    gg::ptx::prefetch_tensormap(&maps.a);
    gg::ptx::prefetch_tensormap(&maps.b);
    gg::ptx::prefetch_tensormap(&maps.d);
  }
  __syncthreads();  // the barriers are there for all threads and for TMA
  if constexpr (C::CLUSTER > 1) {
    gg::ptx::cluster_arrive();
    gg::ptx::cluster_wait();  // and those of the other block
  }
  // Everything above may run before the previous kernel has ended: it reads no global memory.
  gg::ptx::griddepcontrol_wait();  // the previous one has ended, and what it wrote is there
  // [roles]
  if (warp < C::LOADER) {
    gg::ptx::setmaxnreg_inc<C::CONSUMER_REGISTERS>();
    multiply_tiles<C, T>(maps.d, d, memory, mailboxes, rank, n, k, accumulate);
  } else {
    gg::ptx::setmaxnreg_dec<C::OTHER_REGISTERS>();
    if (warp == C::LOADER) load_tiles<C>(maps, memory, mailboxes, rank, n, k);
    if (warp == C::SCHEDULER && rank == 0) schedule_tiles<C>(mailboxes, offsets, groups, n, k, counter);
  }
  // [/roles]
  if constexpr (C::CLUSTER > 1) {
    __syncwarp();  // lanes may end a role one by one; a cluster barrier is the whole warp's
    gg::ptx::cluster_arrive();
    gg::ptx::cluster_wait();  // nobody writes into this block any more: no `return` before this
  }
}

}  // namespace chapter
