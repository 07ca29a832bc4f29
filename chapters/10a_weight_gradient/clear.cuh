// SPDX-License-Identifier: MIT
//
// The end of a group inside a slice: rows of A and B that belong to other groups, or to none, become
// zero in shared memory before they are multiplied.

#pragma once

#include "common/kernel/ptx/barrier.cuh"
#include "common/kernel/ptx/tma.cuh"
#include "config.cuh"

namespace chapter {

// Clears the rows of a slice from row `kept` on. The rows before it, 1 to BK - 1, are the group's tokens.
// Who: a whole consumer, which has waited for the slice's `full`. Afterwards it may multiply the slice.
// `barrier`: a named barrier of this consumer's own, 1 + consumer. Nothing else here uses 1 or 2.
// Both A and B are cleared: a foreign row may hold infinity or NaN, and 0 times these is NaN.
// The swizzle exchanges chunks of 16 bytes within a row of a box, so whole rows are cleared wherever
// their chunks are.
// [clear]
template <class C>
__device__ void clear_rows(const Memory& memory, int stage, int kept, int barrier) {
  const int thread = int(threadIdx.x) % 128;
  unsigned char* const a = memory.slices + stage * C::A_BYTES;
  unsigned char* const b = memory.slices + C::B_OFFSET + stage * C::B_BYTES;
  for (int at = kept * ROW_BYTES + thread * 16; at < BOX_BYTES; at += 128 * 16) {
#pragma unroll
    for (int box = 0; box < BOXES_A; ++box) *reinterpret_cast<uint4*>(a + box * BOX_BYTES + at) = uint4{};
#pragma unroll
    for (int box = 0; box < BOXES_B; ++box) *reinterpret_cast<uint4*>(b + box * BOX_BYTES + at) = uint4{};
  }
  gg::ptx::fence_proxy_async();     // wgmma finds the zeros, and TMA writes after them
  gg::ptx::bar_sync(barrier, 128);  // all of them are there
}
// [/clear]

}  // namespace chapter
