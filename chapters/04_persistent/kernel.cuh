// SPDX-License-Identifier: MIT
//
// Chapter 04: a fixed number of blocks walks all groups' tiles.
//
// Group g has matrices and sizes of its own, A [M,K], B [K,N] and D [M,N], found through arrays:
//     D[row, col] = sum over k of A[row, k] * B[k, col]
// New here: blocks stay, and take every W-th tile of one list that runs through all groups.

#pragma once

#include <cstdio>

#include "common/kernel/check.h"
#include "common/kernel/ptx/cp_async.cuh"
#include "common/kernel/ptx/ldmatrix.cuh"
#include "common/kernel/ptx/mma.cuh"
#include "common/kernel/types.cuh"

namespace chapter {

constexpr int BK = 64;     // depth of a slice of A and B: 128 bytes of each row of A
constexpr int STAGES = 3;  // slices in shared memory: 96 KB at most, which every GPU from 8.0 on has
constexpr int VEC = 8;     // elements of one 16-byte copy, a chunk
constexpr int WARPS_M = 2, WARPS_N = 2, THREADS = 32 * WARPS_M * WARPS_N;

// [walk]
// Where a block is in the list of all groups' tiles: group after group, in each row after row.
struct Walk {
  int64_t tile;       // index in the whole list
  int64_t first = 0;  // index of the first tile of `group`
  int group = 0;
  int tile_m = 0, tile_n = 0;

  // Goes on to the group that has `tile`; sizes [G,3] are M, N, K. False: there is none, the list is over.
  GG_HD bool find(const int* sizes, int groups, int bm, int bn) {
    for (; group < groups; ++group) {
      const int tiles_m = (sizes[3 * group] + bm - 1) / bm, tiles_n = (sizes[3 * group + 1] + bn - 1) / bn;
      const int64_t left = tile - first;
      if (left < int64_t(tiles_m) * tiles_n) {
        tile_m = int(left / tiles_n);
        tile_n = int(left % tiles_n);
        return true;
      }
      first += int64_t(tiles_m) * tiles_n;  // the count goes on from one group to the next
    }
    return false;
  }
};
// [/walk]

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
template <class T, int BM, int BN>
__global__ void __launch_bounds__(THREADS, 2)
    grouped_gemm(const T* const* a_ptrs, const T* const* b_ptrs, T* const* d_ptrs, const int* sizes,
                 const int* leading_dims, int groups) {
  constexpr int WM = BM / WARPS_M, WN = BN / WARPS_N;  // a warp's part: 64 x 64 in the default tile
  constexpr int A_STAGE_BYTES = BM * BK * 2, B_STAGE_BYTES = BK * BN * 2;
  const int thread = int(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int warp_row = warp / WARPS_N * WM, warp_col = warp % WARPS_N * WN;
  constexpr int A_CHUNKS = BK / VEC, B_CHUNKS = BN / VEC;                  // of a row
  constexpr int A_PASS = THREADS / A_CHUNKS, B_PASS = THREADS / B_CHUNKS;  // rows copied at a time
  const int a_r = thread / A_CHUNKS, a_c = thread % A_CHUNKS * VEC;        // where in the slices this thread
  const int b_r = thread / B_CHUNKS, b_c = thread % B_CHUNKS * VEC;        // copies its first chunks

  extern __shared__ __align__(128) unsigned char shared[];
  const uint32_t a_tile_addr = gg::ptx::shared_addr(shared);          // [STAGES][BM][BK], swizzled
  const uint32_t b_tile_addr = a_tile_addr + STAGES * A_STAGE_BYTES;  // [STAGES][BK][BN], swizzled

  // [tile]
  for (Walk walk{int64_t(blockIdx.x)}; walk.find(sizes, groups, BM, BN); walk.tile += gridDim.x) {
    const int group = walk.group, row0 = walk.tile_m * BM, col0 = walk.tile_n * BN;
    const int n = sizes[3 * group + 1], k = sizes[3 * group + 2];
    const int rows = sizes[3 * group] - row0, cols = n - col0;  // from the tile's corner on
    const int lda = leading_dims[3 * group], ldb = leading_dims[3 * group + 1];
    const int ldd = leading_dims[3 * group + 2];
    GG_DEVICE_ASSERT(n % VEC == 0 && k % VEC == 0 && lda % VEC == 0 && ldb % VEC == 0 && ldd % VEC == 0);
    const T *a = a_ptrs[group], *b = b_ptrs[group];
    const T* a_first = a + int64_t(row0 + a_r) * lda + a_c;
    const T* b_first = b + int64_t(b_r) * ldb + col0 + b_c;
    T* d_first = d_ptrs[group] + int64_t(row0) * ldd + col0;
    const int k_tiles = (k + BK - 1) / BK;
    // [/tile]

    // [load]
    // Start copying a slice. What lies outside the group, N or K becomes zeros, and none of it is read.
    // Slices past the last one are all zeros, so the loop below has no special case for the end.
    const uint32_t a_dst_addr = a_tile_addr + swizzle<A_CHUNKS>(a_r, a_c);
    const uint32_t b_dst_addr = b_tile_addr + swizzle<B_CHUNKS>(b_r, b_c);
    auto load_a = [&](int k_tile) {
      const int k0 = k_tile * BK;
      const uint32_t dst_addr = a_dst_addr + k_tile % STAGES * A_STAGE_BYTES;
      const T* src = a_first + k0;
#pragma unroll
      for (int r = 0; r < BM; r += A_PASS) {
        const bool inside = a_r + r < rows && k0 + a_c < k;
        gg::ptx::cp_async_cg_16(dst_addr + r * BK * 2, inside ? src : a, inside ? 16 : 0);
        src += int64_t(A_PASS) * lda;
      }
    };
    auto load_b = [&](int k_tile) {
      const int k0 = k_tile * BK;
      const uint32_t dst_addr = b_dst_addr + k_tile % STAGES * B_STAGE_BYTES;
      const T* src = b_first + int64_t(k0) * ldb;
#pragma unroll
      for (int r = 0; r < BK; r += B_PASS) {
        const bool inside = k0 + b_r + r < k && b_c < cols;
        gg::ptx::cp_async_cg_16(dst_addr + r * BN * 2, inside ? src : b, inside ? 16 : 0);
        src += int64_t(B_PASS) * ldb;
      }
      gg::ptx::cp_async_commit_group();  // A and B of one slice: B comes last
    };
    // [/load]

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
    gg::ptx::cp_async_wait_all();  // none of this thread's copies is under way
    __syncthreads();               // nor anyone's, and nobody reads: all stages are free for the next tile

#pragma unroll
    for (int i = 0; i < WM / 8; ++i) {  // 8 rows at a time
      const int r = warp_row + i * 8 + lane / 4;
#pragma unroll
      for (int j = 0; j < WN / 8; ++j) {
        const int c = warp_col + j * 8 + lane % 4 * 2;
        const float* sums = &acc[i / 2][j][i % 2 * 2];
        const Pair<T> pair = {gg::from_float<T>(sums[0]), gg::from_float<T>(sums[1])};
        if (r < rows && c < cols) *reinterpret_cast<Pair<T>*>(d_first + int64_t(r) * ldd + c) = pair;
      }
    }
  }
}

// [schedule]
// The same walk on the host: prints which block computes which tiles, as group(tile_m,tile_n).
inline void print_schedule(const int* sizes, int groups, gg::TileShape tile, int blocks) {
  for (int block = 0; block < blocks; ++block) {
    std::printf("block %d:", block);
    for (Walk walk{block}; walk.find(sizes, groups, tile.m, tile.n); walk.tile += blocks) {
      std::printf(" %d(%d,%d)", walk.group, walk.tile_m, walk.tile_n);
    }
    std::printf("\n");
  }
}
// [/schedule]

// All arrays are on the device: G pointers to each matrix, sizes [G,3] as M, N, K, leading dimensions [G,3]
// of A, B and D. N, K and the leading dimensions are multiples of 8, and matrices start at multiples of 16
// bytes. `blocks` 0: as many as the device holds at once.
template <class T>
void launch(const T* const* a_ptrs, const T* const* b_ptrs, T* const* d_ptrs, const int* sizes,
            const int* leading_dims, int groups, gg::TileShape tile, int blocks, cudaStream_t stream) {
  if (tile.m == 0) tile = {128, 128};
  GG_REQUIRE(tile.m == tile.n && (tile.m == 128 || tile.m == 64), "--tile %dx%d: tiles are 128x128 or 64x64",
             tile.m, tile.n);
  auto* kernel = tile.m == 128 ? grouped_gemm<T, 128, 128> : grouped_gemm<T, 64, 64>;
  const int shared_bytes = STAGES * (tile.m + tile.n) * BK * 2;
  GG_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
  // [launch]
  if (blocks == 0) {
    int device = 0, multiprocessors = 0;
    GG_CHECK(cudaGetDevice(&device));
    GG_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
    GG_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, THREADS, size_t(shared_bytes)));
    blocks *= multiprocessors;
  }
  kernel<<<blocks, THREADS, shared_bytes, stream>>>(a_ptrs, b_ptrs, d_ptrs, sizes, leading_dims, groups);
  // [/launch]
  GG_CHECK(cudaGetLastError());
}

}  // namespace chapter
