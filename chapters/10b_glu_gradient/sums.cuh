// SPDX-License-Identifier: MIT
//
// dprob is a sum over columns, dbias one over rows, and both go over many tiles, of many blocks.
// Each tile stores its part of a sum. A second kernel adds the parts, always in the same order.

#pragma once

#include "common/kernel/ptx/cluster.cuh"
#include "common/kernel/types.cuh"
#include "config.cuh"

namespace chapter {

__host__ __device__ constexpr int columns_of_tiles(int n) { return (n + BN - 1) / BN; }

// Parts of sums, in the workspace.
struct Parts {
  float* prob;  // [columns_of_tiles(n)][rows]: a row's over the columns of a tile
  float* bias;  // [rows_of_bias][2N]: a column's over the rows of a tile

  // The row of `bias` of a tile with this first row. Tiles of a group begin BM rows apart
  // (TileFinder), so they have rows one after the other. A group's last such row is at most its
  // end / BM + group, and the next group's first one is no less than that plus 1: no two tiles
  // of the same columns have the same.
  __host__ __device__ static int row(int row0, int group) { return row0 / BM + group; }
  // More than any such row.
  static int64_t rows_of_bias(int64_t rows, int groups) { return rows / BM + groups; }
  // The length of `prob`, after which `bias` begins.
  static int64_t numbers_of_prob(int64_t rows, int n) { return columns_of_tiles(n) * rows; }
  static size_t bytes(int64_t rows, int groups, int n) {
    return size_t(numbers_of_prob(rows, n) + rows_of_bias(rows, groups) * 2 * n) * sizeof(float);
  }
  static Parts in(void* workspace, int64_t rows, int n) {
    auto* const first = static_cast<float*>(workspace);
    return {first, first + numbers_of_prob(rows, n)};
  }
};

constexpr int ADDING_THREADS = 256;
__host__ __device__ constexpr int blocks_for(int64_t sums) {
  return int((sums + ADDING_THREADS - 1) / ADDING_THREADS);
}

// A thread adds the parts of one sum. The first blocks make dbias, blocks_for(2n) of them a group,
// the others dprob.
__global__ void __launch_bounds__(ADDING_THREADS)
    add_parts(Parts parts, float* dprob, float* dbias, const __grid_constant__ gg::Offsets offsets,
              int groups, int rows, int n) {
  gg::ptx::griddepcontrol_wait();  // all parts are there
  const int columns = 2 * n, blocks = blocks_for(columns), block = int(blockIdx.x);
  float sum = 0;
  if (block < groups * blocks) {
    const int group = block / blocks, col = block % blocks * ADDING_THREADS + int(threadIdx.x);
    if (col >= columns) return;
    // [add]
    // A group's tiles begin BM rows apart, and their rows of parts follow each other (Parts::row).
    const int begin = offsets[group], tiles = (offsets[group + 1] - begin + BM - 1) / BM;
    const float* const first = parts.bias + int64_t(Parts::row(begin, group)) * columns + col;
    for (int tile = 0; tile < tiles; ++tile) sum += first[int64_t(tile) * columns];
    dbias[int64_t(group) * columns + col] = sum;  // 0 for a group without rows
    // [/add]
  } else {
    const int row = (block - groups * blocks) * ADDING_THREADS + int(threadIdx.x);
    if (row >= offsets[groups]) return;
    for (int tile = 0; tile < columns_of_tiles(n); ++tile) sum += parts.prob[int64_t(tile) * rows + row];
    dprob[row] = sum;
  }
}

}  // namespace chapter
