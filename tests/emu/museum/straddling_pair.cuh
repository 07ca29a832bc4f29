// SPDX-License-Identifier: MIT
//
// Gradients of weights: D[g] = A[g]^T B[g] over the rows of group g. The two blocks of a cluster
// share each slice of B by multicast. A group has three tiles, and the second pair has one tile
// of either group.

#pragma once

#include "common/kernel/ptx/cluster.cuh"
#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/tma.cuh"
#include "common/kernel/tensor_map.h"
#include "exhibit.h"

namespace museum::straddling_pair {

constexpr int GROUPS = 2, ROWS = 3, BN = 32, BK = 4, STAGES = 2, THREADS = 64;
constexpr int SLICES[GROUPS + 1] = {0, 2, 5};  // where each group's begin
constexpr int K = SLICES[GROUPS] * BK;

// A [K,ROWS], B [K,BN], D [GROUPS,ROWS,BN], first_slices [GROUPS+1]. A tile is one row of D: warp 0
// loads, warp 1 multiplies.
template <bool RIGHT>
__global__ void __cluster_dims__(2) __launch_bounds__(THREADS)
    gradients(const __grid_constant__ CUtensorMap b_map, const float* a, float* d, const int* first_slices) {
  __shared__ __align__(128) float b_tile[STAGES][BK][BN];
  __shared__ uint64_t full[STAGES], empty[STAGES];
  const int rank = gg::ptx::cluster_ctarank(), lane = int(threadIdx.x) % 32;
  // [mistake]
  constexpr int TILES = RIGHT ? (ROWS + 1) / 2 * 2 : ROWS;  // of a group; whole pairs are right
  // [/mistake]
  const int group = int(blockIdx.x) / TILES, row = int(blockIdx.x) % TILES;
  const bool multicast = rank == 1 || row + 1 < TILES;  // the last tile of a group has no partner
  const int first = first_slices[group], slices = first_slices[group + 1] - first;
  const uint32_t full_addr = gg::ptx::shared_addr(full), empty_addr = gg::ptx::shared_addr(empty);
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      gg::ptx::mbarrier_init(full_addr + stage * 8, 1);
      gg::ptx::mbarrier_init(empty_addr + stage * 8, multicast ? 2 : 1);
    }
    gg::ptx::fence_mbarrier_init();
  }
  gg::ptx::cluster_arrive();
  gg::ptx::cluster_wait();  // the barriers of both blocks are there
  float sum = 0;
  for (int i = 0; i < slices; ++i) {
    const int stage = i % STAGES, phase = i / STAGES & 1;
    if (threadIdx.x == 0) {
      const uint32_t bar_addr = full_addr + stage * 8, tile_addr = gg::ptx::shared_addr(b_tile[stage]);
      gg::ptx::mbarrier_wait_parity(empty_addr + stage * 8, phase ^ 1);  // both blocks have read it
      gg::ptx::mbarrier_arrive_expect_tx(bar_addr, int(sizeof b_tile[0]));
      if (!multicast) gg::ptx::tma_load_2d(tile_addr, &b_map, 0, (first + i) * BK, bar_addr);
      if (multicast && rank == 0)
        gg::ptx::tma_load_2d_multicast(tile_addr, &b_map, 0, (first + i) * BK, bar_addr, 0b11);
    } else if (threadIdx.x >= 32) {
      gg::ptx::mbarrier_wait_parity(full_addr + stage * 8, phase);  // the slice has landed
      for (int kk = 0; kk < BK; ++kk)
        sum += row < ROWS ? a[((first + i) * BK + kk) * ROWS + row] * b_tile[stage][kk][lane] : 0;
      __syncwarp();
      if (lane < (multicast ? 2 : 1))
        gg::ptx::mbarrier_arrive_cluster(gg::ptx::mapa(empty_addr + stage * 8, rank ^ lane));
    }
  }
  if (threadIdx.x >= 32 && row < ROWS) d[(group * ROWS + row) * BN + lane] = sum;
  __syncwarp();
  gg::ptx::cluster_arrive();
  gg::ptx::cluster_wait();  // nobody arrives at a block that has ended
}

template <bool RIGHT>
Verdict run() {
  const std::vector<float> a = whole_numbers<float>(K * ROWS), b = whole_numbers<float>(K * BN);
  const Array<float> a_device(a), b_device(b), d(std::vector<float>(GROUPS * ROWS * BN));
  const Array<int> slices(std::vector<int>(SLICES, SLICES + GROUPS + 1));
  const CUtensorMap b_map = gg::make_tensor_map({.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
                                                 .data = b_device.get(),
                                                 .dims = {BN, K},
                                                 .stride_bytes = {BN * 4},
                                                 .box = {BN, BK}});
  gradients<RIGHT><<<GROUPS*(RIGHT ? 4 : 3), THREADS>>>(b_map, a_device.get(), d.get(), slices.get());
  std::vector<float> expected(GROUPS * ROWS * BN);
  for (int i = 0; i < int(expected.size()); ++i) {
    const int group = i / BN / ROWS, row = i / BN % ROWS, col = i % BN;
    for (int k = SLICES[group] * BK; k < SLICES[group + 1] * BK; ++k)
      expected[size_t(i)] += a[size_t(k * ROWS + row)] * b[size_t(k * BN + col)];
  }
  return compare(d.read(), expected);
}

}  // namespace museum::straddling_pair
