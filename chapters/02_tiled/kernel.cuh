// SPDX-License-Identifier: MIT
//
// Chapter 02: one launch, shared-memory tiles, a register micro-tile.
//
// Group g owns rows offsets[g] .. offsets[g+1]-1 of A [M,K] and D [M,N], and B[g] is [K,N], N contiguous:
//     D[row, col] = sum over k of A[row, k] * B[g][k, col]
// New here: a block shares slices of A and B, a thread has 8 x 8 sums, the grid's z is the group.

#pragma once

#include <algorithm>

#include "common/kernel/check.h"
#include "common/kernel/types.cuh"

namespace chapter {

constexpr int BM = 128, BN = 128;  // a block's tile of D
constexpr int THREADS = 256;       // 8 warps; a thread computes 8 x 8 outputs, its micro-tile
template <class T>
constexpr int VEC = 16 / sizeof(T);  // elements of one 16-byte load, a vector
template <class T>
constexpr int BK = 2 * VEC<T>;  // depth of a slice: one vector of A and one of B per thread

template <class T>
struct alignas(16) Vector {
  T x[VEC<T>];
};

// The first `valid` of VEC elements at `src`, then zeros; no others are read. `wide` is a promise:
// `src` is a multiple of 16 bytes, and `valid` at least VEC (one load is enough) or at most 0.
template <class T>
__device__ Vector<T> load_vector(const T* src, int valid, bool wide) {
  Vector<T> v = {};
  if (wide) {
    if (valid > 0) reinterpret_cast<uint4&>(v) = *reinterpret_cast<const uint4*>(src);
  } else {
    for (int e = 0; e < VEC<T>; ++e) {
      if (e < valid) v.x[e] = src[e];
    }
  }
  return v;
}
// [swizzle]
// Row r of A is float swizzle_a(kk, r) of a_tile[..][kk], and column c of B float swizzle_b(c) of a
// row of b_tile. Floats 4i to 4i + 3 are moved together and in order: a float4 remains one.
template <class T>
__device__ int swizzle_a(int kk, int r) {
  static_assert(BK<T> == 2 * VEC<T>, "kk / VEC is 0 or 1: one bit is flipped, or none");
  return r ^ (kk / VEC<T> * 16);  // a warp stores 16 rows, each at two kk, VEC apart
}
__device__ inline int swizzle_b(int c) { return c ^ (c / 32 % 2 * 4); }  // if VEC is 8: lanes 8 floats apart
static_assert(BM / 2 % 32 == 0 && BN / 2 % 64 == 0, "half a tile: no bit that is flipped or looked at");
// [/swizzle]
// [tile]
// At most 65,536 / (2 * THREADS) = 128 registers per thread: two blocks fit on a multiprocessor.
template <class T, class Offset>
__global__ void __launch_bounds__(THREADS, 2)
    grouped_gemm(const T* a, const T* b, T* d, const Offset* offsets, int n, int k, int64_t b_group_stride,
                 bool wide_a, bool wide_b) {
  const int group = int(blockIdx.z);
  const int64_t row_begin = offsets[group];
  const int rows = int(offsets[group + 1] - row_begin);
  const int row0 = int(blockIdx.x) * BM, col0 = int(blockIdx.y) * BN;
  if (row0 >= rows) return;  // the whole block, as there are barriers below
  a += (row_begin + row0) * k;
  b += group * b_group_stride + col0;
  d += (row_begin + row0) * n + col0;
  // [/tile]
  // [load]
  static_assert(BM * BK<T> == THREADS * VEC<T> && BN == BM, "a thread copies one vector of A, one of B");
  __shared__ __align__(16) float a_tile[2][BK<T>][BM];  // two stages for A, [k][row]: 16 KB, 8 KB for f32
  __shared__ __align__(16) float b_tile[2][BK<T>][BN];  // and two for B, [k][column]: the same

  const int thread = int(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int a_r = thread / 2, a_c = thread % 2 * VEC<T>;                        // this thread's vector of A
  const int b_r = thread / (BN / VEC<T>), b_c = thread % (BN / VEC<T>)*VEC<T>;  // and of B
  const T* a_src = a + int64_t(a_r) * k + a_c;
  const T* b_src = b + int64_t(b_r) * n + b_c;
  Vector<T> a_next, b_next;

  auto load = [&](int k_tile) {  // starts reading a slice into registers; `store` waits for it
    const int k0 = k_tile * BK<T>;
    a_next = load_vector(a_src + k0, row0 + a_r < rows ? k - k0 - a_c : 0, wide_a);
    b_next = load_vector(b_src + int64_t(k0) * n, k0 + b_r < k ? n - col0 - b_c : 0, wide_b);
  };
  auto store = [&](int stage) {  // puts the slice into shared memory, as floats
#pragma unroll
    for (int e = 0; e < VEC<T>; ++e) {  // a_c + e and a_c are in one vector, so swizzled alike
      a_tile[stage][a_c + e][swizzle_a<T>(a_c, a_r)] = gg::to_float(a_next.x[e]);
    }
    float* b_row = b_tile[stage][b_r];
#pragma unroll
    for (int e = 0; e < VEC<T>; e += 4) {
      const float4 x = {gg::to_float(b_next.x[e]), gg::to_float(b_next.x[e + 1]),
                        gg::to_float(b_next.x[e + 2]), gg::to_float(b_next.x[e + 3])};
      *reinterpret_cast<float4*>(b_row + swizzle_b(b_c + e)) = x;
    }
  };
  // [/load]
  // [compute]
  static_assert(BM == THREADS / 64 * 32 && BN == 128, "two warps side by side, each has 32 x 64: r0, c0");
  // A micro-tile is 2 x 2 blocks of 4 x 4, half a tile apart: 8 lanes read 32 neighbours of b_tile.
  const int r0 = (warp / 2 * 4 + lane / 8) * 4, c0 = (warp % 2 * 8 + lane % 8) * 4;
  float acc[8][8] = {};
  auto compute = [&](int stage) {
#pragma unroll
    for (int kk = 0; kk < BK<T>; ++kk) {
      float a_values[8], b_values[8];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        *reinterpret_cast<float4*>(a_values + 4 * half) =
            *reinterpret_cast<const float4*>(&a_tile[stage][kk][swizzle_a<T>(kk, r0) + half * BM / 2]);
        *reinterpret_cast<float4*>(b_values + 4 * half) =
            *reinterpret_cast<const float4*>(&b_tile[stage][kk][swizzle_b(c0) + half * BN / 2]);
      }
#pragma unroll
      for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int j = 0; j < 8; ++j) acc[i][j] += a_values[i] * b_values[j];
      }
    }
  };
  // [/compute]

  // [loop]
  const int k_tiles = (k + BK<T> - 1) / BK<T>;
  load(0);
  store(0);
  __syncthreads();  // slice 0 is in shared memory
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
    load(k_tile + 1);  // past the end: zeros, and nothing is read
    compute(k_tile % 2);
    store((k_tile + 1) % 2);
    __syncthreads();  // slice k_tile + 1 is in shared memory, and nobody reads slice k_tile any more
  }

#pragma unroll
  for (int i = 0; i < 8; ++i) {
    // As in `compute`, a_values[i] is of row r and b_values[j] of column c: acc[i][j] is D[r, c].
    const int r = r0 + i % 4 + i / 4 * (BM / 2);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int c = c0 + j % 4 + j / 4 * (BN / 2);
      if (row0 + r < rows && col0 + c < n) d[int64_t(r) * n + c] = gg::from_float<T>(acc[i][j]);
    }
  }
  // [/loop]
}

// Columns of D at most: a grid's y extent is at most 65535 blocks.
constexpr int MOST_N = 65535 * BN;

// The host's copy of the offsets gives the rows of the largest group; the blocks read the device's.
template <class T, class Offset>
void launch(const T* a, const T* b, T* d, const Offset* offsets, const int32_t* host_offsets, int groups,
            int n, int k, int64_t b_group_stride, cudaStream_t stream) {
  const int blocks_n = (n + BN - 1) / BN;
  int rows_max = 0;
  for (int group = 0; group < groups; ++group) {
    rows_max = std::max(rows_max, host_offsets[group + 1] - host_offsets[group]);
  }
  if (rows_max == 0) return;  // a grid of no blocks is an error, not an empty launch
  // wide_b tests the first B only: the caller ensures that b_group_stride is a multiple of VEC
  // where N is, as in all sets, else loads of other B are misaligned. z: at most 65535 groups.
  const bool wide_a = k % VEC<T> == 0 && reinterpret_cast<uintptr_t>(a) % 16 == 0;
  const bool wide_b = n % VEC<T> == 0 && reinterpret_cast<uintptr_t>(b) % 16 == 0;
  const dim3 grid((rows_max + BM - 1) / BM, blocks_n, groups);
  grouped_gemm<<<grid, THREADS, 0, stream>>>(a, b, d, offsets, n, k, b_group_stride, wide_a, wide_b);
  GG_CHECK(cudaGetLastError());
}

}  // namespace chapter
