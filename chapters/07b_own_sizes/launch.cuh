// SPDX-License-Identifier: MIT
//
// The host checks limits, makes tensor maps and launches.

#pragma once

#include "common/check.h"
#include "common/tensor_map.h"
#include "kernel.cuh"

namespace chapter {

// Packed: A [rows,K], B [G,N,K], D and offsets on the device. Or, if sizes is not null, groups of their own:
// device arrays of G pointers, sizes [G,3] as M, N, K, leading dimensions [G,3] of A, B, D.
template <class T, class Offset>
void launch(const T* a, const T* b, T* d, const Offset* offsets, int64_t rows, int groups, int n, int k,
            const T* const* a_ptrs, const T* const* b_ptrs, T* const* d_ptrs, const int* sizes,
            const int* leading_dims, gg::Tile tile, int blocks, cudaStream_t stream) {
  // Patterns of maps lie over any memory: each group's gets its address, sizes and stride on the device.
  if (sizes) a = b = reinterpret_cast<const T*>(a_ptrs), rows = n = k = 8;
  GG_REQUIRE(groups <= MAX_GROUPS, "G=%d: the schedule has room for %d groups", groups, MAX_GROUPS);
  GG_REQUIRE(n % 8 == 0 && k % 8 == 0, "N=%d, K=%d: TMA and D's stores want multiples of 8", n, k);
  if (tile.m == 0) tile = {128, 128};
  auto* kernel = tile.m == 128 && tile.n == 128   ? grouped_gemm<T, 128, 128>
                 : tile.m == 128 && tile.n == 256 ? grouped_gemm<T, 128, 256>
                 : tile.m == 64 && tile.n == 128  ? grouped_gemm<T, 64, 128>
                 : tile.m == 64 && tile.n == 64   ? grouped_gemm<T, 64, 64>
                                                  : nullptr;
  GG_REQUIRE(kernel, "--tile %dx%d: tiles are 128x128, 128x256, 64x128 or 64x64", tile.m, tile.n);
  const auto map = [k](const T* matrices, int64_t count, int64_t matrix_rows, int box_rows) {
    return gg::make_tensor_map({.data = matrices,  // of 16 bits, whatever they mean
                                .dims = {k, matrix_rows, count},
                                .stride_bytes = {k * int64_t(2), matrix_rows * k * 2},
                                .box = {BK, box_rows, 1},
                                .swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
  };
  const Maps maps = {map(a, 1, rows, tile.m), map(b, groups, n, tile.n)};
  int device = 0, multiprocessors = 0;
  GG_CHECK(cudaGetDevice(&device));
  GG_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  GG_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES));
  const int warps = groups < PLANNERS ? (groups + 31) / 32 : PLANNERS / 32;
  plan<<<sizes ? 1 + (groups + warps - 1) / warps : 1, warps * 32, 0, stream>>>(
      maps, a_ptrs, b_ptrs, d_ptrs, sizes, leading_dims, d, offsets, n, k, groups, tile.m, tile.n);
  kernel<<<blocks ? blocks : multiprocessors, THREADS, SHARED_BYTES, stream>>>(maps, sizes, groups);
  GG_CHECK(cudaGetLastError());
}

}  // namespace chapter
