// SPDX-License-Identifier: MIT
//
// Chapter 01: a loop of launches, one thread per output.
//
// Group g owns rows offsets[g] .. offsets[g+1]-1 of A [M,K] and D [M,N], and B[g] is [K,N], N contiguous:
//     D[row, col] = sum over k of A[row, k] * B[g][k, col]
// New here: a grouped GEMM is G plain products, each of its own number of rows.

#pragma once

#include "common/kernel/check.h"
#include "common/kernel/types.cuh"

namespace chapter {

// [block]
// A block computes THREADS_Y rows x THREADS_X columns of D. Kernel and grid use only these names:
// other sizes give the same D.
constexpr int THREADS_X = 32;  // columns: a warp's lanes access neighbours in B and in D
constexpr int THREADS_Y = 16;  // rows: here one for each warp, and all warps read the same B
constexpr int THREADS = THREADS_X * THREADS_Y;
static_assert(THREADS_X % 32 == 0, "all lanes of a warp have the same row");
static_assert(THREADS <= 1024, "CUDA allows no larger block");
// [/block]

// [kernel]
// One group: `a` and `d` point to its first row, `b` to its weights, and it has `rows` rows.
// __launch_bounds__ promises blocks of at most THREADS threads, so the compiler limits a thread's
// registers such that a block fits on a multiprocessor.
template <class T>
__global__ void __launch_bounds__(THREADS)
    grouped_gemm(const T* a, const T* b, T* d, int rows, int n, int k) {
  const int row = int(blockIdx.x) * THREADS_Y + int(threadIdx.y);  // of the group, from 0
  const int col = int(blockIdx.y) * THREADS_X + int(threadIdx.x);
  if (row >= rows || col >= n) return;  // the grid is rounded up to whole blocks

  // Indices of elements are int64_t: A, B and D may each have over 2^31 elements.
  float acc = 0;
  for (int kk = 0; kk < k; ++kk) {
    acc += gg::to_float(a[int64_t(row) * k + kk]) * gg::to_float(b[int64_t(kk) * n + col]);
  }
  d[int64_t(row) * n + col] = gg::from_float<T>(acc);
}
// [/kernel]

// [launch]
// Columns of D at most: a grid has at most 65535 blocks along y. The harness refuses a larger N.
constexpr int MOST_N = 65535 * THREADS_X;

// One launch for each group that has rows. The host must know the rows before it launches, so the
// loop reads the host's copy of the offsets. The device's copy is unused: `launch` has the same
// parameters in the next chapters, whose kernels read it. `b_group_stride`: from one group's
// B to the next one's, in elements.
template <class T, class Offset>
void launch(const T* a, const T* b, T* d, const Offset* /*offsets*/, const int32_t* host_offsets, int groups,
            int n, int k, int64_t b_group_stride, cudaStream_t stream) {
  const int blocks_n = (n + THREADS_X - 1) / THREADS_X;
  for (int group = 0; group < groups; ++group) {
    const int64_t row_begin = host_offsets[group];
    const int rows = host_offsets[group + 1] - host_offsets[group];
    if (rows == 0) continue;  // a grid of no blocks is an error, not an empty launch
    const dim3 grid((rows + THREADS_Y - 1) / THREADS_Y, blocks_n);  // x: rows, y: columns
    grouped_gemm<<<grid, dim3(THREADS_X, THREADS_Y), 0, stream>>>(
        a + row_begin * k, b + group * b_group_stride, d + row_begin * n, rows, n, k);
    GG_CHECK(cudaGetLastError());  // a refused launch; a later call reports an error in the kernel
  }
}
// [/launch]

}  // namespace chapter
