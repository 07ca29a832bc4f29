// SPDX-License-Identifier: MIT
//
// Clusters: blocks that run at the same time and reach each other's shared memory. PTX ISA,
// "Parallel synchronization and communication instructions: barrier.cluster", "Data movement and
// conversion instructions: mapa". Needs sm_90.

#pragma once

#include <climits>
#include <cstdint>
#include <cstring>

namespace gg::ptx {

// An address in the shared memory of some block of the cluster, its own among them.
struct ClusterAddr {
  uint32_t value;
};

// Who: any thread. The rank of its block in the cluster, and how many blocks the cluster has.
__device__ inline int cluster_ctarank() {
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return int(rank);
}
__device__ inline int cluster_nctarank() {
  uint32_t blocks;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
  return int(blocks);
}

// Who: any thread. Where the block of this rank has what ours has at shared address `addr`.
__device__ inline ClusterAddr mapa(uint32_t addr, int rank) {
  ClusterAddr mapped;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped.value) : "r"(addr), "r"(rank));
  return mapped;
}

// Who: any thread; the address a multiple of 4.
// Does: an ordinary load or store of 4 bytes there.
// Before: that block has started, and has not ended: a cluster barrier on both sides.
__device__ inline uint32_t ld_shared_cluster(ClusterAddr addr) {
  uint32_t value;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(addr.value) : "memory");
  return value;
}
__device__ inline void st_shared_cluster(ClusterAddr addr, uint32_t value) {
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(addr.value), "r"(value) : "memory");
}

// Who: any thread, with what an ordinary load gave it: whole words, none of them INT_MIN.
// Does: returns true. The compiler cannot know that, so it compares, and what a thread does only if
//   it is true waits until the load has returned.
// Why: an arrival in another block that says "read" may overtake a load begun before it, as on an
//   H200 (the load, it seems, waited for stores before it, and the arrival did not). A thread
//   there may then overwrite what has yet to be loaded. In PTX only a fence of the cluster orders
//   the two (mbarrier_arrive_cluster). But what is in a register does not change any more.
template <class Value>
__device__ inline bool has_come(const Value& value) {
  static_assert(sizeof(Value) % 4 == 0);
  int words[sizeof(Value) / 4], all = 0;
  memcpy(words, &value, sizeof(Value));
  for (const int word : words) all |= word;
  return all != INT_MIN;
}

// Who: any thread; the address a multiple of 4, the mbarrier in the same block as the address.
// Does: starts a store of 4 bytes there, an integer or a float as it is; when they have landed, the
//   mbarrier's phase has got 4 bytes.
// After: visible to those who see the mbarrier's phase end.
__device__ inline void st_async(ClusterAddr addr, uint32_t value, ClusterAddr bar) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(addr.value),
               "r"(value), "r"(bar.value)
               : "memory");
}
__device__ inline void st_async(ClusterAddr addr, float value, ClusterAddr bar) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];" ::"r"(addr.value),
               "f"(value), "r"(bar.value)
               : "memory");
}

// Who: all threads of a warp together, and all warps of all blocks of the cluster.
// Does: arrives at the cluster's barrier; cluster_wait waits until all threads of the cluster have.
// After: what they wrote before they arrived is visible after the wait.
__device__ inline void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ inline void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

}  // namespace gg::ptx
