// SPDX-License-Identifier: MIT
//
// Chapter 01: a loop of launches, one thread per output.
//
// Group g owns rows offsets[g] .. offsets[g+1] of A [M,K] and D [M,N], and B[g] is [K,N], N contiguous:
//     D[row, col] = sum over k of A[row, k] * B[g][k, col]
// New here: a grouped GEMM is G plain products, each of its own number of rows.

#pragma once

#include "common/kernel/check.h"
#include "common/kernel/types.cuh"

namespace chapter {

// [block]
constexpr int THREADS_X = 32;  // one warp along the columns: its reads of B and writes of D are contiguous
constexpr int THREADS_Y = 16;  // rows of a block, one to a warp: the warps read the same B, mostly from L1
constexpr int THREADS = THREADS_X * THREADS_Y;  // other numbers give the same D, as long as this holds:
static_assert(THREADS_X % 32 == 0 && THREADS <= 1024, "whole warps in a row, 1024 threads at most");
// [/block]

// [kernel]
// The bound tells the compiler the block's size: it may use as many registers as that many threads can have.
template <class T>
__global__ void __launch_bounds__(THREADS)
    grouped_gemm(const T* a, const T* b, T* d, int rows, int n, int k) {
  const int row = int(blockIdx.x) * THREADS_Y + int(threadIdx.y);  // the grid's x counts blocks of rows
  const int col = int(blockIdx.y) * THREADS_X + int(threadIdx.x);
  if (row >= rows || col >= n) return;

  float acc = 0;
  for (int kk = 0; kk < k; ++kk) {
    acc += gg::to_float(a[int64_t(row) * k + kk]) * gg::to_float(b[int64_t(kk) * n + col]);
  }
  d[int64_t(row) * n + col] = gg::from_float<T>(acc);
}
// [/kernel]

// [launch]
// Columns of D at most: a grid's y extent is at most 65535 blocks.
constexpr int MOST_N = 65535 * THREADS_X;

// The loop needs the offsets before each launch, so it reads the host's copy, not the device's.
template <class T, class Offset>
void launch(const T* a, const T* b, T* d, const Offset* /*offsets*/, const int32_t* host_offsets, int groups,
            int n, int k, int64_t b_group_stride, cudaStream_t stream) {
  const int blocks_n = (n + THREADS_X - 1) / THREADS_X;
  for (int group = 0; group < groups; ++group) {
    const int64_t row_begin = host_offsets[group];
    const int rows = host_offsets[group + 1] - host_offsets[group];
    if (rows == 0) continue;  // a grid of no blocks is an error, not an empty launch
    const dim3 grid((rows + THREADS_Y - 1) / THREADS_Y, blocks_n);
    grouped_gemm<<<grid, dim3(THREADS_X, THREADS_Y), 0, stream>>>(
        a + row_begin * k, b + group * b_group_stride, d + row_begin * n, rows, n, k);
    GG_CHECK(cudaGetLastError());
  }
}
// [/launch]

}  // namespace chapter
