// SPDX-License-Identifier: MIT
//
// The host makes tensor maps and launches.

#pragma once

#include "common/kernel/check.h"
#include "common/kernel/launch.h"
#include "common/kernel/tensor_map.h"
#include "kernel.cuh"

namespace chapter {

// A problem as far as the host knows it without reading the offsets. m_total: rows of all groups,
// padded. rows_each: rows of every group, or 0 if groups differ or nobody knows. If either is wrong,
// D is right all the same, but may be later. Neither may be negative, and an int must hold
// groups * rows_each.
struct Sizes {
  int64_t m_total;
  int groups, n, k, rows_each;
};

// The next launch's blocks may start early where groups have fewer rows than this on the average
// (`early` in kernel.cuh). It changes times, never D. A group that has rows has at least 128, so
// `early` is true only if most groups are empty.
constexpr int EARLY_ROWS = 48;

// The map of D or D_col [rows,n]: boxes of a tile's columns, a byte each.
template <class C>
CUtensorMap output_map(void* data, int64_t rows, int n) {
  return gg::make_tensor_map({.type = CU_TENSOR_MAP_DATA_TYPE_UINT8,
                              .data = data,
                              .dims = {n, rows},
                              .stride_bytes = {n},
                              .box = {C::D_BYTES, STEP},
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
  maps.d = output_map<C>(d, rows, n);
  maps.d_col = output_map<C>(d_col, rows, n);
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
// `tile`: a worker's, 128x256 or 128x128. 0x0: in pairs, where there is room for one and its
// second block has columns. `dependent`: the launch may begin before the one before has ended.
inline void launch(const bf16* a, const bf16* b, void* d, void* d_col, const Operands& operands,
                   const gg::Offsets& offsets, const Sizes& sizes, gg::TileShape tile, bool dependent,
                   cudaStream_t stream) {
  using Pairs = Config<128, 5, 2>;
  using Singles = Config<128, 5>;
  GG_REQUIRE(reinterpret_cast<uintptr_t>(operands.prob) % 8 == 0, "prob is loaded two rows at a time");
  if (operands.rows == 0) return;  // there is no tensor to map
  const bool has_room = gg::multiprocessors() > 1,
             wants_pairs = tile.m ? tile.n == Pairs::COLUMNS : sizes.n > Singles::COLUMNS;
  GG_REQUIRE(has_room || tile.n != Pairs::COLUMNS, "--tile %dx%d: a pair of blocks wants two multiprocessors",
             tile.m, tile.n);
  auto* const chosen = has_room && wants_pairs ? launch_as<Pairs> : launch_as<Singles>;
  chosen(a, b, d, d_col, operands, offsets, sizes, dependent, stream);
}

}  // namespace chapter
