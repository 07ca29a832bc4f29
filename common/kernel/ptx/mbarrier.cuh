// SPDX-License-Identifier: MIT
//
// mbarrier: a barrier in shared memory that counts arrivals of threads and bytes of asynchronous
// copies, one phase after the other. PTX ISA, "Parallel synchronization and communication
// instructions: mbarrier". A phase ends when no arrival is missing and as many bytes have come as
// were expected; the next one begins at once. A wait names a phase by its parity, 0 for the
// first. Needs sm_90.

#pragma once

#include <cstdint>

#include "common/kernel/ptx/cluster.cuh"

namespace gg::ptx {

// Who: one thread, before anybody uses the barrier; 8 bytes of shared memory at a multiple of 8.
// Does: begins phase 0 of a barrier whose phases want `arrivals` arrivals each, 1 to 2^20 - 1.
// After: fence_mbarrier_init, then __syncthreads or a cluster barrier, before others use it.
__device__ inline void mbarrier_init(uint32_t bar_addr, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar_addr), "r"(arrivals) : "memory");
}

// Who: the thread that initialised barriers, once, after the last mbarrier_init.
// Does: makes them known to asynchronous copies and to the other blocks of the cluster.
__device__ inline void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Who: one thread, when nobody uses the barrier any more.
// Does: ends the barrier; its memory may hold something else.
__device__ inline void mbarrier_inval(uint32_t bar_addr) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(bar_addr) : "memory");
}

// Who: any thread of the block.
// Does: one arrival in the current phase.
// After: what this thread wrote before is visible to those who then see the phase end.
__device__ inline void mbarrier_arrive(uint32_t bar_addr) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar_addr) : "memory");
}

// The same at the barrier of any block of the cluster, given by mapa; writes to memory become
// visible to this block only. Enough to say that a stage was read: waiting for the loads or the
// wgmma that read it has done the rest. Enough too after fences of another kind, such as tcgen05's
// for tensor memory.
__device__ inline void mbarrier_arrive(ClusterAddr bar) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(bar.value) : "memory");
}
// The same, and what this thread wrote before is visible to the whole cluster: a fence that goes as
// far as the L2 (sm_90 machine code: MEMBAR.ALL.GPU) and costs as much.
__device__ inline void mbarrier_arrive_cluster(ClusterAddr bar) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(bar.value) : "memory");
}

// Who: any thread of the block, as a rule the one that starts the copies, before it does.
// Does: makes the current phase wait for `bytes` more bytes, then arrives once.
__device__ inline void mbarrier_arrive_expect_tx(uint32_t bar_addr, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar_addr), "r"(bytes)
               : "memory");
}

// The same at the barrier of any block of the cluster, given by mapa.
__device__ inline void mbarrier_arrive_expect_tx(ClusterAddr bar, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cluster.b64 _, [%0], %1;" ::"r"(bar.value), "r"(bytes)
               : "memory");
}

// Who: any thread of the block, while the current phase still lacks an arrival.
// Does: makes the current phase wait for `bytes` more bytes. No arrival.
__device__ inline void mbarrier_expect_tx(uint32_t bar_addr, int bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(bar_addr), "r"(bytes)
               : "memory");
}

// Who: any thread of the block.
// Does: true if the phase of this parity has ended, that is, if the current phase has the other
//   one. A fresh barrier: false for 0, true for 1. May sleep until the phase ends, but not for
//   ever: false means ask again.
// After: if true, what was written before the phase's arrivals, and the bytes it waited
//   for, are visible.
__device__ inline bool mbarrier_try_wait_parity(uint32_t bar_addr, int parity) {
  uint32_t done;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.b32 %0, 1, 0, p;\n"
      "}"
      : "=r"(done)
      : "r"(bar_addr), "r"(parity)
      : "memory");
  return done != 0;
}

// The same for data that threads of other blocks of the cluster wrote with ordinary stores.
__device__ inline bool mbarrier_try_wait_parity_cluster(uint32_t bar_addr, int parity) {
  uint32_t done;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
      "selp.b32 %0, 1, 0, p;\n"
      "}"
      : "=r"(done)
      : "r"(bar_addr), "r"(parity)
      : "memory");
  return done != 0;
}

// Asks until it is true.
__device__ inline void mbarrier_wait_parity(uint32_t bar_addr, int parity) {
  while (!mbarrier_try_wait_parity(bar_addr, parity)) {
  }
}
__device__ inline void mbarrier_wait_parity_cluster(uint32_t bar_addr, int parity) {
  while (!mbarrier_try_wait_parity_cluster(bar_addr, parity)) {
  }
}

}  // namespace gg::ptx
