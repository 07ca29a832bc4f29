// SPDX-License-Identifier: MIT
//
// Chapter 07m: a gated linear unit after the product.
//
// Group g owns rows offsets[g] .. offsets[g+1]-1 of A [M,K] and D [M,N/2]; B is [G,N,K], 32 gates and 32 ups:
//     c[row, col] = alpha[g] * sum over k of A[row, k] * B[g][col, k] + bias[g, col]
//     D[row, col] = gate * sigma(gate) * up * prob[row], of two columns of c that are 32 apart; or
//                   geglu of the two (common/kernel/epilogue_glu.cuh)
// New here: B's map orders gates and ups so that a thread has the sums of both of an output.

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
#include "split_k.cuh"

namespace chapter {

// The launch bound's 1: ptxas plans with one block per multiprocessor, so of 65536 registers each of
// 384 threads may have 168, and each of 256 threads 255.
template <class C>
__global__ void __launch_bounds__(C::THREADS, 1)
    grouped_gemm(const __grid_constant__ Maps<C> maps, bf16* d, const __grid_constant__ Operands operands,
                 const __grid_constant__ gg::Offsets offsets, int groups, int n, int k, int rows_each,
                 int counter, bool early) {
  constexpr int STAGES = C::STAGES;
  const int thread = int(threadIdx.x), warp = gg::ptx::uniform(thread / 32);
  const int rank = C::BLOCKS > 1 ? gg::ptx::cluster_ctarank() : 0;
  const int n_rank = rank % C::CLUSTER, k_rank = rank / C::CLUSTER;
  const Slices slices = slices_of<C>(k, k_rank);
  const Guess<C> guess(rows_each, groups, n, n_rank, slices.count);  // reads no memory
  extern __shared__ __align__(1024) unsigned char shared[];
  __shared__ uint64_t bars[2 * STAGES + 2 * C::CONSUMERS];
  __shared__ Mailbox<C::BLOCKS> mailbox;
  // Both lie before `shared`, which is aligned. config.cuh leaves 2 KB for both and the gap.
  static_assert(sizeof(bars) + sizeof(mailbox) <= 1024);
  Memory memory;
  memory.a_tile_addr = gg::ptx::keep(gg::ptx::shared_addr(shared));
  memory.b_tile_addr = memory.a_tile_addr + STAGES * C::A_BYTES;
  memory.d_rows = shared + STAGES * (C::A_BYTES + C::B_BYTES);
  memory.sums = memory.d_rows + C::CONSUMERS * C::STORE_BYTES;
  memory.full_addr = gg::ptx::keep(gg::ptx::shared_addr(bars));
  memory.empty_addr = memory.full_addr + STAGES * 8;
  memory.landed_addr = memory.empty_addr + STAGES * 8;
  if (thread == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      gg::ptx::mbarrier_init(memory.full_addr + stage * 8, 1);
      gg::ptx::mbarrier_init(memory.empty_addr + stage * 8, C::CLUSTER * C::CONSUMERS);  // from `release`
    }
    // At `landed` and at `read` one thread of rank 0 arrives.
    for (int i = 0; i < 2 * C::CONSUMERS; ++i) gg::ptx::mbarrier_init(memory.landed_addr + i * 8, 1);
    mailbox.init(C::BLOCKS * (1 + 4 * C::CONSUMERS));  // warps that load or multiply
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
  // tile. Otherwise it stands in multiply.cuh, after a consumer's last products, and the consumer that
  // comes to it first counts for its block.
  if (early || guess.one_each) gg::ptx::griddepcontrol_launch_dependents();
  gg::ptx::griddepcontrol_wait();  // the previous one has ended, and what it wrote is there
  // [/dependent]
  // Configurations with BM up to 128 do with the registers that a thread starts with, 168 or 255 as
  // said above. In the others a consumer's thread has up to 128 sums and the rows that BoxStore holds.
  // The roles go on using values from above, as `guess`. PTX's registers are virtual, so it is
  // ptxas's duty to keep such values in registers that setmaxnreg leaves.
  // [roles]
  if (warp < C::LOADER) {
    if constexpr (C::HOLDS_ROWS) gg::ptx::setmaxnreg_inc<C::CONSUMER_REGISTERS>();
    multiply_tiles<C>(maps.d, d, operands, memory, mailbox, guess, offsets, slices, n_rank, k_rank, n, k);
  } else {
    if constexpr (C::HOLDS_ROWS) gg::ptx::setmaxnreg_dec<C::OTHER_REGISTERS>();
    if (warp == C::LOADER) load_tiles<C>(maps, memory, mailbox, guess, offsets, slices, n_rank, n);
    if (warp == C::SCHEDULER && rank == 0) schedule_tiles<C>(mailbox, guess, offsets, groups, n, k, counter);
  }
  // [/roles]
  if constexpr (C::BLOCKS > 1) {
    __syncwarp();  // lanes may end a role one by one; a cluster barrier is the whole warp's
    gg::ptx::cluster_arrive();
    gg::ptx::cluster_wait();  // nobody writes into this block any more: no `return` before this
  }
}

}  // namespace chapter
