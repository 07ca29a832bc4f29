// SPDX-License-Identifier: MIT
//
// The host checks limits, makes tensor maps and launches.

#pragma once

#include <vector>

#include "common/check.h"
#include "common/tensor_map.h"
#include "kernel.cuh"

namespace chapter {

// A [rows,K], B [G,N,K], D [rows,N] and offsets [G+1] on the device.
template <class T>
void launch(const T* a, const T* b, T* d, int64_t rows, const Problem& problem, gg::Tile tile, int blocks,
            cudaStream_t stream) {
  const int64_t groups = problem.groups, n = problem.n, k = problem.k, row_bytes = k * 2;
  GG_REQUIRE(n % 8 == 0 && k % 8 == 0, "N=%d, K=%d: TMA and D's stores want multiples of 8", int(n), int(k));
  if (tile.m == 0) tile = {128, 128};
  auto* kernel = tile.m == 128 && tile.n == 128   ? grouped_gemm<T, 128, 128>
                 : tile.m == 128 && tile.n == 256 ? grouped_gemm<T, 128, 256>
                 : tile.m == 64 && tile.n == 128  ? grouped_gemm<T, 64, 128>
                 : tile.m == 64 && tile.n == 64   ? grouped_gemm<T, 64, 64>
                                                  : nullptr;
  GG_REQUIRE(kernel, "--tile %dx%d: tiles are 128x128, 128x256, 64x128 or 64x64", tile.m, tile.n);
  const auto map = [](const T* data, std::vector<int64_t> dims, std::vector<int64_t> strides,
                      std::vector<int> box) {
    return gg::make_tensor_map({.data = data,  // of 16 bits, whatever they mean
                                .dims = dims,
                                .stride_bytes = strides,
                                .box = box,
                                .swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
  };
  // B has three dimensions: behind a group's last column come zeros, and not the next group's weights.
  const Maps maps = {map(a, {k, rows}, {row_bytes}, {BK, tile.m}),
                     map(b, {k, n, groups}, {row_bytes, n * row_bytes}, {BK, tile.n, 1})};
  int device = 0, multiprocessors = 0;
  GG_CHECK(cudaGetDevice(&device));
  GG_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  GG_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES));
  cudaLaunchAttribute dependent = {};
  dependent.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  dependent.val.programmaticStreamSerializationAllowed = 1;
  const cudaLaunchConfig_t config = {
      dim3(blocks ? blocks : multiprocessors), dim3(THREADS), SHARED_BYTES, stream, &dependent, 1};
  GG_CHECK(cudaLaunchKernelEx(&config, kernel, maps, d, problem));
}

}  // namespace chapter
