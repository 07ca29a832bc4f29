// SPDX-License-Identifier: MIT
//
// Tensor maps changed by kernels: PTX ISA, "Data movement and conversion instructions:
// tensormap.replace", "tensormap.cp_fenceproxy", "Memory consistency model: fence.proxy.tensormap".
// In order: a copy of a whole map in shared memory, the fields that differ, tensormap_cp_fenceproxy
// to where it is used; there fence_tensormap_acquire, then copies. Needs sm_90a.
//
// All fields. Who: one thread; map_addr: 128 bytes of shared memory at a multiple of 128, where
// a map is.
// Does: puts a value into the field; the others stay. Dimension 0, whose elements are neighbours,
// comes first. Before: ordinary writes of those bytes by other lanes want __syncwarp.

#pragma once

#include <cuda.h>

#include <cstdint>

namespace gg::ptx {

// Where the tensor begins, a multiple of 16 bytes.
__device__ inline void tensormap_replace_global_address(uint32_t map_addr, const void* tensor) {
  asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(map_addr),
               "l"(tensor)
               : "memory");
}

// Elements of the tensor along a dimension, 0 the contiguous one: what lies beyond becomes zeros.
template <int DIMENSION>
__device__ inline void tensormap_replace_global_dim(uint32_t map_addr, int elements) {
  asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], %1, %2;" ::"r"(map_addr),
               "n"(DIMENSION), "r"(elements)
               : "memory");
}

// From one element to the next along a dimension from 1 on: a multiple of 16 bytes.
template <int DIMENSION>
__device__ inline void tensormap_replace_global_stride(uint32_t map_addr, int64_t bytes) {
  asm volatile("tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], %1, %2;" ::"r"(map_addr),
               "n"(DIMENSION - 1), "l"(bytes)
               : "memory");
}

// Who: all lanes of a warp, with the same operands, after the lane's changes and a __syncwarp.
// Does: copies a map from shared memory to global memory, at a multiple of 128, and hands it
// to TMA there.
// After: fence_tensormap_acquire by every block that uses it.
__device__ inline void tensormap_cp_fenceproxy(CUtensorMap* map, uint32_t map_addr) {
  asm volatile(
      "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], "
      "128;" ::"l"(map),
      "r"(map_addr)
      : "memory");
}

// Who: the thread that starts copies with a map that lies in global memory, before the first of
//   them; its block needs it once for each change, also where an earlier kernel made the change.
// Does: TMA of this block sees the map as it was handed over, and not what it may have kept
//   of its memory.
__device__ inline void fence_tensormap_acquire(const CUtensorMap* map) {
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
}

}  // namespace gg::ptx
