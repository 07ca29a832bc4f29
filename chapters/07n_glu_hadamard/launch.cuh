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

template <class C>
void launch_as(const bf16* a, const bf16* b, bf16* d, const Operands& operands, const gg::Offsets& offsets,
               int64_t rows, const Sizes& sizes, bool dependent, cudaStream_t stream) {
  const auto [m_total, groups, n, k, rows_each] = sizes;
  Maps<C> maps;
  // [map]
  // A PAIR's column 32 u + 8 w + i goes to its stage row 16 w + 8 u + i: gates (u = 0) and ups
  // (u = 1) in turn, 8 of each, and warp w of a consumer gets the sums of 8 gates and their ups.
  // TMA fills a stage in the order of the dimensions, i before u before w. A stride is what a step
  // of i, u, w or PAIR adds to the column's number, times pitch.
  // Relying on the order in a stage: activate_rows (an up's sum is two registers after its gate's),
  // Factors (a thread's gate is number 8 w + lane / 4), store.cuh (warp w's outputs are chunk w of a
  // row of D). Relying on an up's being 32 columns after its gate in memory: gate + PAIR / 2 in
  // Factors. Relying on a PAIR's making 32 adjacent outputs: col0 / 2 in multiply.cuh, D_BYTES, D's
  // box below. No assertion compares any of them with this map: if one differs, values are wrong.
  static_assert(8 * 2 * 4 == PAIR);  // by wgmma: a warp has two times 8 rows, a consumer has 4 warps
  // The last dimension goes through all groups, each with n / PAIR whole PAIRs, as load.cuh counts
  // them: `launch` refuses another n. A group's last tile may have columns of later groups, or
  // after the last group zeros. Their outputs are not stored.
  const int64_t all_pairs = int64_t(groups) * n / PAIR;
  const int64_t pitch = int64_t(k) * 2;  // bytes from a column of the product to the next one
  // The third stride is less than the second: cuda.h describes no such map, the driver accepts it.
  maps.b = gg::make_tensor_map({.data = b,
                                .dims = {k, 8, 2, 4, all_pairs},  // k, one of 8, gate or up, warp, PAIR
                                .stride_bytes = {pitch, PAIR / 2 * pitch, 8 * pitch, PAIR * pitch},
                                .box = {BK, 8, 2, 4, C::BN / PAIR},
                                .swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
  // [/map]
  static_assert(D_BYTES == 64);  // rows that CU_TENSOR_MAP_SWIZZLE_64B swizzles as `swizzled` says
  maps.d = gg::make_tensor_map({.data = d,
                                .dims = {n / 2, rows},
                                .stride_bytes = {n / 2 * 2},  // n / 2 columns of bf16
                                .box = {PAIR / 2, STEP},
                                .swizzle = CU_TENSOR_MAP_SWIZZLE_64B});
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
                    grouped_gemm<C>, maps, d, operands, offsets, groups, n, k, rows_each, next_counter(),
                    m_total < EARLY_ROWS * groups);
}

// A [rows,K], B [G,N,K], D [rows,N/2] and offsets [G+1] on the device. `rows`: m_total or more.
// `tile` 0x0: as estimated. `dependent`: the launch may begin before the one before has ended.
inline void launch(const bf16* a, const bf16* b, bf16* d, const Operands& operands,
                   const gg::Offsets& offsets, int64_t rows, const Sizes& sizes, gg::ClusterTileShape tile,
                   bool dependent, cudaStream_t stream) {
  GG_REQUIRE(sizes.n % PAIR == 0, "N is %d, no multiple of %d: 32 gates lie beside 32 ups", sizes.n, PAIR);
  if (rows == 0) return;  // there is no tensor to map
  const Device device = {gg::multiprocessors(), gg::memory_bandwidth()};
  decltype(&launch_as<Config<2, 256, 4>>) best = nullptr;
  double least = INFINITY;
  // `estimate` is that of the product alone. It leaves the activation out, and it counts N columns of D
  // in its bytes, where N / 2 are stored. Its constants were fitted to chapter 07l's kernel. Whether
  // others would choose better for this one was not measured.
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
  best(a, b, d, operands, offsets, rows, sizes, dependent, stream);
}

}  // namespace chapter
