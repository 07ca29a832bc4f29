// SPDX-License-Identifier: MIT
//
// Chapter 05b: one worker per multiprocessor, every W-th tile of all groups.
//
// Group g owns rows offsets[g] .. offsets[g+1] of A [M,K] and D [M,N], and B[g] is [K,N], N contiguous:
//     D[row, col] = sum over k of A[row, k] * B[g][k, col]
// New here: tiles are counted through all groups, so a worker's share does not depend on whose rows they are.

#pragma once

#include <algorithm>
#include <type_traits>

#include "common/kernel/check.h"
#include "common/kernel/ptx/barrier.cuh"
#include "common/kernel/ptx/cp_async.cuh"
#include "common/kernel/ptx/ldmatrix.cuh"
#include "common/kernel/ptx/mma.cuh"
#include "common/kernel/types.cuh"

namespace chapter {

constexpr int BK = 64;     // depth of a slice of A and B: 128 bytes of each row of A
constexpr int STAGES = 3;  // slices in shared memory: 96 KB at most, which every GPU from 8.0 on has
constexpr int VEC = 8;     // elements of one 16-byte copy, a chunk
constexpr int WARPS_N = 2;
// Operands of different types take registers to convert: then twice the warps share the larger tile.
template <class A, class B, int BM>
constexpr int THREADS = std::is_same_v<A, B> || BM < 128 ? 128 : 256;  // of a team

// [swizzle]
// Byte offset of element c of row r in a tile with CHUNKS chunks to the row. ldmatrix reads the same chunk of
// 8 rows at once: the xor moves them to 8 different groups of 4 banks, in which rows of 64
// bytes lie in pairs.
template <int CHUNKS>
__device__ int swizzle(int r, int c) {
  constexpr int ROWS = std::max(1, 8 / CHUNKS);  // in 128 bytes
  return (r * CHUNKS + (c / VEC ^ r / ROWS % (8 / ROWS))) * 16;
}
// [/swizzle]

template <class T>
struct alignas(2 * sizeof(T)) Pair {  // two neighbours in a row of D, one store
  T left, right;
};

// A worker is a block of one or two teams, each with a tile of its own: while one waits at its barrier or
// writes its tile out, the other computes. Eight warps at most: up to 255 registers per thread.
template <class A, class B, class D, class Offset, int BM, int BN>
__global__ void __launch_bounds__(256, 1) grouped_gemm(const A* a, const B* b, D* d, const Offset* offsets,
                                                       int groups, int n, int k, int64_t b_group_stride) {
  constexpr int THREADS = chapter::THREADS<A, B, BM>, WARPS_M = THREADS / 32 / WARPS_N;
  constexpr int WM = BM / WARPS_M, WN = BN / WARPS_N;  // a warp's part of the tile
  constexpr int A_STAGE_BYTES = BM * BK * 2, B_STAGE_BYTES = BK * BN * 2;
  const int team = int(threadIdx.x) / THREADS, teams = int(blockDim.x) / THREADS;
  const int thread = int(threadIdx.x) % THREADS, warp = thread / 32, lane = thread % 32;
  const int warp_row = warp / WARPS_N * WM, warp_col = warp % WARPS_N * WN, tiles_n = (n + BN - 1) / BN;
  constexpr int A_CHUNKS = BK / VEC, B_CHUNKS = BN / VEC;                  // of a row
  constexpr int A_PASS = THREADS / A_CHUNKS, B_PASS = THREADS / B_CHUNKS;  // rows copied at a time
  const int a_r = thread / A_CHUNKS, a_c = thread % A_CHUNKS * VEC;        // where in the slices this thread
  const int b_r = thread / B_CHUNKS, b_c = thread % B_CHUNKS * VEC;        // copies its first chunks

  extern __shared__ __align__(128) unsigned char shared[];
  const uint32_t a_tile_addr = gg::ptx::shared_addr(shared);             // [STAGES][BM][BK], swizzled
  const uint32_t b_tile_addr = a_tile_addr + STAGES * A_STAGE_BYTES;     // [STAGES][BK][BN], swizzled
  const int team_off = team * STAGES * (A_STAGE_BYTES + B_STAGE_BYTES);  // the second team's come behind

  // [find]
  // Finds the group that owns a tile, every warp for itself: lane l looks at group batch + l. Tiles only
  // grow, so the search goes on from where it stopped, and 32 empty groups cost one look.
  int batch = 0, tiles_m_before = 0;  // first group looked at; rows of tiles in the groups before it
  int64_t row_begin = 0;              // of the group found
  int group = 0, group_rows = 0, tiles_m = 0, tile_in_group = 0;
  auto find = [&](int tile) {  // false: there is no such tile
    for (; batch < groups; batch += 32) {
      const int mine = min(batch + lane, groups - 1);
      const int64_t my_begin = offsets[mine];
      const int my_rows = batch + lane < groups ? int(offsets[mine + 1] - my_begin) : 0;
      const int my_tiles_m = (my_rows + BM - 1) / BM;
      int end = my_tiles_m;  // becomes the rows of tiles up to and with this lane's group
      for (int step = 1; step < 32; step *= 2) {
        const int below = __shfl_up_sync(~0u, end, step);
        if (lane >= step) end += below;
      }
      end += tiles_m_before;
      const unsigned after = __ballot_sync(~0u, tile < int64_t(end) * tiles_n);  // groups ending after it
      if (after != 0) {
        const int owner = __ffs(after) - 1;
        group = batch + owner;
        row_begin = __shfl_sync(~0u, my_begin, owner);
        group_rows = __shfl_sync(~0u, my_rows, owner);
        tiles_m = __shfl_sync(~0u, my_tiles_m, owner);
        tile_in_group = tile - (__shfl_sync(~0u, end, owner) - tiles_m) * tiles_n;
        return true;
      }
      tiles_m_before = __shfl_sync(~0u, end, 31);
    }
    return false;
  };
  // [/find]

  // [tile]
  // Tiles are counted in int: 2^31 of them would be at least 2^41 elements of D.
  const int workers = int(gridDim.x);
  for (int tile = int(blockIdx.x) + team * workers; find(tile); tile += teams * workers) {
    const int row0 = tile_in_group % tiles_m * BM, col0 = tile_in_group / tiles_m * BN;
    const int rows = group_rows - row0, cols = n - col0;  // from the tile's corner on
    const A* a_first = a + (row_begin + row0 + a_r) * k + a_c;
    const B* b_first = b + group * b_group_stride + int64_t(b_r) * n + col0 + b_c;
    D* d_first = d + (row_begin + row0) * n + col0;
    const int k_tiles = (k + BK - 1) / BK;
    // [/tile]
    // Start copying a slice. What lies outside the group, N or K becomes zeros, and none of it is read.
    // Slices past the last one are all zeros, so the loop below has no special case for the end.
    const uint32_t a_dst_addr = a_tile_addr + team_off + swizzle<A_CHUNKS>(a_r, a_c);
    const uint32_t b_dst_addr = b_tile_addr + team_off + swizzle<B_CHUNKS>(b_r, b_c);
    auto load_a = [&](int k_tile) {
      const int k0 = k_tile * BK;
      const uint32_t dst_addr = a_dst_addr + k_tile % STAGES * A_STAGE_BYTES;
      const A* src = a_first + k0;
#pragma unroll
      for (int r = 0; r < BM; r += A_PASS) {
        const bool inside = a_r + r < rows && k0 + a_c < k;
        gg::ptx::cp_async_cg_16(dst_addr + r * BK * 2, inside ? src : a, inside ? 16 : 0);
        src += int64_t(A_PASS) * k;
      }
    };
    auto load_b = [&](int k_tile) {
      const int k0 = k_tile * BK;
      const uint32_t dst_addr = b_dst_addr + k_tile % STAGES * B_STAGE_BYTES;
      const B* src = b_first + int64_t(k0) * n;
#pragma unroll
      for (int r = 0; r < BK; r += B_PASS) {
        const bool inside = k0 + b_r + r < k && b_c < cols;
        gg::ptx::cp_async_cg_16(dst_addr + r * BN * 2, inside ? src : b, inside ? 16 : 0);
        src += int64_t(B_PASS) * n;
      }
      gg::ptx::cp_async_commit_group();  // A and B of one slice: B comes last
    };

    // Two sets of fragments: one is multiplied while the next 16 steps of k arrive in the other.
    gg::ptx::FragmentA<A> a_frag[2][WM / 16];
    gg::ptx::FragmentB<B> b_frag[2][WN / 16];
    float acc[WM / 16][WN / 8][4] = {};
    // [fragments]
    const int a_off = team_off + swizzle<A_CHUNKS>(warp_row + lane % 16, lane / 16 * VEC);  // this lane's
    const int b_off = team_off + swizzle<B_CHUNKS>(lane % 16, warp_col + lane / 16 * VEC);  // at k = 0
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
          gg::ptx::bar_sync(1 + team, THREADS);  // so have the team's, and nobody reads slice k_tile any more
          load_fragments(k_tile + 1, 0);
          load_a(k_tile + STAGES);
        }
        if (kk == 16) load_b(k_tile + STAGES - 1);  // measured: 1 % fewer cycles here than at kk = 0
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
    gg::ptx::bar_sync(1 + team, THREADS);        // so have the team's
    load_fragments(0, 0);
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) compute(k_tile);
    gg::ptx::cp_async_wait_all();          // none of this thread's copies is under way
    gg::ptx::bar_sync(1 + team, THREADS);  // nor the team's, and nobody reads: all stages are free

#pragma unroll
    for (int i = 0; i < WM / 8; ++i) {  // 8 rows at a time
      const int r = warp_row + i * 8 + lane / 4;
#pragma unroll
      for (int j = 0; j < WN / 8; ++j) {
        const int c = warp_col + j * 8 + lane % 4 * 2;
        const float* sums = &acc[i / 2][j][i % 2 * 2];
        const Pair<D> pair = {gg::from_float<D>(sums[0]), gg::from_float<D>(sums[1])};
        if (r < rows && c < cols) *reinterpret_cast<Pair<D>*>(d_first + int64_t(r) * n + c) = pair;
      }
    }
  }
}

template <class A, class B, class D, class Offset, int BM>
auto* kernel_for(int bn) {
  return bn == 128  ? grouped_gemm<A, B, D, Offset, BM, 128>
         : bn == 64 ? grouped_gemm<A, B, D, Offset, BM, 64>
                    : grouped_gemm<A, B, D, Offset, BM, 32>;
}

// Every tile of every type would be 72 kernels, which take a minute to compile.
template <class A, class B, class Offset>
constexpr bool HAS_ALL_TILES =
    std::is_same_v<A, bf16>&& std::is_same_v<B, bf16>&& std::is_same_v<Offset, int32_t>;

// `blocks` 0: one worker per multiprocessor. Two teams where an SM has shared memory for both.
template <class A, class B, class D, class Offset>
void launch(const A* a, const B* b, D* d, const Offset* offsets, const int32_t* /*host_offsets*/, int groups,
            int n, int k, int64_t b_group_stride, gg::TileShape tile, int blocks, cudaStream_t stream) {
  GG_REQUIRE(k % VEC == 0, "K=%d: rows of A are %d bytes, 16-byte copies want multiples of 16; pad K to %d",
             k, k * 2, (k + VEC - 1) / VEC * VEC);
  GG_REQUIRE(n % VEC == 0, "N=%d: rows of B are %d bytes, 16-byte copies want multiples of 16; pad N to %d",
             n, n * 2, (n + VEC - 1) / VEC * VEC);
  if (tile.m == 0) tile = {128, 128};
  const auto legal = [](int extent) { return extent == 32 || extent == 64 || extent == 128; };
  GG_REQUIRE(legal(tile.m) && legal(tile.n), "--tile %dx%d: tiles have 32, 64 or 128 rows and columns",
             tile.m, tile.n);
  auto* kernel = grouped_gemm<A, B, D, Offset, 128, 128>;
  if constexpr (HAS_ALL_TILES<A, B, Offset>) {
    kernel = tile.m == 128  ? kernel_for<A, B, D, Offset, 128>(tile.n)
             : tile.m == 64 ? kernel_for<A, B, D, Offset, 64>(tile.n)
                            : kernel_for<A, B, D, Offset, 32>(tile.n);
  } else {
    GG_REQUIRE(tile.m == 128 && tile.n == 128, "--tile %dx%d: these types have tiles of 128x128", tile.m,
               tile.n);
  }
  const int team_threads = tile.m == 128 ? THREADS<A, B, 128> : THREADS<A, B, 32>;
  // [launch]
  const int team_bytes = STAGES * (tile.m + tile.n) * BK * 2;
  int device = 0, multiprocessors = 0, shared_limit = 0;
  GG_CHECK(cudaGetDevice(&device));
  GG_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  GG_CHECK(cudaDeviceGetAttribute(&shared_limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  const int teams = team_threads == 128 && 2 * team_bytes <= shared_limit ? 2 : 1;
  GG_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, teams * team_bytes));
  kernel<<<blocks ? blocks : multiprocessors, teams * team_threads, teams * team_bytes, stream>>>(
      a, b, d, offsets, groups, n, k, b_group_stride);
  // [/launch]
  GG_CHECK(cudaGetLastError());
}

}  // namespace chapter
