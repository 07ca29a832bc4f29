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
               int k, gg::TileShape tile, cudaStream_t stream) {
  GG_REQUIRE(tile.m == C::BM, "main.cu has tiles of %d rows, for which `launch` has no Config", tile.m);
  // B has three dimensions: after a group's last column come zeros, and not the next group's weights.
  Maps<C> maps;
  maps.b = gg::make_swizzled_map(b, {k, n, groups}, {BK, C::BN, 1});
  maps.d = gg::make_swizzled_map(d, {n, rows}, {64, STEP});
  for (int tile_rows = STEP; tile_rows <= C::BM; tile_rows += STEP) {
    maps.a[tile_rows / STEP - 1] = gg::make_swizzled_map(a, {k, rows}, {BK, tile_rows});
  }
  gg::launch_kernel({.grid = dim3(unsigned(gg::multiprocessors())),
                     .threads = C::THREADS,
                     .shared_bytes = C::SHARED_BYTES,
                     .stream = stream,
                     .dependent = true},
                    grouped_gemm<C, T>, maps, d, offsets, groups, n, k);
}

// A [rows,K], B [G,N,K], D [rows,N] and offsets [G+1] on the device. `tile` is one of main.cu's.
template <class T>
void launch(const T* a, const T* b, T* d, const gg::Offsets& offsets, int64_t rows, int groups, int n, int k,
            gg::TileShape tile, cudaStream_t stream) {
  auto* launch_tile = tile.m == 256   ? launch_as<Config<256, 4>, T>
                      : tile.m == 128 ? launch_as<Config<128, 6>, T>
                      : tile.m == 64  ? launch_as<Config<64, 8>, T>
                                      : launch_as<Config<32, 9>, T>;
  launch_tile(a, b, d, offsets, rows, groups, n, k, tile, stream);
}

}  // namespace chapter
