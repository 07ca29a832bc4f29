// SPDX-License-Identifier: MIT
//
// The host chooses a configuration, makes tensor maps and launches.

#pragma once

#include <cmath>

#include "choose.cuh"
#include "common/kernel/check.h"
#include "common/kernel/launch.h"
#include "common/kernel/tensor_map.h"
#include "kernel.cuh"

namespace chapter {

// The map of D or D_col [rows,n]: boxes of 32 rows of a consumer's 64 columns, a byte each.
inline CUtensorMap output_map(void* data, int64_t rows, int n) {
  return gg::make_tensor_map({.type = CU_TENSOR_MAP_DATA_TYPE_UINT8,
                              .data = data,
                              .dims = {n, rows},
                              .stride_bytes = {n},
                              .box = {D_BYTES, STEP},
                              .swizzle = D_SWIZZLE});
}

template <class C>
void launch_as(const bf16* a, const bf16* b, void* d, void* d_col, const Operands& operands,
               const gg::Offsets& offsets, const Sizes& sizes, bool dependent, cudaStream_t stream) {
  const auto [m_total, groups, n, k, rows_each] = sizes;
  const int64_t rows = operands.rows;
  Maps<C> maps;
  // [map]
  // B's rows as a consumer's warps want them, 16 columns each: the even ones, and then the odd
  // ones. Quantiser::sum_of relies on it, and names what else does. From N on there are zeros.
  const int64_t row = int64_t(k) * 2;
  maps.b = gg::make_tensor_map({.data = b,
                                .dims = {k, 8, 2, n / WARP_COLUMNS, groups},  // k, of 8, even or odd, warp
                                .stride_bytes = {2 * row, row, WARP_COLUMNS * row, n * row},
                                .box = {BK, 8, 2, C::BN / WARP_COLUMNS, 1},
                                .swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
  // [/map]
  maps.d = output_map(d, rows, n);
  maps.d_col = output_map(d_col, rows, n);
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
                    grouped_gemm<C>, maps, operands, offsets, groups, n, k, rows_each, next_counter(),
                    m_total < EARLY_ROWS * groups);
}

// A [rows,K], B [G,N,K], D and D_col [rows,N] and offsets [G+1], multiples of 128, on the device.
// `tile` 0x0: as estimated. `dependent`: the launch may begin before the one before has ended.
inline void launch(const bf16* a, const bf16* b, void* d, void* d_col, const Operands& operands,
                   const gg::Offsets& offsets, const Sizes& sizes, gg::ClusterTileShape tile, bool dependent,
                   cudaStream_t stream) {
  GG_REQUIRE(reinterpret_cast<uintptr_t>(operands.prob) % 8 == 0, "prob is loaded two rows at a time");
  if (operands.rows == 0) return;  // there is no tensor to map
  const Device device = {gg::multiprocessors(), gg::memory_bandwidth()};
  decltype(&launch_as<Config<2, 256, 4>>) best = nullptr;
  double least = INFINITY;
  // `estimate` is fitted to times of the product alone: around a tile it counts 1000 cycles, 700 of
  // pairs, 2000 of four splits. This epilogue takes 38 to 49 cycles for each row of a tile (stamped
  // once on an H200), however rows are cut into tiles. The constants were not fitted anew: once, on
  // `prefill`, `decode`, `skewed` and eight of `moe`, the chosen tile took up to 15 % longer than the
  // best one. m_total counts padded rows, at least 128 of a group that has any, so `early` is rare.
  // [choose]
  for_each_config([&]<class C>(C) {
    const bool is_named = tile.m == C::BM && tile.n == C::BN && tile.cluster == C::BLOCKS;
    if (device.multiprocessors < C::BLOCKS || (tile.m && !is_named)) return;
    const double cycles = estimate<C>(sizes, device);
    if (cycles > least) return;
    least = cycles;
    best = launch_as<C>;
  });
  // [/choose]
  GG_REQUIRE(best, "--tile %dx%d --cluster %dx1: wants %d multiprocessors, here are %d", tile.m, tile.n,
             tile.cluster, tile.cluster, device.multiprocessors);
  best(a, b, d, d_col, operands, offsets, sizes, dependent, stream);
}

}  // namespace chapter
