// SPDX-License-Identifier: MIT
//
// Chapter 07r: a Hadamard transform in registers, after the gated linear unit.
//
// Group g owns rows offsets[g] .. offsets[g+1]-1 of A [M,K] and D [M,N/2]; B is [G,N,K], 32 gates and 32 ups:
//     c[row, col] = alpha[g] * sum over k of A[row, k] * B[g][col, k] + bias[g, col]
//     X[row, col] = gate * sigma(gate) * up * prob[row], of two columns of c that are 32 apart, as bf16;
//                   or geglu of the two (common/kernel/epilogue_glu.cuh)
//     Y[row, 16q + j] = sum over i < 16 of X[row, 16q + i] * W[j, i]; D is Y as bf16
//     amax[g] is the largest |Y| of its rows
// New here: B's map gives a warp 16 neighbouring columns of X, and movmatrix turns them into an
// operand of mma.

#pragma once

#include "common/kernel/ptx/cluster.cuh"
#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/tma.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "common/kernel/ptx/warpgroup.cuh"
#include "config.cuh"
#include "glu.cuh"
#include "guess.cuh"
#include "load.cuh"
#include "multiply.cuh"
#include "schedule.cuh"

namespace chapter {

// The launch bound's 1: ptxas plans with one block per multiprocessor, so of 65536 registers each of
// 384 threads may have 168 (C::FIRST_REGISTERS).
template <class C>
__global__ void __launch_bounds__(C::THREADS, 1)
    grouped_gemm(const __grid_constant__ Maps<C> maps, bf16* d, const __grid_constant__ Operands operands,
                 const __grid_constant__ gg::Offsets offsets, int groups, int n, int k, int rows_each,
                 int counter, bool early) {
  constexpr int STAGES = C::STAGES;
  const int thread = int(threadIdx.x), warp = gg::ptx::uniform(thread / 32);
  const int rank = C::BLOCKS > 1 ? gg::ptx::cluster_ctarank() : 0;
  const int slices = slices_of(k);
  const Guess<C> guess(rows_each, groups, n, rank, slices);  // reads no memory
  extern __shared__ __align__(1024) unsigned char shared[];
  __shared__ uint64_t bars[2 * STAGES + C::CONSUMERS];
  __shared__ Mailbox<C::BLOCKS> mailboxes[C::CONSUMERS];
  __shared__ Factors<C::BM, C::BN> factors[C::CONSUMERS];
  // config.cuh relies on it. With 192 rows it is 2752 bytes, so 320 are left.
  static_assert(sizeof(bars) + sizeof(mailboxes) + sizeof(factors) <= 3 * 1024);
  Memory<C> memory;
  memory.a_tile_addr = gg::ptx::keep(gg::ptx::shared_addr(shared));
  memory.b_tile_addr = memory.a_tile_addr + STAGES * C::A_BYTES;
  memory.d_rows = shared + STAGES * (C::A_BYTES + C::B_BYTES);
  memory.factors = factors;
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
      mailboxes[i].init(C::BLOCKS * (1 + 4));  // warps that load, or are consumer i's
    }
    gg::ptx::fence_mbarrier_init();
    gg::ptx::prefetch_tensormap(&maps.a[C::BM / STEP - 1]);
    gg::ptx::prefetch_tensormap(&maps.b);
    gg::ptx::prefetch_tensormap(&maps.d);
  }
  __syncthreads();  // the barriers are there for all threads and for TMA
  if constexpr (C::BLOCKS > 1) {
    gg::ptx::cluster_arrive();
    gg::ptx::cluster_wait();  // and those of the other blocks
  }
  // [dependent]
  // Everything above may run before the previous kernel has ended: it reads no global memory.
  // The next kernel's blocks may start once each block of this one has executed launch_dependents or
  // has ended. They, too, wait below until this kernel has ended, so where it stands changes times and
  // never D. It stands here for few rows a group (early), or if by rows_each no worker has a second
  // tile. Otherwise it stands in multiply.cuh, after a consumer's last tile, and the consumer that
  // comes to it first counts for its block.
  if (early || guess.one_each) gg::ptx::griddepcontrol_launch_dependents();
  gg::ptx::griddepcontrol_wait();  // the previous one has ended, and what it wrote is there
  // [/dependent]
  // A thread of a consumer has up to BM sums in registers.
  // The roles go on using values from above, as `guess`. PTX's registers are virtual, so it is
  // ptxas's duty to keep such values in registers that setmaxnreg leaves.
  // [roles]
  if (warp < C::LOADER) {
    gg::ptx::setmaxnreg_inc<C::CONSUMER_REGISTERS>();
    multiply_tiles<C>(maps.d, d, operands, memory, mailboxes, guess, offsets, slices, n);
  } else {
    gg::ptx::setmaxnreg_dec<C::OTHER_REGISTERS>();
    if (warp == C::LOADER) load_tiles<C>(maps, memory, mailboxes, guess, offsets, slices, rank, n);
    if (warp == C::SCHEDULER && rank == 0)
      schedule_tiles<C>(mailboxes, guess, offsets, groups, n, k, counter);
  }
  // [/roles]
  if constexpr (C::BLOCKS > 1) {
    __syncwarp();  // lanes may end a role one by one; a cluster barrier is the whole warp's
    gg::ptx::cluster_arrive();
    gg::ptx::cluster_wait();  // nobody writes into this block any more: no `return` before this
  }
}

}  // namespace chapter
