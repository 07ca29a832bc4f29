// SPDX-License-Identifier: MIT
//
// The host makes tensor maps and launches.

#pragma once

#include "common/kernel/check.h"
#include "common/kernel/launch.h"
#include "common/kernel/tensor_map.h"
#include "kernel.cuh"

namespace chapter {

// D as a matrix of all groups' rows. A row of a box is as long as the swizzle's pattern.
inline CUtensorMap output_map(const float* d, int64_t rows, int n) {
  return gg::make_tensor_map({.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
                              .data = d,
                              .dims = {n, rows},
                              .stride_bytes = {int64_t(n) * 4},
                              .box = {D_COLUMNS<float>, D_ROWS},
                              .swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
}
template <class D>
CUtensorMap output_map(const D* d, int64_t rows, int n) {
  return gg::make_swizzled_map(d, {n, rows}, {D_COLUMNS<D>, D_ROWS});
}

template <class C, class T, class D>
void launch_as(const T* a, const T* b, D* d, const gg::Offsets& offsets, int64_t rows, int groups, int n,
               int k, bool accumulate, cudaStream_t stream) {
  // The maps know nothing of groups: past the last row of all come zeros.
  const Maps maps = {.a = gg::make_swizzled_map(a, {k, rows}, {BOX, BK}),
                     .b = gg::make_swizzled_map(b, {n, rows}, {BOX, C::SHARE}),
                     .d = output_map(d, int64_t(groups) * k, n)};
  gg::launch_kernel({.grid = dim3(unsigned(gg::multiprocessors() / C::CLUSTER * C::CLUSTER)),
                     .threads = C::THREADS,
                     .shared_bytes = C::SHARED_BYTES,
                     .stream = stream,
                     .cluster = C::CLUSTER,
                     .dependent = true},
                    weight_gradient<C, T, D>, maps, d, offsets, groups, n, k, accumulate, next_counter());
}

// A [rows,K], B [rows,N], D [G,K,N] and offsets [G+1] on the device. `accumulate`: adds to D. In pairs,
// where there is room for one.
template <class T, class D>
void launch(const T* a, const T* b, D* d, const gg::Offsets& offsets, int64_t rows, int groups, int n, int k,
            bool accumulate, cudaStream_t stream) {
  auto* const launch_workers =
      gg::multiprocessors() > 1 ? launch_as<Config<2>, T, D> : launch_as<Config<1>, T, D>;
  launch_workers(a, b, d, offsets, rows, groups, n, k, accumulate, stream);
}

}  // namespace chapter
