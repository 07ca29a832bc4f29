// SPDX-License-Identifier: MIT
//
// The host makes tensor maps and launches.

#pragma once

#include "common/kernel/check.h"
#include "common/kernel/launch.h"
#include "common/kernel/tensor_map.h"
#include "kernel.cuh"

namespace chapter {

// A or B [rows,columns], so that a box gets zeros from any row s on. Element (c, r, s) is column c of
// row s + r - BK: each s has a window, the BK rows before row s, and r counts rows in it. What a box
// has past the window's end is outside the map, and TMA fills it with zeros. s is at most `rows`,
// where the last group ends. For s < BK a window begins before `data`, and so does the map;
// load_tiles reads none of these rows. Windows overlap, which TMA allows, as it only computes
// addresses: each stride is to be a multiple of 16 bytes, and of the one before (CUDA Driver API,
// "Tensor Map Object Management").
// [map]
template <class T>
CUtensorMap token_map(const T* data, int64_t rows, int columns, int box_rows) {
  static_assert(BOX * int(sizeof(T)) == ROW_BYTES);  // A and B have 16 bits
  const int64_t row_bytes = int64_t(columns) * int64_t(sizeof(T));
  const auto begin = reinterpret_cast<uintptr_t>(data) - uintptr_t(BK * row_bytes);
  return gg::make_tensor_map({.data = reinterpret_cast<const void*>(begin),
                              .dims = {columns, BK, rows + 1},
                              .stride_bytes = {row_bytes, row_bytes},
                              .box = {BOX, box_rows, 1},
                              .swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
}
// [/map]

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
  const Maps maps = {.a = token_map(a, rows, k, BK),
                     .b = token_map(b, rows, n, C::SHARE),
                     .d = output_map(d, int64_t(groups) * k, n)};
  gg::launch_kernel({.grid = dim3(unsigned(gg::multiprocessors() / C::CLUSTER * C::CLUSTER)),
                     .threads = C::THREADS,
                     .shared_bytes = C::SHARED_BYTES,
                     .stream = stream,
                     .cluster = C::CLUSTER,
                     .dependent = true},
                    weight_gradient<C, T, D>, maps, d, offsets, groups, n, k, accumulate, next_counter());
}

// A [rows,K], B [rows,N], D [G,K,N] and offsets [G+1] on the device. `accumulate`: adds to D.
// Workers are pairs of blocks, but single blocks on a device with one multiprocessor.
template <class T, class D>
void launch(const T* a, const T* b, D* d, const gg::Offsets& offsets, int64_t rows, int groups, int n, int k,
            bool accumulate, cudaStream_t stream) {
  auto* const launch_workers =
      gg::multiprocessors() > 1 ? launch_as<Config<2>, T, D> : launch_as<Config<1>, T, D>;
  launch_workers(a, b, d, offsets, rows, groups, n, k, accumulate, stream);
}

}  // namespace chapter
