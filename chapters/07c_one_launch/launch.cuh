// SPDX-License-Identifier: MIT
//
// The host checks limits, makes tensor maps and launches.

#pragma once

#include "common/kernel/check.h"
#include "common/kernel/launch.h"
#include "common/kernel/tensor_map.h"
#include "kernel.cuh"

namespace chapter {

template <class C, class T>
void launch_as(const T* a, const T* b, T* d, const gg::Offsets& offsets, int64_t rows, int groups, int n,
               int k, int blocks, cudaStream_t stream) {
  // B has three dimensions: after a group's last column come zeros, and not the next group's weights.
  const Maps maps = {gg::make_swizzled_map(a, {k, rows}, {BK, C::BM}),
                     gg::make_swizzled_map(b, {k, n, groups}, {BK, C::BN, 1})};
  gg::launch_kernel({.grid = dim3(unsigned(blocks ? blocks : gg::multiprocessors())),
                     .threads = C::THREADS,
                     .shared_bytes = C::SHARED_BYTES,
                     .stream = stream,
                     .dependent = true},
                    grouped_gemm<C, T>, maps, d, offsets, groups, n, k);
}

// A [rows,K], B [G,N,K], D [rows,N] and offsets [G+1] on the device. `blocks` 0: one for each multiprocessor.
template <class T>
void launch(const T* a, const T* b, T* d, const gg::Offsets& offsets, int64_t rows, int groups, int n, int k,
            gg::TileShape tile, int blocks, cudaStream_t stream) {
  GG_REQUIRE(k > 0, "K=%d: a consumer gives back the stage of a last slice, so there must be one", k);
  auto* launch_tile = tile.m == 128 && tile.n == 128   ? launch_as<Config<128, 128>, T>
                      : tile.m == 128 && tile.n == 256 ? launch_as<Config<128, 256>, T>
                      : tile.m == 64 && tile.n == 128  ? launch_as<Config<64, 128>, T>
                      : tile.m == 64 && tile.n == 64   ? launch_as<Config<64, 64>, T>
                                                       : nullptr;
  GG_REQUIRE(launch_tile, "--tile %dx%d: tiles are 128x128, 128x256, 64x128 or 64x64", tile.m, tile.n);
  launch_tile(a, b, d, offsets, rows, groups, n, k, blocks, stream);
}

}  // namespace chapter
