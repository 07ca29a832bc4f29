// SPDX-License-Identifier: MIT
//
// The host checks limits, makes tensor maps and launches.

#pragma once

#include "common/kernel/check.h"
#include "common/kernel/launch.h"
#include "common/kernel/tensor_map.h"
#include "kernel.cuh"

namespace chapter {

// A [rows,K], B [G,N,K], of E2M1 two elements to a byte, the even one low; D [rows,N], ends[G] without a 0 in
// front; scales in atoms of 128 rows by four scale blocks of V k, SFA [rows/128][K/4V][512], SFB
// [G][N/128][K/4V][512], rounded up. K: a multiple of 16, with E2M1 of 32; N: of 8.
// An atom's bytes past K must not be NaN, 0xff in UE8M0 and 0x7f in UE4M3: zeros times NaN are NaN.
template <class Scale, int V, class T, class D>
void launch(const T* a, const T* b, const uint8_t* sfa, const uint8_t* sfb, D* d, const int* ends,
            int64_t rows, int groups, int n, int k, gg::ClusterTileShape tile, cudaStream_t stream) {
  using C = Config<T, Scale, V, D>;
  GG_REQUIRE(groups <= MAX_GROUPS, "G=%d: the schedule has room for %d groups", groups, MAX_GROUPS);
  GG_REQUIRE(n % 8 == 0 && k % (16 * C::IN_BYTE) == 0,
             "N=%d, K=%d: TMA wants multiples of %d for K, D's stores of 8 for N", n, k, 16 * C::IN_BYTE);
  GG_REQUIRE(tile.m == BM && tile.n == BN && tile.cluster == CTA_GROUP, "--tile %dx%d: tiles are 256x256",
             tile.m, tile.n);
  const auto map = [row_bytes = k / C::IN_BYTE](const T* matrices, int64_t count, int64_t matrix_rows,
                                                int box_rows) {
    return gg::make_tensor_map({.type = CU_TENSOR_MAP_DATA_TYPE_UINT8,
                                .data = matrices,
                                .dims = {row_bytes, matrix_rows, count},
                                .stride_bytes = {row_bytes, matrix_rows * row_bytes},
                                .box = {ROW_BYTES, box_rows, 1},
                                .swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
  };
  const auto scale_map = [k](const uint8_t* scales, int64_t rows_of_atoms) {
    const int64_t k_atoms = (k + ATOM_BLOCKS * V - 1) / (ATOM_BLOCKS * V);
    // Words of 4 bytes: a box has at most 256 elements along a dimension, and an atom has 512 bytes. A box is
    // a slice's part of one row of atoms: load.cuh has a load for each row of SFB.
    return gg::make_tensor_map({.type = CU_TENSOR_MAP_DATA_TYPE_INT32,  // a row's four scales
                                .data = scales,
                                .dims = {ATOM_BYTES / 4, k_atoms, rows_of_atoms},
                                .stride_bytes = {ATOM_BYTES, k_atoms * ATOM_BYTES},
                                .box = {ATOM_BYTES / 4, C::ATOMS, 1}});
  };
  // How many atoms so many rows take. `sfb_rows` of load.cuh is atoms_of(n).
  const auto atoms_of = [](int64_t extent) { return (extent + ATOM_ROWS - 1) / ATOM_ROWS; };
  // The bytes that load.cuh expects are those of the boxes: A, B, SFA, and SFB's of both blocks.
  static_assert(C::STAGE_BYTES ==
                (BLOCK_ROWS + BN / CTA_GROUP) * ROW_BYTES + (1 + CTA_GROUP) * C::ATOMS * ATOM_BYTES);
  const Maps maps = {map(a, 1, rows, BLOCK_ROWS), map(b, groups, n, BN / CTA_GROUP),
                     scale_map(sfa, atoms_of(rows)), scale_map(sfb, groups * atoms_of(n))};
  auto* kernel = grouped_gemm<C>;
  const int multiprocessors = gg::multiprocessors();
  const int planners = groups < PLANNERS ? (groups + 31) / 32 * 32 : PLANNERS;
  GG_REQUIRE(multiprocessors >= CTA_GROUP, "a pair of blocks wants 2 multiprocessors, here is %d",
             multiprocessors);
  plan<<<1, planners, 0, stream>>>(ends, n, groups, BM, BN);
  GG_CHECK(cudaGetLastError());
  // x: the rank in the pair (`__cluster_dims__` in kernel.cuh), y: which pair. All roles rely on it.
  const dim3 grid(CTA_GROUP, unsigned(multiprocessors / CTA_GROUP));
  gg::launch_kernel({.grid = grid, .threads = THREADS, .shared_bytes = SHARED_BYTES, .stream = stream},
                    kernel, maps, d, ends, groups, n, k);
}

}  // namespace chapter
