// SPDX-License-Identifier: MIT
//
// cp.async: copies from global to shared memory that go on while the thread does something else.
// PTX ISA, "Asynchronous copy: Non-bulk copy". Needs sm_80.

#pragma once

#include <cstdint>

namespace gg::ptx {

// Who: any thread, for itself.
// Does: starts a copy of 16 bytes from `src` to shared memory at `dst_addr`, both multiples of
//   16. It reads the first `src_bytes` (0 to 16) of the source and writes zeros for the rest.
//   Bypasses L1 (.cg).
// After: the bytes are there for this thread once cp_async_wait_group covers the copy's group, and
//   for the others once a barrier has followed that.
__device__ inline void cp_async_cg_16(uint32_t dst_addr, const void* src, int src_bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(dst_addr), "l"(src), "r"(src_bytes)
               : "memory");
}

// Who: any thread, for itself.
// Does: makes one group of all copies this thread has started since its last commit; none is
// a group too.
__device__ inline void cp_async_commit_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Who: any thread, for its own groups.
// Does: waits until at most N of the groups this thread committed last are unfinished.
// After: what the older groups wrote is visible to this thread; a barrier makes it visible
// to the block.
template <int N>
__device__ inline void cp_async_wait_group() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

// Who: any thread, for its own copies.
// Does: waits until every copy this thread has started is finished, committed to a group or not.
__device__ inline void cp_async_wait_all() { asm volatile("cp.async.wait_all;" ::: "memory"); }

}  // namespace gg::ptx
