// SPDX-License-Identifier: MIT
//
// Tensor maps. The host makes those of A and SFA, and of dense weights. Of discrete weights it makes
// patterns, and the device makes a map of each group's B and one of its SFB.

#pragma once

#include <cstddef>

#include "common/kernel/check.h"
#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/tensormap.cuh"
#include "common/kernel/tensor_map.h"
#include "config.cuh"
#include "schedule.cuh"

namespace chapter {

template <class T>
struct Weights {                   // dense, one tensor of all groups' B, one of their SFB; or by address
  const T* b;                      // [G,N,K], or null
  const uint8_t* sfb;              // [G][N/128][K/4V][512], or null: if and only if b is null
  const T* const* b_ptrs;          // [G] addresses of [N,K], multiples of 16; read if b is null
  const uint8_t* const* sfb_ptrs;  // likewise, of [N/128][K/4V][512]
};

// At a fixed address: a launch allocates nothing. As with the schedule, only one launch at a time
// may use it: the next one's make_discrete_maps must begin after all loads with these maps.
__device__ WeightMaps discrete_maps[MAX_GROUPS];

// Warp g of the grid makes group g's maps, of the addresses that are in b_ptrs and sfb_ptrs now, and
// releases them; load_tiles acquires them. A block has whole warps, no more than of_warp has room
// for: make_maps, which launches it, asserts both.
__global__ void __launch_bounds__(PLANNERS, 1)
    make_discrete_maps(const __grid_constant__ WeightMaps patterns, const void* const* b_ptrs,
                       const void* const* sfb_ptrs, int groups) {
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
  const int g = int(blockIdx.x) * int(blockDim.x) / 32 + warp;
  if (g >= groups) return;  // a whole warp: all lanes of the others go on
  // [maps]
  // The patterns have all but the address: lane 0 puts in that of B, lane 1 that of its scales.
  __shared__ WeightMaps of_warp[PLANNERS / 32];
  static_assert(alignof(WeightMaps) % 128 == 0 && sizeof(CUtensorMap) == 128);  // as tensormap.* want
  static_assert(offsetof(WeightMaps, sfb) == sizeof(CUtensorMap));              // sfb_map_addr relies on it
  const uint32_t b_map_addr = gg::ptx::shared_addr(&of_warp[warp].b);
  const uint32_t sfb_map_addr = b_map_addr + sizeof(CUtensorMap);
  if (lane < 2) {
    (lane == 0 ? of_warp[warp].b : of_warp[warp].sfb) = lane == 0 ? patterns.b : patterns.sfb;
    gg::ptx::tensormap_replace_global_address(lane == 0 ? b_map_addr : sfb_map_addr,
                                              lane == 0 ? b_ptrs[g] : sfb_ptrs[g]);
  }
  __syncwarp();  // both maps are in shared memory
  // All lanes copy. A copy by other instructions would not release the map to TMA.
  gg::ptx::tensormap_cp_fenceproxy(&discrete_maps[g].b, b_map_addr);
  gg::ptx::tensormap_cp_fenceproxy(&discrete_maps[g].sfb, sfb_map_addr);
  // [/maps]
}

// Makes the maps with which the product is launched. For discrete weights it also launches
// make_discrete_maps; the product must follow on the same stream.
template <class C>
Maps make_maps(const typename C::T* a, const uint8_t* sfa, const Weights<typename C::T>& weights,
               int64_t rows, int groups, int n, int k, cudaStream_t stream) {
  const auto map = [row_bytes = k / C::IN_BYTE](const typename C::T* matrices, int64_t count,
                                                int64_t matrix_rows, int box_rows) {
    return gg::make_tensor_map({.type = CU_TENSOR_MAP_DATA_TYPE_UINT8,
                                .data = matrices,
                                .dims = {row_bytes, matrix_rows, count},
                                .stride_bytes = {row_bytes, matrix_rows * row_bytes},
                                .box = {ROW_BYTES, box_rows, 1},
                                .swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
  };
  const auto scale_map = [k](const uint8_t* scales, int64_t rows_of_atoms) {
    const int64_t k_atoms = (k + ATOM_BLOCKS * C::V - 1) / (ATOM_BLOCKS * C::V);
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
  // [patterns]
  // A pattern is the map of a single group, but at the address of A or SFA, as the driver wants a
  // valid one: make_discrete_maps replaces it. `together`: how many groups a map describes.
  // load.cuh's `matrix`, the group's number in its map, must be below it.
  const bool discrete = !weights.b;
  const int together = discrete ? 1 : groups;
  Maps maps = {};
  maps.a = map(a, 1, rows, BLOCK_ROWS);
  maps.sfa = scale_map(sfa, atoms_of(rows));
  maps.weights.b = map(discrete ? a : weights.b, together, n, BN / CTA_GROUP);
  maps.weights.sfb = scale_map(discrete ? sfa : weights.sfb, together * atoms_of(n));
  maps.discrete = discrete;
  // [/patterns]
  if (discrete) {
    constexpr int threads = 256;
    static_assert(threads % 32 == 0 && threads <= PLANNERS);          // of_warp has room for each warp
    const int blocks = (groups + threads / 32 - 1) / (threads / 32);  // a warp for each group
    make_discrete_maps<<<unsigned(blocks), threads, 0, stream>>>(
        maps.weights, reinterpret_cast<const void* const*>(weights.b_ptrs),
        reinterpret_cast<const void* const*>(weights.sfb_ptrs), groups);
    GG_CHECK(cudaGetLastError());
  }
  return maps;
}

}  // namespace chapter
