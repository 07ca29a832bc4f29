// SPDX-License-Identifier: MIT
//
// TMA: one thread starts the copy of a whole box of a tensor, or of a run of bytes, between global
// and shared memory. PTX ISA, "Data movement and conversion instructions: Asynchronous copy: Bulk
// copy, Tensor copy". The tensor and the box stand in a tensor map, made by
// common/kernel/tensor_map.h and passed to the kernel as `const __grid_constant__
// CUtensorMap`. Needs sm_90.
//
// All loads. Who: one thread. Coordinates are those of the box's first element, dimension 0
//   (contiguous) first; they may lie outside the tensor, but along dimension 0 at a multiple of
//   16 bytes. dst_addr: a multiple of 128, and of the swizzle's pattern (1024 bytes for 128B)
//   where rows are to start with row 0 of the pattern: the swizzle follows the bits of the
//   address in shared memory, not the rows of the box. That of 128 bytes adds (xor) bits 7 to 9
//   to bits 4 to 6.
// Does: starts a copy of the box; elements outside the tensor become zero (or NaN, as the map
//   says). When it has landed, the mbarrier's phase has got the bytes of the whole box.
// Before: mbarrier_arrive_expect_tx with those bytes; nobody reads the old contents any more.
// After: visible to those who see the mbarrier's phase end.

#pragma once

#include <cuda.h>

#include <cstdint>

namespace gg::ptx {

// Who: one thread, early. Fetches the tensor map itself, so that the first copy need not
// wait for it.
__device__ inline void prefetch_tensormap(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// cp.async.bulk.tensor, global to the shared memory of this block.
__device__ inline void tma_load_1d(uint32_t dst_addr, const CUtensorMap* map, int c0, uint32_t bar_addr) {
  asm volatile(
      "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2}], "
      "[%3];" ::"r"(dst_addr),
      "l"(map), "r"(c0), "r"(bar_addr)
      : "memory");
}
__device__ inline void tma_load_2d(uint32_t dst_addr, const CUtensorMap* map, int c0, int c1,
                                   uint32_t bar_addr) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
      "%3}], "
      "[%4];" ::"r"(dst_addr),
      "l"(map), "r"(c0), "r"(c1), "r"(bar_addr)
      : "memory");
}
__device__ inline void tma_load_3d(uint32_t dst_addr, const CUtensorMap* map, int c0, int c1, int c2,
                                   uint32_t bar_addr) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, "
      "%4}], [%5];" ::"r"(dst_addr),
      "l"(map), "r"(c0), "r"(c1), "r"(c2), "r"(bar_addr)
      : "memory");
}
__device__ inline void tma_load_5d(uint32_t dst_addr, const CUtensorMap* map, int c0, int c1, int c2, int c3,
                                   int c4, uint32_t bar_addr) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, "
      "%4, %5, %6}], [%7];" ::"r"(dst_addr),
      "l"(map), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4), "r"(bar_addr)
      : "memory");
}

// The same to every block of the cluster whose bit is set in `blocks`: the box and the bytes of its
// mbarrier go to the addresses there that dst_addr and bar_addr are here.
__device__ inline void tma_load_2d_multicast(uint32_t dst_addr, const CUtensorMap* map, int c0, int c1,
                                             uint32_t bar_addr, uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(dst_addr),
      "l"(map), "r"(c0), "r"(c1), "r"(bar_addr), "h"(blocks)
      : "memory");
}

__device__ inline void tma_load_3d_multicast(uint32_t dst_addr, const CUtensorMap* map, int c0, int c1,
                                             int c2, uint32_t bar_addr, uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(dst_addr),
      "l"(map), "r"(c0), "r"(c1), "r"(c2), "r"(bar_addr), "h"(blocks)
      : "memory");
}

// tma_load_2d and tma_load_3d for pairs of blocks, ranks 2i and 2i + 1 of the cluster, that share
// an mbarrier. Needs sm_100a. The box goes to dst_addr of this block, and its bytes count at the
// mbarrier of the even block at the offset of bar_addr. An address in shared memory has the block's
// rank in its bits 24 and up, so that clearing bit 24 names the even block of the pair. The PTX ISA
// does not say so; CUTLASS has this mask, as Sm100MmaPeerBitMask in cute/arch/copy_sm100_tma.hpp.
// The documented way to such an address is mapa.
// Before: mbarrier_arrive_expect_tx in the even block alone, with the bytes of both blocks' boxes;
//   and a cluster barrier after the mbarrier's initialisation.
// After: visible to those of the even block who see the phase end.
__device__ inline void tma_load_2d_pair(uint32_t dst_addr, const CUtensorMap* map, int c0, int c1,
                                        uint32_t bar_addr) {
  constexpr uint32_t kEvenBlock = 0xFEFFFFFF;
  asm volatile(
      "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%2, %3}], [%4];" ::"r"(dst_addr),
      "l"(map), "r"(c0), "r"(c1), "r"(bar_addr & kEvenBlock)
      : "memory");
}
__device__ inline void tma_load_3d_pair(uint32_t dst_addr, const CUtensorMap* map, int c0, int c1, int c2,
                                        uint32_t bar_addr) {
  constexpr uint32_t kEvenBlock = 0xFEFFFFFF;
  asm volatile(
      "cp.async.bulk.tensor.3d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%2, %3, %4}], [%5];" ::"r"(dst_addr),
      "l"(map), "r"(c0), "r"(c1), "r"(c2), "r"(bar_addr & kEvenBlock)
      : "memory");
}

// tma_load_3d_pair to every block of the cluster whose bit is set in `blocks`: the box goes
// to dst_addr there, and the bytes of each box count at the mbarrier of the even block of
// the pair that it has gone to. Source: PTX ISA, cp.async.bulk.tensor,
// `.multicast::cluster` with `.cta_group::2`.
__device__ inline void tma_load_3d_pair_multicast(uint32_t dst_addr, const CUtensorMap* map, int c0, int c1,
                                                  int c2, uint32_t bar_addr, uint16_t blocks) {
  constexpr uint32_t kEvenBlock = 0xFEFFFFFF;
  asm volatile(
      "cp.async.bulk.tensor.3d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(dst_addr),
      "l"(map), "r"(c0), "r"(c1), "r"(c2), "r"(bar_addr & kEvenBlock), "h"(blocks)
      : "memory");
}

// How the L2 is to keep what a copy brings, once it is full: what nobody reads again goes first.
// createpolicy. Who: any thread. The policy as copies below take it.
__device__ inline uint64_t evict_first_policy() {
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0;" : "=l"(policy));
  return policy;
}
__device__ inline uint64_t evict_normal_policy() {  // as without one
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_normal.b64 %0;" : "=l"(policy));
  return policy;
}
__device__ inline uint64_t evict_last_policy() {
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_last.b64 %0;" : "=l"(policy));
  return policy;
}

// The loads above with such a policy.
__device__ inline void tma_load_2d(uint32_t dst_addr, const CUtensorMap* map, int c0, int c1,
                                   uint32_t bar_addr, uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], "
      "[%1, {%2, %3}], [%4], %5;" ::"r"(dst_addr),
      "l"(map), "r"(c0), "r"(c1), "r"(bar_addr), "l"(policy)
      : "memory");
}
__device__ inline void tma_load_3d(uint32_t dst_addr, const CUtensorMap* map, int c0, int c1, int c2,
                                   uint32_t bar_addr, uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], "
      "[%1, {%2, %3, %4}], [%5], %6;" ::"r"(dst_addr),
      "l"(map), "r"(c0), "r"(c1), "r"(c2), "r"(bar_addr), "l"(policy)
      : "memory");
}

// cp.async.bulk: a run of bytes, global to the shared memory of this block. Addresses and size are
// multiples of 16.
__device__ inline void bulk_load(uint32_t dst_addr, const void* src, int bytes, uint32_t bar_addr) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          dst_addr),
      "l"(src), "r"(bytes), "r"(bar_addr)
      : "memory");
}

// Who: every thread that wrote, with ordinary stores, shared memory that a copy or wgmma is to
//   read; or, in their place, the thread that starts the operation, after the barrier at which
//   it has learnt of the writes. A fence of any other thread after the barrier does nothing
//   for the operation.
// Does: makes the writes that the thread has made or learnt of visible to asynchronous operations.
// After: by those who wrote, a barrier, then the thread that starts the operation. The
//   chapters fence so.
// Source: the PTX ISA has no rule for where it stands; the model by its authors (D. Lustig, S.
//   Cooksey, O. Giroux, "Mixed-proxy extensions for the NVIDIA PTX memory consistency model", ISCA
//   2022) wants it anywhere on the way from the write to the operation, in the operation's block.
__device__ inline void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// cp.async.bulk.tensor, shared to global. Who: one thread; src_addr a multiple of 128.
// Does: starts a copy of the box at src_addr; elements outside the tensor are left out. The copy
//   joins the thread's current group.
// Before: fence_proxy_async and a barrier between the writes of the box and this, see there.
// After: bulk_commit_group, and a wait before the box is overwritten (read) or before
//   the block ends.
__device__ inline void tma_store_2d(const CUtensorMap* map, int c0, int c1, uint32_t src_addr) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map),
               "r"(c0), "r"(c1), "r"(src_addr)
               : "memory");
}

__device__ inline void tma_store_3d(const CUtensorMap* map, int c0, int c1, int c2, uint32_t src_addr) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(map),
      "r"(c0), "r"(c1), "r"(c2), "r"(src_addr)
      : "memory");
}

// tma_store_2d with a policy of the L2.
__device__ inline void tma_store_2d(const CUtensorMap* map, int c0, int c1, uint32_t src_addr,
                                    uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group.L2::cache_hint [%0, {%1, %2}], [%3], %4;" ::
          "l"(map),
      "r"(c0), "r"(c1), "r"(src_addr), "l"(policy)
      : "memory");
}

// cp.reduce.async.bulk.tensor: the same as tma_store_2d, but each element in global memory becomes
// the sum of itself and the box's, one atomic addition each; the element type is the map's.
__device__ inline void tma_reduce_add_2d(const CUtensorMap* map, int c0, int c1, uint32_t src_addr) {
  asm volatile(
      "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(
          map),
      "r"(c0), "r"(c1), "r"(src_addr)
      : "memory");
}

// cp.async.bulk: a run of bytes, shared to global. Rules of tma_store_2d; addresses and size
// multiples of 16.
__device__ inline void bulk_store(void* dst, uint32_t src_addr, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(dst), "r"(src_addr),
               "r"(bytes)
               : "memory");
}

// Who: the thread that started stores.
// Does: makes one group of those it has started since its last commit. The group belongs to this
//   thread: to a wait of another thread it is nothing.
__device__ inline void bulk_commit_group() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Who: the thread that committed groups.
// Does: waits until at most N of the groups it committed last are unfinished.
// After: what the older groups wrote is in global memory.
template <int N>
__device__ inline void bulk_wait_group() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(N) : "memory");
}

// The same for their sources only.
// After: the shared memory they copied may be overwritten; what they write may not be visible yet.
template <int N>
__device__ inline void bulk_wait_group_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}

}  // namespace gg::ptx
