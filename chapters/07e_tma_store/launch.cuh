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
template <class T, class C>
void launch_as(const T* a, const T* b, T* d, int64_t rows, const Problem& problem, cudaStream_t stream) {
  const int64_t n = problem.n, k = problem.k, row_bytes = k * 2;
  GG_REQUIRE(n % 8 == 0 && k % 8 == 0, "N=%d, K=%d: TMA and D's rows want multiples of 8", int(n), int(k));
  const auto map = [](const T* data, std::vector<int64_t> dims, std::vector<int64_t> strides,
                      std::vector<int> box) {
    return gg::make_tensor_map({.data = data,  // of 16 bits, whatever they mean
                                .dims = dims,
                                .stride_bytes = strides,
                                .box = box,
                                .swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
  };
  // B has three dimensions: behind a group's last column come zeros, and not the next group's weights.
  Maps<C::BM> maps = {};
  maps.b = map(b, {k, n, problem.groups}, {row_bytes, n * row_bytes}, {BK, C::BN, 1});
  maps.d = map(d, {n, rows}, {n * 2}, {64, STEP});
  for (int height = STEP; height <= C::BM; height += STEP) {
    maps.a[height / STEP - 1] = map(a, {k, rows}, {row_bytes}, {BK, height});
  }
  int device = 0, multiprocessors = 0;
  GG_CHECK(cudaGetDevice(&device));
  GG_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  auto* kernel = grouped_gemm<T, C>;
  GG_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, C::SHARED_BYTES));
  cudaLaunchAttribute dependent = {};
  dependent.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  dependent.val.programmaticStreamSerializationAllowed = 1;
  const cudaLaunchConfig_t config = {
      dim3(multiprocessors), dim3(C::THREADS), C::SHARED_BYTES, stream, &dependent, 1};
  GG_CHECK(cudaLaunchKernelEx(&config, kernel, maps, d, problem));
}

template <class T>
void launch(const T* a, const T* b, T* d, int64_t rows, const Problem& problem, gg::Tile tile,
            cudaStream_t stream) {
  auto* as = tile.m == 256   ? launch_as<T, Config<2, 256, 4>>
             : tile.m == 128 ? launch_as<T, Config<2, 128, 6>>
             : tile.m == 64  ? launch_as<T, Config<2, 64, 8>>
                             : launch_as<T, Config<2, 32, 9>>;
  as(a, b, d, rows, problem, stream);
}

}  // namespace chapter
