// SPDX-License-Identifier: MIT
//
// Chapter 03: ldmatrix, mma.sync and cp.async in stages.
//
// Group g owns rows offsets[g] .. offsets[g+1] of A [M,K] and D [M,N], and B[g] is [K,N], N contiguous:
//     D[row, col] = sum over k of A[row, k] * B[g][k, col]
// New here: the tensor cores multiply, fed by copies that run STAGES slices ahead of them.

#pragma once

#include <algorithm>

#include "common/kernel/check.h"
#include "common/kernel/ptx/cp_async.cuh"
#include "common/kernel/ptx/ldmatrix.cuh"
#include "common/kernel/ptx/mma.cuh"
#include "common/kernel/types.cuh"

namespace chapter {

constexpr int BM = 128, BN = 128;  // a block's tile of D
constexpr int BK = 64;             // depth of a slice of A and B: 128 bytes of each row of A
constexpr int STAGES = 3;          // slices in shared memory: 96 KB, which every GPU from 8.0 on has
constexpr int VEC = 8;             // elements of one 16-byte copy, a chunk
constexpr int WARPS_M = 2, WARPS_N = 2, THREADS = 32 * WARPS_M * WARPS_N;
constexpr int WM = BM / WARPS_M, WN = BN / WARPS_N;  // a warp's part: 64 x 64, 128 sums per thread
constexpr int A_STAGE_BYTES = BM * BK * 2, B_STAGE_BYTES = BK * BN * 2;
constexpr int SHARED_BYTES = STAGES * (A_STAGE_BYTES + B_STAGE_BYTES);

// [swizzle]
// Byte offset of element c of row r in a tile with CHUNKS chunks to the row. ldmatrix reads the same chunk of
// 8 rows at once, multiples of 128 bytes apart: the xor moves them to 8 different groups of 4 banks.
template <int CHUNKS>
__device__ int swizzle(int r, int c) {
  static_assert(CHUNKS % 8 == 0);
  return (r * CHUNKS + (c / VEC ^ r % 8)) * 16;
}
// [/swizzle]

template <class T>
struct alignas(2 * sizeof(T)) Pair {  // two neighbours in a row of D, one store
  T left, right;
};

// Two blocks per SM, so that one computes while the other waits: up to 255 registers per thread.
template <class T, class Offset>
__global__ void __launch_bounds__(THREADS, 2)
    grouped_gemm(const T* a, const T* b, T* d, const Offset* offsets, int n, int k, int64_t b_group_stride) {
  const int thread = int(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int warp_row = warp / WARPS_N * WM, warp_col = warp % WARPS_N * WN;
  constexpr int A_CHUNKS = BK / VEC, B_CHUNKS = BN / VEC;                  // of a row
  constexpr int A_PASS = THREADS / A_CHUNKS, B_PASS = THREADS / B_CHUNKS;  // rows copied at a time
  const int a_r = thread / A_CHUNKS, a_c = thread % A_CHUNKS * VEC;        // where in the slices this thread
  const int b_r = thread / B_CHUNKS, b_c = thread % B_CHUNKS * VEC;        // copies its first chunks

  const int group = int(blockIdx.z), row0 = int(blockIdx.x) * BM, col0 = int(blockIdx.y) * BN;
  const int64_t row_begin = offsets[group];
  const int rows = int(offsets[group + 1] - row_begin) - row0, cols = n - col0;  // from the tile's corner on
  if (rows <= 0) return;  // the whole block: the grid has room for the largest group
  const T* a_first = a + (row_begin + row0 + a_r) * k + a_c;
  const T* b_first = b + group * b_group_stride + int64_t(b_r) * n + col0 + b_c;
  T* d_first = d + (row_begin + row0) * n + col0;
  const int k_tiles = (k + BK - 1) / BK;

  extern __shared__ __align__(128) unsigned char shared[];
  const uint32_t a_tile_addr = gg::ptx::shared_addr(shared);          // [STAGES][BM][BK], 48 KB, swizzled
  const uint32_t b_tile_addr = a_tile_addr + STAGES * A_STAGE_BYTES;  // [STAGES][BK][BN], 48 KB, swizzled

  // Start copying a slice. What lies outside the group, N or K becomes zeros, and none of it is read.
  // Slices past the last one are all zeros, so the loop below has no special case for the end.
  const uint32_t a_dst_addr = a_tile_addr + swizzle<A_CHUNKS>(a_r, a_c);
  const uint32_t b_dst_addr = b_tile_addr + swizzle<B_CHUNKS>(b_r, b_c);
  // [load]
  auto load_a = [&](int k_tile) {
    const int k0 = k_tile * BK;
    const uint32_t dst_addr = a_dst_addr + k_tile % STAGES * A_STAGE_BYTES;
    const T* src = a_first + k0;
#pragma unroll
    for (int r = 0; r < BM; r += A_PASS) {
      const bool inside = a_r + r < rows && k0 + a_c < k;
      gg::ptx::cp_async_cg_16(dst_addr + r * BK * 2, inside ? src : a, inside ? 16 : 0);
      src += int64_t(A_PASS) * k;
    }
  };
  // [/load]
  auto load_b = [&](int k_tile) {
    const int k0 = k_tile * BK;
    const uint32_t dst_addr = b_dst_addr + k_tile % STAGES * B_STAGE_BYTES;
    const T* src = b_first + int64_t(k0) * n;
#pragma unroll
    for (int r = 0; r < BK; r += B_PASS) {
      const bool inside = k0 + b_r + r < k && b_c < cols;
      gg::ptx::cp_async_cg_16(dst_addr + r * BN * 2, inside ? src : b, inside ? 16 : 0);
      src += int64_t(B_PASS) * n;
    }
    gg::ptx::cp_async_commit_group();  // A and B of one slice: B comes last
  };

  // Two sets of fragments: one is multiplied while the next 16 steps of k arrive in the other.
  gg::ptx::FragmentA<T> a_frag[2][WM / 16];
  gg::ptx::FragmentB<T> b_frag[2][WN / 16];
  float acc[WM / 16][WN / 8][4] = {};
  // [fragments]
  const int a_off = swizzle<A_CHUNKS>(warp_row + lane % 16, lane / 16 * VEC);  // where this lane reads
  const int b_off = swizzle<B_CHUNKS>(lane % 16, warp_col + lane / 16 * VEC);  // at k = 0
  auto load_fragments = [&](int k_tile, int kk) {
    const int stage = k_tile % STAGES, set = kk / 16 % 2;
#pragma unroll
    for (int i = 0; i < WM / 16; ++i) {
      gg::ptx::ldmatrix_x4(a_frag[set][i].reg,
                           a_tile_addr + stage * A_STAGE_BYTES + (a_off ^ (kk * 2)) + i * 16 * BK * 2);
    }
#pragma unroll
    for (int j = 0; j < WN / 16; ++j) {
      gg::ptx::ldmatrix_x4_trans(b_frag[set][j].reg,
                                 b_tile_addr + stage * B_STAGE_BYTES + (b_off ^ (j * 32)) + kk * BN * 2);
    }
  };
  // [/fragments]

  // [compute]
  auto compute = [&](int k_tile) {
#pragma unroll
    for (int kk = 0; kk < BK; kk += 16) {
      if (kk + 16 < BK) {
        load_fragments(k_tile, kk + 16);
      } else {  // the last fragments of this slice are in registers: on to the next slice
        gg::ptx::cp_async_wait_group<STAGES - 2>();  // this thread's copies of slice k_tile + 1 have landed
        __syncthreads();  // so have everyone's, and nobody reads slice k_tile any more: its stage is free
        load_fragments(k_tile + 1, 0);
        load_a(k_tile + STAGES);
      }
      if (kk == 0) load_b(k_tile + STAGES - 1);  // apart from A: ldmatrix gets in between
#pragma unroll
      for (int i = 0; i < WM / 16; ++i) {
#pragma unroll
        for (int step = 0; step < WN / 8; ++step) {  // there and back: a step keeps one operand of the last
          const int j = i % 2 ? WN / 8 - 1 - step : step;
          gg::ptx::mma_m16n8k16(acc[i][j], a_frag[kk / 16 % 2][i], b_frag[kk / 16 % 2][j / 2], j % 2);
        }
      }
    }
  };
  // [/compute]

  for (int k_tile = 0; k_tile < STAGES; ++k_tile) {
    load_a(k_tile);
    if (k_tile < STAGES - 1) load_b(k_tile);
  }
  gg::ptx::cp_async_wait_group<STAGES - 2>();  // this thread's copies of slice 0 have landed
  __syncthreads();                             // so have everyone's
  load_fragments(0, 0);
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) compute(k_tile);
  gg::ptx::cp_async_wait_all();  // nothing of this block is under way when it ends

#pragma unroll
  for (int i = 0; i < WM / 8; ++i) {  // 8 rows at a time
    const int r = warp_row + i * 8 + lane / 4;
#pragma unroll
    for (int j = 0; j < WN / 8; ++j) {
      const int c = warp_col + j * 8 + lane % 4 * 2;
      const float* sums = &acc[i / 2][j][i % 2 * 2];
      const Pair<T> pair = {gg::from_float<T>(sums[0]), gg::from_float<T>(sums[1])};
      if (r < rows && c < cols) *reinterpret_cast<Pair<T>*>(d_first + int64_t(r) * n + c) = pair;
    }
  }
}

// Columns of D at most: a grid's y extent is at most 65535 blocks.
constexpr int MOST_N = 65535 * BN;

// The host's copy of the offsets gives the rows of the largest group; the blocks read the device's.
template <class T, class Offset>
void launch(const T* a, const T* b, T* d, const Offset* offsets, const int32_t* host_offsets, int groups,
            int n, int k, int64_t b_group_stride, cudaStream_t stream) {
  GG_REQUIRE(k % VEC == 0, "K=%d: rows of A are %d bytes, 16-byte copies want multiples of 16; pad K to %d",
             k, k * 2, (k + VEC - 1) / VEC * VEC);
  GG_REQUIRE(n % VEC == 0, "N=%d: rows of B are %d bytes, 16-byte copies want multiples of 16; pad N to %d",
             n, n * 2, (n + VEC - 1) / VEC * VEC);
  GG_REQUIRE(n <= MOST_N, "N=%d: the grid's y extent covers at most %d columns; split N", n, MOST_N);
  const int blocks_n = (n + BN - 1) / BN;
  int rows_max = 0;
  for (int group = 0; group < groups; ++group) {
    rows_max = std::max(rows_max, host_offsets[group + 1] - host_offsets[group]);
  }
  if (rows_max == 0) return;  // a grid of no blocks is an error, not an empty launch
  auto* kernel = grouped_gemm<T, Offset>;
  GG_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES));
  const dim3 grid((rows_max + BM - 1) / BM, blocks_n, groups);
  kernel<<<grid, THREADS, SHARED_BYTES, stream>>>(a, b, d, offsets, n, k, b_group_stride);
  GG_CHECK(cudaGetLastError());
}

}  // namespace chapter
