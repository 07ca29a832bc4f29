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
               int k, cudaStream_t stream) {
  // B has three dimensions: after a group's last column come zeros, and not the next group's weights.
  Maps<C> maps;
  maps.b = gg::make_swizzled_map(b, {k, n, groups}, {BK, C::BN, 1});
  // load_tiles finds a width's map by the same index.
  for (int width = STEP; width <= C::BM; width += STEP) {
    maps.a[width / STEP - 1] = gg::make_swizzled_map(a, {k, rows}, {BK, width});
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
  GG_REQUIRE(k > 0, "K=%d: a consumer gives back the stage of a last slice, so there must be one", k);
  // Stages that fit in 194 KB: config.cuh allows 226, of which D takes up to 32 in chapter 07e.
  auto* launch_tile = tile.m == 256   ? launch_as<Config<256, 4>, T>
                      : tile.m == 128 ? launch_as<Config<128, 6>, T>
                      : tile.m == 64  ? launch_as<Config<64, 8>, T>
                      : tile.m == 32  ? launch_as<Config<32, 9>, T>
                                      : nullptr;
  GG_REQUIRE(launch_tile && tile.n == 128, "--tile %dx%d: launch() has no such tile", tile.m, tile.n);
  launch_tile(a, b, d, offsets, rows, groups, n, k, stream);
}

}  // namespace chapter
