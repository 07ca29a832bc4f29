// SPDX-License-Identifier: MIT
//
// The host checks limits, makes tensor maps and launches.

#pragma once

#include "common/kernel/check.h"
#include "common/kernel/launch.h"
#include "common/kernel/tensor_map.h"
#include "kernel.cuh"

namespace chapter {

// Groups of their own sizes: device arrays of G pointers, sizes [G,3] as M, N, K, and leading
// dimensions [G,3] of A, B, D. Null where groups are packed. The host cannot look into them, so the
// caller guarantees: K is not 0; N, K and leading dimensions are multiples of 8; A and B lie at
// multiples of 16 bytes, D at multiples of 4. `plan` asserts it in debug builds. The array a_ptrs
// itself lies at a multiple of 16 bytes, else the driver refuses the blank maps, which have its address.
template <class T>
struct GroupArrays {
  const T* const* a_ptrs;
  const T* const* b_ptrs;
  T* const* d_ptrs;
  const int* sizes;
  const int* leading_dims;
};

template <class C, class T, class Offset>
void launch_as(const T* a, const T* b, T* d, const Offset* offsets, int64_t rows, int groups, int n, int k,
               const GroupArrays<T>& arrays, int blocks, cudaStream_t stream) {
  static_assert(sizeof(T) == 2);  // so TMA's 16 bytes are 8 elements, here and in `plan`
  // If groups are packed, these are the maps of all A and all B: grouped_gemm loads with them, as
  // `packed`. Otherwise they are blank maps: plan makes each group's maps from them, as `blanks`.
  const Maps maps = {gg::make_swizzled_map(a, {k, rows, 1}, {BK, C::BM, 1}),
                     gg::make_swizzled_map(b, {k, n, groups}, {BK, C::BN, 1})};
  const bool own_maps = arrays.sizes != nullptr;  // plan checks `sizes` instead
  const int warps = groups < PLANNERS ? (groups + 31) / 32 : PLANNERS / 32;
  plan<<<plan_blocks(groups, warps, own_maps), warps * 32, 0, stream>>>(
      maps, arrays.a_ptrs, arrays.b_ptrs, arrays.d_ptrs, arrays.sizes, arrays.leading_dims, d, offsets, n, k,
      groups, C::BM, C::BN);
  GG_CHECK(cudaGetLastError());
  // In the stream's ordinary order: it begins when `plan` has ended, and the stream's next `plan`
  // when it has. So `plan` changes no schedule and no map that is in use.
  gg::launch_kernel({.grid = dim3(unsigned(blocks ? blocks : gg::multiprocessors())),
                     .threads = C::THREADS,
                     .shared_bytes = C::SHARED_BYTES,
                     .stream = stream},
                    grouped_gemm<C, T>, maps, own_maps, groups);
}

// Packed: A [rows,K], B [G,N,K], D and offsets on the device. Or groups of their own sizes, if
// arrays.sizes is not null. `blocks` 0: one for each multiprocessor.
template <class T, class Offset>
void launch(const T* a, const T* b, T* d, const Offset* offsets, int64_t rows, int groups, int n, int k,
            const GroupArrays<T>& arrays, gg::TileShape tile, int blocks, cudaStream_t stream) {
  // [blank]
  if (arrays.sizes) {
    // Made-up values, for blank maps: the driver wants an address and strides that are multiples of
    // 16 bytes. The array of pointers has such an address, rows of 8 elements such a stride. `plan`
    // replaces address, row stride and dimensions 0 and 1, and reads neither this n nor this k.
    a = b = reinterpret_cast<const T*>(arrays.a_ptrs);
    rows = n = k = 8;
  }
  // [/blank]
  GG_REQUIRE(groups <= MAX_GROUPS, "G=%d: the schedule has room for %d groups", groups, MAX_GROUPS);
  auto* launch_tile = tile.m == 128 && tile.n == 128   ? launch_as<Config<128, 128>, T, Offset>
                      : tile.m == 128 && tile.n == 256 ? launch_as<Config<128, 256>, T, Offset>
                      : tile.m == 64 && tile.n == 128  ? launch_as<Config<64, 128>, T, Offset>
                      : tile.m == 64 && tile.n == 64   ? launch_as<Config<64, 64>, T, Offset>
                                                       : nullptr;
  GG_REQUIRE(launch_tile, "--tile %dx%d: tiles are 128x128, 128x256, 64x128 or 64x64", tile.m, tile.n);
  launch_tile(a, b, d, offsets, rows, groups, n, k, arrays, blocks, stream);
}

}  // namespace chapter
