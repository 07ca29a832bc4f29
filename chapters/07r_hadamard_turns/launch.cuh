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
  // Warp w of a consumer makes columns 16w to 16w + 15 of a tile's 64 of D: the first 8 (half 0) from
  // the sums of the first wgmma, the other 8 (half 1) from those of the second. So in each half it
  // has 16 stage rows: 8 gates, then their 8 ups. What relies on this order, and changes with it:
  // - glu.cuh: first_gate, compared below, and all that calls it; ColumnFactors (an up is PAIR / 2
  //   columns of B after its gate); activate_rows (its sum is two after its gate's);
  // - load.cuh: half 0 from 0 on of the 16, half 1 from 8 on, to where the wgmma of `right` reads;
  // - is_inside (multiply.cuh), apply (transform.cuh), write_box (store.cuh): 16 columns from 16w on.
  // Assertions repeat the map's numbers: change both. Where nothing is asserted, values are wrong.
  static_assert(16 * 2 * 2 == PAIR);                    // the dimensions between k and PAIR
  static_assert(8 * 2 * 2 * (C::BN / PAIR) == 4 * 16);  // the box: 16 stage rows of each of 4 warps
  static_assert(first_gate(0, 1) == 8);                 // half 1, the second load
  static_assert(first_gate(1, 0) == 16 && first_gate(2, 0) == PAIR);  // the last two strides
  // The last dimension goes through all groups, each with n / PAIR whole PAIRs, as load.cuh counts
  // them: the harness refuses another n. A group's last tile may have columns of later groups, or
  // after the last group zeros. Their outputs are not stored, and `is_inside` leaves them out of amax.
  const int64_t all_pairs = int64_t(groups) * n / PAIR;
  const int64_t pitch = int64_t(k) * 2;  // bytes from a column of the product to the next one
  // The third stride is less than the second: cuda.h describes no such map, the driver accepts it.
  maps.b = gg::make_tensor_map(
      {.data = b,
       .dims = {k, 16, 2, 2, all_pairs},  // k, one of 16, gate or up, warp of the two of a PAIR, PAIR
       .stride_bytes = {pitch, PAIR / 2 * pitch, 16 * pitch, PAIR * pitch},
       .box = {BK, 8, 2, 2, C::BN / PAIR},
       .swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
  // [/map]
  static_assert(C::D_BYTES == 128);  // rows that CU_TENSOR_MAP_SWIZZLE_128B swizzles as `swizzled` says
  maps.d = gg::make_tensor_map({.data = d,
                                .dims = {n / 2, rows},
                                .stride_bytes = {n / 2 * 2},  // n / 2 columns of bf16
                                .box = {C::BN / 2, STEP},
                                .swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
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
                   const gg::Offsets& offsets, int64_t rows, const Sizes& sizes, gg::TileShape tile,
                   bool dependent, cudaStream_t stream) {
  if (rows == 0) return;  // there is no tensor to map
  const int multiprocessors = gg::multiprocessors();
  decltype(&launch_as<Config<192, 5>>) best = nullptr;
  double least = INFINITY;
  // --tile names a worker's tile: of a pair of blocks, with the columns of both.
  // [choose]
  for_each_config([&]<class C>(C) {
    if (multiprocessors < C::BLOCKS || (tile.m && !(tile.m == C::BM && tile.n == C::COLUMNS))) return;
    const double cycles = tile.m ? 0 : estimate<C>(sizes, multiprocessors);
    if (cycles > least) return;
    least = cycles;
    best = launch_as<C>;
  });
  // [/choose]
  GG_REQUIRE(best, "--tile %dx%d: not in choose.cuh, or its workers have more than %d blocks", tile.m, tile.n,
             multiprocessors);
  best(a, b, d, operands, offsets, rows, sizes, dependent, stream);
}

}  // namespace chapter
