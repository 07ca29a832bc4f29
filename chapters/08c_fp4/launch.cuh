// SPDX-License-Identifier: MIT
//
// The host checks limits, makes tensor maps and launches.

#pragma once

#include "common/kernel/check.h"
#include "common/kernel/launch.h"
#include "common/kernel/tensor_map.h"
#include "kernel.cuh"

namespace chapter {

// A [rows,K/2], B [G,N,K/2] in bytes of two elements, the even one low; D [rows,N], ends[G] without a 0 in
// front; scales in atoms of 128 rows by four scale blocks of V k, SFA [rows/128][K/(4V)][512], SFB
// [G][N/128][K/(4V)][512], rounded up. K: multiples of 32, N: multiples of 8. An atom's bytes past K must
// not be NaN, 0xff in UE8M0 and 0x7f in UE4M3: zeros times NaN are NaN.
template <class Scale, int V, class D>
void launch(const gg::e2m1* a, const gg::e2m1* b, const uint8_t* sfa, const uint8_t* sfb, D* d,
            const int* ends, int64_t rows, int groups, int n, int k, gg::TileShape tile, int blocks,
            cudaStream_t stream) {
  GG_REQUIRE(groups <= MAX_GROUPS, "G=%d: the schedule has room for %d groups", groups, MAX_GROUPS);
  auto* kernel = tile.n == 128   ? grouped_gemm<Config<Scale, V, D, 128>>
                 : tile.n == 256 ? grouped_gemm<Config<Scale, V, D, 256>>
                                 : nullptr;
  GG_REQUIRE(tile.m == BM && kernel, "--tile %dx%d: tiles are 128x128 or 128x256", tile.m, tile.n);
  const auto map = [row_bytes = k / 2](const gg::e2m1* matrices, int64_t count, int64_t matrix_rows,
                                       int box_rows) {
    return gg::make_tensor_map({.type = CU_TENSOR_MAP_DATA_TYPE_UINT8,
                                .data = matrices,
                                .dims = {row_bytes, matrix_rows, count},
                                .stride_bytes = {row_bytes, matrix_rows * row_bytes},
                                .box = {ROW_BYTES, box_rows, 1},
                                .swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
  };
  // [map]
  constexpr int ATOMS = Config<Scale, V, D, 128>::ATOMS;
  static_assert(ATOMS == Config<Scale, V, D, 256>::ATOMS);  // one box serves all tiles
  const auto scale_map = [k](const uint8_t* scales, int64_t rows_of_atoms, int box_atoms) {
    const int64_t k_atoms = (k + ATOM_BLOCKS * V - 1) / (ATOM_BLOCKS * V);
    // Words of 4 bytes: a box has at most 256 elements along a dimension, and an atom has 512 bytes.
    return gg::make_tensor_map({.type = CU_TENSOR_MAP_DATA_TYPE_INT32,  // a row's four scales
                                .data = scales,
                                .dims = {ATOM_BYTES / 4, k_atoms, rows_of_atoms},
                                .stride_bytes = {ATOM_BYTES, k_atoms * ATOM_BYTES},
                                .box = {ATOM_BYTES / 4, ATOMS, box_atoms}});  // [box_atoms][ATOMS][512]
  };
  // [/map]
  // How many atoms so many rows take. `sfb_rows` of load.cuh is atoms_of(n).
  const auto atoms_of = [](int64_t extent) { return (extent + ATOM_ROWS - 1) / ATOM_ROWS; };
  // The bytes of these four boxes are STAGE_BYTES of config.cuh. If N ends inside a tile, SFB's box
  // may reach past the group's atoms: what it brings then scales columns that are not stored.
  const Maps maps = {map(a, 1, rows, BM), map(b, groups, n, tile.n), scale_map(sfa, atoms_of(rows), 1),
                     scale_map(sfb, groups * atoms_of(n), tile.n / ATOM_ROWS)};
  const int multiprocessors = gg::multiprocessors();
  const int planners = groups < PLANNERS ? (groups + 31) / 32 * 32 : PLANNERS;
  plan<<<1, planners, 0, stream>>>(ends, n, groups, tile.m, tile.n);
  GG_CHECK(cudaGetLastError());
  gg::launch_kernel({.grid = dim3(unsigned(blocks ? blocks : multiprocessors)),
                     .threads = THREADS,
                     .shared_bytes = SHARED_BYTES,
                     .stream = stream},
                    kernel, maps, d, ends, groups, n, k);
}

}  // namespace chapter
