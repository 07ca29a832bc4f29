// SPDX-License-Identifier: MIT
//
// Chapters 09b and 09c: tensor maps. The host makes those of A and of weights that lie together; of weights
// that lie apart it makes patterns, and the device a map for each group.

#pragma once

#include <type_traits>

#include "common/check.h"
#include "common/ptx/shared.cuh"
#include "common/ptx/tensormap.cuh"
#include "common/tensor_map.h"
#include "common/types.cuh"
#include "schedule.cuh"

namespace chapter {

constexpr int BLOCK_ROWS = 128, BN = 256;  // of a tile: a block's rows, one for each lane of tensor memory
constexpr int ROW_BYTES = 128;             // of a slice: the most that TMA swizzles
template <class T>
constexpr int IN_BYTE = std::is_same_v<T, gg::e2m1> ? 2 : 1;  // elements of A and B
constexpr int ATOM_ROWS = 128, ATOM_BYTES = 512;  // scales of 128 rows and four blocks of k lie together

template <class T>
struct Weights {           // of all groups: in one tensor each, or by address
  const T* b;              // [G,N,K], or null
  const uint8_t* sfb;      // their scales, [G] times [N/128][K/4V][512]
  const T* const* b_ptrs;  // [G] addresses of [N,K], multiples of 16, where b is null
  const uint8_t* const* sfb_ptrs;
};
struct alignas(128) WeightMaps {
  CUtensorMap b, sfb;
};
struct Maps {
  CUtensorMap a, sfa;
  WeightMaps weights;  // of all groups, or patterns
};

__device__ WeightMaps apart_maps[MAX_GROUPS];  // at a fixed place, as the schedule is

// Each warp makes the maps of a group that its launch finds at these addresses.
__global__ void __launch_bounds__(PLANNERS, 1)
    make_apart_maps(const __grid_constant__ WeightMaps patterns, const void* const* b_ptrs,
                    const void* const* sfb_ptrs, int groups) {
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
  const int g = int(blockIdx.x) * int(blockDim.x) / 32 + warp;
  if (g >= groups) return;
  // [maps]
  // The patterns have all but the address: lane 0 puts in that of B, lane 1 that of its scales.
  __shared__ WeightMaps of_warp[PLANNERS / 32];
  const uint32_t b_addr = gg::ptx::shared_addr(&of_warp[warp].b), sfb_addr = b_addr + sizeof(CUtensorMap);
  if (lane < 2) {
    (lane == 0 ? of_warp[warp].b : of_warp[warp].sfb) = lane == 0 ? patterns.b : patterns.sfb;
    gg::ptx::tensormap_replace_global_address(lane == 0 ? b_addr : sfb_addr,
                                              lane == 0 ? b_ptrs[g] : sfb_ptrs[g]);
  }
  __syncwarp();  // both maps are in shared memory
  gg::ptx::tensormap_cp_fenceproxy(&apart_maps[g].b, b_addr);
  gg::ptx::tensormap_cp_fenceproxy(&apart_maps[g].sfb, sfb_addr);
  // [/maps]
}

// For tiles of `blocks` blocks. Weights that lie apart get their maps on the stream.
template <int V, class T>
Maps make_maps(const T* a, const uint8_t* sfa, const Weights<T>& weights, int64_t rows, int groups, int n,
               int k, int blocks, cudaStream_t stream) {
  const auto map = [row_bytes = k / IN_BYTE<T>](const T* matrices, int64_t count, int64_t matrix_rows,
                                                int box_rows) {
    return gg::make_tensor_map({.type = CU_TENSOR_MAP_DATA_TYPE_UINT8,
                                .data = matrices,
                                .dims = {row_bytes, matrix_rows, count},
                                .stride_bytes = {row_bytes, matrix_rows * row_bytes},
                                .box = {ROW_BYTES, box_rows, 1},
                                .swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
  };
  const auto scale_map = [k](const uint8_t* scales, int64_t atom_rows, int box_atoms) {
    const int64_t k_atoms = (k + 4 * V - 1) / (4 * V);
    return gg::make_tensor_map({.type = CU_TENSOR_MAP_DATA_TYPE_INT32,  // a row's four scales
                                .data = scales,
                                .dims = {ATOM_BYTES / 4, k_atoms, atom_rows},
                                .stride_bytes = {ATOM_BYTES, k_atoms * ATOM_BYTES},
                                .box = {ATOM_BYTES / 4, ROW_BYTES * IN_BYTE<T> / V / 4, box_atoms}});
  };
  const auto atoms = [](int64_t extent) { return (extent + ATOM_ROWS - 1) / ATOM_ROWS; };
  // A pattern is the map of a single group, at an address that will be replaced.
  const bool apart = !weights.b;
  const int together = apart ? 1 : groups;
  const Maps maps = {map(a, 1, rows, BLOCK_ROWS),
                     scale_map(sfa, atoms(rows), 1),
                     {map(apart ? a : weights.b, together, n, BN / blocks),
                      scale_map(apart ? sfa : weights.sfb, together * atoms(n), BN / ATOM_ROWS)}};
  if (apart) {
    const int threads = 256, map_blocks = (groups + threads / 32 - 1) / (threads / 32);
    make_apart_maps<<<unsigned(map_blocks), threads, 0, stream>>>(
        maps.weights, reinterpret_cast<const void* const*>(weights.b_ptrs),
        reinterpret_cast<const void* const*>(weights.sfb_ptrs), groups);
    GG_CHECK(cudaGetLastError());
  }
  return maps;
}

}  // namespace chapter
