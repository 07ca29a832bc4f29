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
  maps.d = gg::make_swizzled_map(d, {n, rows}, {64, STEP});
  for (int tile_rows = STEP; tile_rows <= C::BM; tile_rows += STEP) {
    maps.a[tile_rows / STEP - 1] = gg::make_swizzled_map(a, {k, rows}, {BK, tile_rows / C::CLUSTER});
  }
  // A cluster is BLOCKS blocks with consecutive numbers: block b is in cluster b / BLOCKS and has
  // rank b % BLOCKS there. The grid must be a multiple of BLOCKS. schedule_tiles relies on it.
  gg::launch_kernel({.grid = dim3(unsigned(gg::multiprocessors() / C::BLOCKS * C::BLOCKS)),
                     .threads = C::THREADS,
                     .shared_bytes = C::SHARED_BYTES,
                     .stream = stream,
                     .cluster = C::BLOCKS,
                     .dependent = true},
                    grouped_gemm<C, T>, maps, d, offsets, groups, n, k, next_counter());
}

// A [rows,K], B [G,N,K], D [rows,N] and offsets [G+1] on the device. m_total: the last offset,
// which the caller knows without reading it; `rows` may be more. m_total is only used to choose the
// tile: if it is wrong, D is right all the same.
// `tile` 0x0: 64x64, if there are four multiprocessors for each such tile, though not all of the
// clusters may run at a time; else 256x128. A tile of 64x64 has K in four splits, or in two where
// there are only two or three multiprocessors. 256x128 comes in pairs where there are two.
template <class T>
void launch(const T* a, const T* b, T* d, const gg::Offsets& offsets, int64_t rows, int64_t m_total,
            int groups, int n, int k, gg::TileShape tile, cudaStream_t stream) {
  const int multiprocessors = gg::multiprocessors();
  // [choose]
  if (tile.m == 0) {
    const int64_t tiles_m = (m_total + 64 * groups - 1) / (64 * groups);  // of a group of average rows
    const int64_t tiles_n = (n + 63) / 64;
    // The first test: with m_total 0 the second one would choose splits on one multiprocessor, too.
    const bool few = multiprocessors >= 2 && groups * tiles_m * tiles_n * 4 <= multiprocessors;
    tile = few ? gg::TileShape{64, 64} : gg::TileShape{256, 128};
  }
  // [/choose]
  GG_REQUIRE(tile.n != 64 || multiprocessors >= 2,
             "--tile 64x64: its splits want 2 multiprocessors, here is %d", multiprocessors);
  // Consumers, rows, stages, blocks side by side in N, blocks that split K. Six and seven stages
  // were not tuned: ten would fit into shared memory beside three blocks' sums.
  using Single = Config<2, 256, 4, 1, 1>;
  using Pair = Config<2, 256, 4, 2, 1>;
  using TwoSplits = Config<1, 64, 7, 1, 2>;
  using FourSplits = Config<1, 64, 6, 1, 4>;
  auto* for_256 = multiprocessors >= 2 ? launch_as<Pair, T> : launch_as<Single, T>;
  auto* splits = multiprocessors >= 4 ? launch_as<FourSplits, T> : launch_as<TwoSplits, T>;
  auto* launch_tile = tile.n == 64    ? splits  // 64x64; all others have 128 columns
                      : tile.m == 256 ? for_256
                      : tile.m == 128 ? launch_as<Config<2, 128, 6>, T>
                      : tile.m == 64  ? launch_as<Config<2, 64, 8>, T>
                                      : launch_as<Config<2, 32, 9>, T>;
  launch_tile(a, b, d, offsets, rows, groups, n, k, stream);
}

}  // namespace chapter
