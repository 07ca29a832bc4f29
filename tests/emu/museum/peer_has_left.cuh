// SPDX-License-Identifier: MIT
//
// One block of a cluster asks an atomic counter for all four, and the others read the answer in
// its shared memory.

#pragma once

#include "common/kernel/ptx/cluster.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "exhibit.h"

namespace museum::peer_has_left {

constexpr int BLOCKS = 4, THREADS = 32, ROWS = 1024;

// D [BLOCKS,ROWS]: the number of the tile that the cluster has, which every row asks for again.
template <bool RIGHT>
__global__ void __cluster_dims__(BLOCKS) __launch_bounds__(THREADS) claim(int* counter, int* d) {
  __shared__ int tile;
  const int rank = gg::ptx::cluster_ctarank();
  if (rank == 0 && threadIdx.x == 0) tile = atomicAdd(counter, 1);
  __syncwarp();
  gg::ptx::cluster_arrive();
  gg::ptx::cluster_wait();  // the number is there
  const gg::ptx::ClusterAddr tile_of_0 = gg::ptx::mapa(gg::ptx::shared_addr(&tile), 0);
  for (int row = int(threadIdx.x); rank > 0 && row < ROWS; row += THREADS)
    d[rank * ROWS + row] = int(gg::ptx::ld_shared_cluster(tile_of_0));
  // [mistake]
  if (RIGHT) {
    __syncwarp();
    gg::ptx::cluster_arrive();
    gg::ptx::cluster_wait();  // all have read
  }
  // [/mistake]
}

template <bool RIGHT>
Verdict run() {
  const Array<int> counter{{7}}, d{std::vector<int>(BLOCKS * ROWS)};
  claim<RIGHT><<<BLOCKS, THREADS>>>(counter.get(), d.get());
  const std::vector<int> got = d.read();
  for (int i = ROWS; i < BLOCKS * ROWS; ++i)
    if (got[size_t(i)] != 7) return gg::format("element %d: expected 7, got %d", i, got[size_t(i)]);
  return "";
}

}  // namespace museum::peer_has_left
