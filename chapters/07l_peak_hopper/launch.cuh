// SPDX-License-Identifier: MIT
//
// The host chooses a configuration, makes tensor maps and launches.

#pragma once

#include <cmath>
#include <type_traits>

#include "choose.cuh"
#include "common/kernel/check.h"
#include "common/kernel/launch.h"
#include "common/kernel/tensor_map.h"
#include "kernel.cuh"

namespace chapter {

template <class C, class T, class D, Major B_MAJOR>
void launch_as(const T* a, const T* b, D* d, const gg::Offsets& offsets, int64_t rows, const Sizes& sizes,
               bool dependent, cudaStream_t stream) {
  const auto [m_total, groups, n, k, rows_each] = sizes;
  // B has three dimensions: after a group's last column TMA reads zeros, and not the next group's weights.
  Maps<C> maps;
  maps.b = B_MAJOR == Major::k ? gg::make_swizzled_map(b, {k, n, groups}, {BK, C::BN, 1})
                               : gg::make_swizzled_map(b, {n, k, groups}, {64, BK, 1});
  // D in f32 is stored without a map: maps.d stays unset. The kernel prefetches it all the same,
  // which loads a cache line, whatever is in it, and decodes nothing.
  if constexpr (sizeof(D) == 2) maps.d = gg::make_swizzled_map(d, {n, rows}, {64, STEP});
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
                     .dependent = dependent},
                    grouped_gemm<C, T, D, B_MAJOR>, maps, d, offsets, groups, n, k, rows_each, next_counter(),
                    m_total < EARLY_ROWS * groups);
}

// A [rows,K], B [G,N,K] (nk) or [G,K,N], D [rows,N] and offsets [G+1] on the device. `rows`: m_total
// or more. `tile` 0x0: as estimated. Where T or D is not bf16, or B is [G,K,N], `tile` is not read:
// there is one configuration. `dependent`: the launch may begin before the one before has ended.
template <class T, class D>
void launch(const T* a, const T* b, D* d, const gg::Offsets& offsets, int64_t rows, const Sizes& sizes,
            bool nk, gg::ClusterTileShape tile, bool dependent, cudaStream_t stream) {
  const Device device = {gg::multiprocessors(), gg::memory_bandwidth()};
  // Eight configurations for four pairs of T and D and two layouts of B are 64 kernels: minutes to compile.
  constexpr bool HAS_ALL_SIZES = std::is_same_v<T, bf16> && std::is_same_v<D, bf16>;
  if (!HAS_ALL_SIZES || !nk) {
    using C = Config<2, 256, 4>;
    auto* largest = nk ? launch_as<C, T, D, Major::k> : launch_as<C, T, D, Major::mn>;
    return largest(a, b, d, offsets, rows, sizes, dependent, stream);
  }
  if constexpr (HAS_ALL_SIZES) {
    decltype(&launch_as<Config<2, 256, 4>, T, D, Major::k>) best = nullptr;
    double least = INFINITY;
    // [choose]
    for_each_config([&]<class C>(C) {
      const bool is_named = tile.m == C::BM && tile.n == C::BN && tile.cluster == C::BLOCKS;
      if (device.multiprocessors < C::BLOCKS || (tile.m && !is_named)) return;
      const double cycles = estimate<C>(sizes, device);
      if (cycles > least) return;
      least = cycles;
      best = launch_as<C, T, D, Major::k>;
    });
    // [/choose]
    GG_REQUIRE(best, "--tile %dx%d --cluster %dx1: wants %d multiprocessors, here are %d", tile.m, tile.n,
               tile.cluster, tile.cluster, device.multiprocessors);
    best(a, b, d, offsets, rows, sizes, dependent, stream);
  }
}

}  // namespace chapter
