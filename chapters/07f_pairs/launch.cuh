// SPDX-License-Identifier: MIT
//
// The host makes tensor maps and launches.

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
  maps.d = gg::make_swizzled_map(d, {n, rows}, {64, STEP});
  // load_tiles relies on these boxes: CLUSTER of them have a tile's rows, whose bytes `full` expects.
  static_assert(STEP % C::CLUSTER == 0);
  for (int tile_rows = STEP; tile_rows <= C::BM; tile_rows += STEP) {
    maps.a[tile_rows / STEP - 1] = gg::make_swizzled_map(a, {k, rows}, {BK, tile_rows / C::CLUSTER});
  }
  // [launch]
  // A cluster is CLUSTER blocks with consecutive numbers: block b is in cluster b / CLUSTER and has
  // rank b % CLUSTER there. The grid must be a multiple of CLUSTER. schedule_tiles relies on it.
  gg::launch_kernel({.grid = dim3(unsigned(gg::multiprocessors() / C::CLUSTER * C::CLUSTER)),
                     .threads = C::THREADS,
                     .shared_bytes = C::SHARED_BYTES,
                     .stream = stream,
                     .cluster = C::CLUSTER,
                     .dependent = true},
                    grouped_gemm<C, T>, maps, d, offsets, groups, n, k);
  // [/launch]
}

// A [rows,K], B [G,N,K], D [rows,N] and offsets [G+1] on the device. `tile` is one of main.cu's:
// what one block has of a worker's tile. 256x128 in pairs, if there are two multiprocessors: with
// one, pairs would have an empty grid, which is an error. The others are for small problems,
// which would lose more at a cluster's start than pairs save. A tile that main.cu has and the table
// below has not would run as 32x128, with the right result.
template <class T>
void launch(const T* a, const T* b, T* d, const gg::Offsets& offsets, int64_t rows, int groups, int n, int k,
            gg::TileShape tile, cudaStream_t stream) {
  auto* for_256 = gg::multiprocessors() > 1 ? launch_as<Config<256, 4, 2>, T> : launch_as<Config<256, 4>, T>;
  auto* launch_tile = tile.m == 256   ? for_256
                      : tile.m == 128 ? launch_as<Config<128, 6>, T>
                      : tile.m == 64  ? launch_as<Config<64, 8>, T>
                                      : launch_as<Config<32, 9>, T>;
  launch_tile(a, b, d, offsets, rows, groups, n, k, stream);
}

}  // namespace chapter
