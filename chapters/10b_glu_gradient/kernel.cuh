// SPDX-License-Identifier: MIT
//
// Chapter 10b: the gradients of a gated linear unit, in the epilogue of the product that they need.
//
// The forward pass made x = GLU(C) prob, [M,N]. The gradient of x is the derivative of the loss by
// each number of x.
// Group g owns rows offsets[g] .. offsets[g+1]-1 of A [M,K], C [M,2N] and D [M,2N]; B is [G,K,N]:
//     y[row, col] = alpha[g] * sum over k of A[row, k] * B[g][k, col], the gradient of x[row, col]
//     D = the gradient of C, dprob [M] that of prob (epilogue_glu.cuh)
//     dbias [G,2N] = the sum of a group's rows of D, each before it is rounded
// New here: an epilogue that reads as much as it writes, and sums over rows and columns
// of many tiles.

#pragma once

#include "common/kernel/ptx/cluster.cuh"
#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/tma.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "common/kernel/ptx/warpgroup.cuh"
#include "config.cuh"
#include "gradient.cuh"
#include "load.cuh"
#include "multiply.cuh"
#include "schedule.cuh"
#include "sums.cuh"

namespace chapter {

// One block per multiprocessor: 65536 registers for 384 threads, 168 each before they are dealt out anew.
template <class C, class Activation>
__global__ void __launch_bounds__(C::THREADS, 1)
    glu_gradient(const __grid_constant__ Maps maps, const __grid_constant__ Operands operands,
                 const __grid_constant__ Parts parts, const __grid_constant__ gg::Offsets offsets, int groups,
                 int rows, int n, int k, int counter) {
  constexpr int STAGES = C::STAGES;
  const int thread = int(threadIdx.x), warp = gg::ptx::uniform(thread / 32);
  const int rank = C::CLUSTER > 1 ? gg::ptx::cluster_ctarank() : 0;
  const int slices = slices_of(k);
  extern __shared__ __align__(1024) unsigned char shared[];
  __shared__ uint64_t bars[2 * STAGES + C::CONSUMERS * (1 + C::SLOTS)];
  __shared__ Mailbox<C::CLUSTER> mailboxes[C::CONSUMERS];
  __shared__ WarpSums warp_sums[C::CONSUMERS];
  static_assert(sizeof(bars) + sizeof(mailboxes) + sizeof(warp_sums) <= 3 * 1024);  // config.cuh relies on it
  Memory memory;
  memory.a_tile_addr = gg::ptx::keep(gg::ptx::shared_addr(shared));
  memory.b_tile_addr = memory.a_tile_addr + STAGES * C::A_BYTES;
  memory.full_addr = gg::ptx::keep(gg::ptx::shared_addr(bars));
  memory.empty_addr = memory.full_addr + STAGES * 8;
  memory.turn_addr = memory.empty_addr + STAGES * 8;
  memory.landed_addr = memory.turn_addr + C::CONSUMERS * 8;
  memory.boxes_addr = memory.b_tile_addr + STAGES * C::B_BYTES;
  memory.warp_sums = warp_sums;
  if (thread == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      gg::ptx::mbarrier_init(memory.full_addr + stage * 8, 1);
      gg::ptx::mbarrier_init(memory.empty_addr + stage * 8, C::CLUSTER);
    }
    for (int i = 0; i < C::CONSUMERS; ++i) {
      gg::ptx::mbarrier_init(memory.turn_addr + i * 8, 4);  // warps of the other consumer
      mailboxes[i].init(C::CLUSTER * (1 + 4));  // warps that load, or are consumer i's
    }
    for (int i = 0; i < C::CONSUMERS * C::SLOTS; ++i) gg::ptx::mbarrier_init(memory.landed_addr + i * 8, 1);
    gg::ptx::fence_mbarrier_init();
    gg::ptx::prefetch_tensormap(&maps.a);
    gg::ptx::prefetch_tensormap(&maps.b);
    gg::ptx::prefetch_tensormap(&maps.c);
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
    multiply_tiles<C>(Activation(), maps, operands, parts, memory, mailboxes, rank, rows, n, slices);
  } else {
    gg::ptx::setmaxnreg_dec<C::OTHER_REGISTERS>();
    if (warp == C::LOADER) load_tiles<C>(maps, memory, mailboxes, rank, slices);
    if (warp == C::SCHEDULER && rank == 0) schedule_tiles<C>(mailboxes, offsets, groups, n, counter);
  }
  // [/roles]
  if constexpr (C::CLUSTER > 1) {
    __syncwarp();  // lanes may end a role one by one; a cluster barrier is the whole warp's
    gg::ptx::cluster_arrive();
    gg::ptx::cluster_wait();  // nobody writes into this block any more: no `return` before this
  }
}

}  // namespace chapter
