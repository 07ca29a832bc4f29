// SPDX-License-Identifier: MIT
//
// The host checks limits, makes tensor maps and launches.

#pragma once

#include "common/kernel/check.h"
#include "common/kernel/launch.h"
#include "common/kernel/tensor_map.h"
#include "kernel.cuh"

namespace chapter {

// A [rows,K], B [G,N,K], D [rows,N] and offsets[G+1] on the device. K and N: multiples of 8.
template <class T, class D, class Offset>
void launch(const T* a, const T* b, D* d, const Offset* offsets, int64_t rows, int groups, int n, int k,
            gg::TileShape tile, int blocks, cudaStream_t stream) {
  GG_REQUIRE(groups <= MAX_GROUPS, "G=%d: the schedule has room for %d groups", groups, MAX_GROUPS);
  auto* kernel = tile.n == 64    ? grouped_gemm<Config<T, D, 64, Offset>>
                 : tile.n == 128 ? grouped_gemm<Config<T, D, 128, Offset>>
                 : tile.n == 256 ? grouped_gemm<Config<T, D, 256, Offset>>
                                 : nullptr;
  GG_REQUIRE(tile.m == BM && kernel, "--tile %dx%d: tiles are 128x64, 128x128 or 128x256", tile.m, tile.n);
  const auto map = [k](const T* matrices, int64_t count, int64_t matrix_rows, int box_rows) {
    return gg::make_tensor_map({.data = matrices,  // type: bf16, also for f16, as TMA copies bits
                                .dims = {k, matrix_rows, count},
                                .stride_bytes = {k * int64_t(2), matrix_rows * k * 2},
                                .box = {BK, box_rows, 1},
                                .swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
  };
  const Maps maps = {map(a, 1, rows, BM), map(b, groups, n, tile.n)};
  const int multiprocessors = gg::multiprocessors();
  const int planners = groups < PLANNERS ? (groups + 31) / 32 * 32 : PLANNERS;
  plan<<<1, planners, 0, stream>>>(offsets, n, groups, tile.n);
  GG_CHECK(cudaGetLastError());
  gg::launch_kernel({.grid = dim3(unsigned(blocks ? blocks : multiprocessors)),
                     .threads = THREADS,
                     .shared_bytes = SHARED_BYTES,
                     .stream = stream},
                    kernel, maps, d, offsets, groups, n, k);
}

}  // namespace chapter
