// SPDX-License-Identifier: MIT
//
// Chapter 06a: tiles arrive by TMA and are counted in by mbarriers.
//
// Group g owns rows offsets[g] .. offsets[g+1] of A [M,K] and D [M,N], and B[g] is [K,N], N contiguous:
//     D[row, col] = sum over k of A[row, k] * B[g][k, col]
// New here: one thread asks for a whole slice, hardware computes its addresses, and a
// barrier counts its bytes.

#pragma once

#include <type_traits>

#include "common/kernel/check.h"
#include "common/kernel/ptx/barrier.cuh"
#include "common/kernel/ptx/ldmatrix.cuh"
#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/mma.cuh"
#include "common/kernel/ptx/tma.cuh"
#include "common/kernel/tensor_map.h"
#include "common/kernel/types.cuh"

namespace chapter {

constexpr int BK = 64;        // depth of a slice of A and B: 128 bytes of each row of A
constexpr int STAGES = 3;     // slices of a team in shared memory
constexpr int THREADS = 128;  // of a team
constexpr int WARPS_M = 2, WARPS_N = 2;
constexpr int BOX_COLS = 64;  // columns of B in one box: 128 bytes, the most that TMA swizzles

// [swizzle]
// Byte offset of element c of row r in a box with rows of 128 bytes, as TMA's 128-byte swizzle lays it out:
// chapter 03's, done by hardware. It takes r % 8 from bits of the address: boxes start at multiples of 1024.
__device__ int swizzle(int r, int c) { return r * 128 + (c / 8 ^ r % 8) * 16; }
// [/swizzle]

template <class T>
struct alignas(2 * sizeof(T)) Pair {  // two neighbours in a row of D, one store
  T left, right;
};

// A worker is a block of two teams, each with a tile of its own: while one waits or writes its tile out, the
// other computes. Eight warps: up to 255 registers per thread.
template <class T, class Offset, int BM, int BN>
__global__ void __launch_bounds__(2 * THREADS, 1)
    grouped_gemm(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map, T* d,
                 const Offset* offsets, int groups, int n, int k) {
  constexpr int WM = BM / WARPS_M, WN = BN / WARPS_N;  // a warp's part of the tile
  constexpr int A_STAGE_BYTES = BM * BK * 2, B_BOX_BYTES = BK * BOX_COLS * 2, B_STAGE_BYTES = BK * BN * 2;
  const int team = int(threadIdx.x) / THREADS, thread = int(threadIdx.x) % THREADS;
  const int warp = thread / 32, lane = thread % 32, tiles_n = (n + BN - 1) / BN;
  const int warp_row = warp / WARPS_N * WM, warp_col = warp % WARPS_N * WN;

  extern __shared__ __align__(1024) unsigned char shared[];
  const int team_off = team * STAGES * (A_STAGE_BYTES + B_STAGE_BYTES);
  const uint32_t a_tile_addr = gg::ptx::shared_addr(shared) + team_off;  // [STAGES][BM][BK], swizzled
  const uint32_t b_tile_addr = a_tile_addr + STAGES * A_STAGE_BYTES;  // [STAGES][BN / 64][BK][64], swizzled
  // [barriers]
  __shared__ uint64_t full[2][STAGES];  // of each team: the slice in this stage has landed, 1 phase each
  const uint32_t full_addr = gg::ptx::shared_addr(full[team]);
  if (thread == 0) {
    for (int stage = 0; stage < STAGES; ++stage) gg::ptx::mbarrier_init(full_addr + stage * 8, 1);
    gg::ptx::fence_mbarrier_init();
  }
  gg::ptx::bar_sync(1 + team, THREADS);  // the team's barriers are there for all its threads
  // [/barriers]

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
  const int workers = int(gridDim.x), k_tiles = (k + BK - 1) / BK;
  int first = 0;  // slices of the tiles before this one: they say which stage and phase the barriers are in
  for (int tile = int(blockIdx.x) + team * workers; find(tile); tile += 2 * workers) {
    const int row0 = tile_in_group % tiles_m * BM, col0 = tile_in_group / tiles_m * BN;
    const int rows = group_rows - row0, cols = n - col0;  // from the tile's corner on
    T* d_first = d + (row_begin + row0) * n + col0;
    // [/tile]

    // [load]
    // One thread asks for a slice. What lies outside K or N becomes zeros, which count as bytes too. Rows
    // behind the group's belong to the next one: they are read, but rows of D that need them are not stored.
    auto load = [&](int k_tile) {
      const int stage = (first + k_tile) % STAGES, k0 = k_tile * BK;
      const uint32_t bar_addr = full_addr + stage * 8, b_addr = b_tile_addr + stage * B_STAGE_BYTES;
      gg::ptx::mbarrier_arrive_expect_tx(bar_addr, A_STAGE_BYTES + B_STAGE_BYTES);
      gg::ptx::tma_load_2d(a_tile_addr + stage * A_STAGE_BYTES, &a_map, k0, int(row_begin) + row0, bar_addr);
#pragma unroll
      for (int box = 0; box < BN / BOX_COLS; ++box) {
        gg::ptx::tma_load_3d(b_addr + box * B_BOX_BYTES, &b_map, col0 + box * BOX_COLS, k0, group, bar_addr);
      }
    };
    // [/load]

    // Two sets of fragments: one is multiplied while the next 16 steps of k arrive in the other.
    gg::ptx::FragmentA<T> a_frag[2][WM / 16];
    gg::ptx::FragmentB<T> b_frag[2][WN / 16];
    float acc[WM / 16][WN / 8][4] = {};
    // [fragments]
    const int a_off = swizzle(warp_row + lane % 16, lane / 16 * 8);  // this lane's at k = 0
    const int b_off =
        warp_col / BOX_COLS * B_BOX_BYTES + swizzle(lane % 16, warp_col % BOX_COLS + lane / 16 * 8);
    auto load_fragments = [&](int k_tile, int kk) {
      const int stage = (first + k_tile) % STAGES, set = kk / 16 % 2;
#pragma unroll
      for (int i = 0; i < WM / 16; ++i) {
        gg::ptx::ldmatrix_x4(a_frag[set][i].reg,
                             a_tile_addr + stage * A_STAGE_BYTES + (a_off ^ (kk * 2)) + i * 16 * BK * 2);
      }
#pragma unroll
      for (int j = 0; j < WN / 16; ++j) {
        gg::ptx::ldmatrix_x4_trans(
            b_frag[set][j].reg, b_tile_addr + stage * B_STAGE_BYTES + (b_off ^ (j * 32)) + kk * BOX_COLS * 2);
      }
    };
    // [/fragments]

    // [compute]
    auto wait = [&](int k_tile) {  // a stage's slices are the phases of its barrier: 0, 1, 2 ..
      const int slice = first + k_tile, phase = slice / STAGES;
      gg::ptx::mbarrier_wait_parity(full_addr + slice % STAGES * 8, phase % 2);
    };
    auto compute = [&](int k_tile) {
#pragma unroll
      for (int kk = 0; kk < BK; kk += 16) {
        if (kk + 16 < BK) {
          load_fragments(k_tile, kk + 16);
        } else if (k_tile + 1 < k_tiles) {  // this slice's last fragments are in registers: on to the next
          wait(k_tile + 1);                 // both tiles of slice k_tile + 1 have landed
          gg::ptx::bar_sync(1 + team, THREADS);  // nobody in the team reads slice k_tile any more
          load_fragments(k_tile + 1, 0);
          if (thread == 0 && k_tile + STAGES < k_tiles) load(k_tile + STAGES);
        }
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

    if (thread == 0) {
#pragma unroll 1  // one copy of load, which is long: it happens once for a tile
      for (int k_tile = 0; k_tile < min(STAGES, k_tiles); ++k_tile) load(k_tile);
    }
    wait(0);  // both tiles of slice 0 have landed
    load_fragments(0, 0);
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) compute(k_tile);
    gg::ptx::bar_sync(1 + team, THREADS);  // nobody in the team reads: all stages are free
    first += k_tiles;

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
}

template <class T>
constexpr CUtensorMapDataType MAP_TYPE =
    std::is_same_v<T, bf16> ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;

// `rows`: of A in memory, at least the last offset. `blocks` 0: one worker per multiprocessor.
template <class T, class Offset>
void launch(const T* a, const T* b, T* d, const Offset* offsets, int64_t rows, int groups, int n, int k,
            gg::TileShape tile, int blocks, cudaStream_t stream) {
  GG_REQUIRE(k % 8 == 0, "K=%d: rows of A are %d bytes, TMA wants multiples of 16; pad K to %d", k, k * 2,
             (k + 7) / 8 * 8);
  GG_REQUIRE(n % 8 == 0, "N=%d: rows of B are %d bytes, TMA wants multiples of 16; pad N to %d", n, n * 2,
             (n + 7) / 8 * 8);
  if (tile.m == 0) tile = {128, 128};
  const auto legal = [](int extent) { return extent == 64 || extent == 128; };
  GG_REQUIRE(legal(tile.m) && legal(tile.n), "--tile %dx%d: tiles have 64 or 128 rows and columns", tile.m,
             tile.n);
  auto* kernel = grouped_gemm<T, Offset, 128, 128>;
  // Every tile of every type would be 16 kernels to compile.
  if constexpr (std::is_same_v<T, bf16> && std::is_same_v<Offset, int32_t>) {
    if (tile.m == 128 && tile.n == 64) kernel = grouped_gemm<T, Offset, 128, 64>;
    if (tile.m == 64 && tile.n == 128) kernel = grouped_gemm<T, Offset, 64, 128>;
    if (tile.m == 64 && tile.n == 64) kernel = grouped_gemm<T, Offset, 64, 64>;
  } else {
    GG_REQUIRE(tile.m == 128 && tile.n == 128, "--tile %dx%d: these types have tiles of 128x128", tile.m,
               tile.n);
  }
  const int64_t element = sizeof(T), wide_n = n, wide_k = k;
  const CUtensorMap a_map = gg::make_tensor_map({.type = MAP_TYPE<T>,
                                                 .data = a,
                                                 .dims = {wide_k, rows},
                                                 .stride_bytes = {wide_k * element},
                                                 .box = {BK, tile.m},
                                                 .swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
  // [maps]
  // Three dimensions: behind K are zeros, not the next group's rows, which may hold NaN.
  const CUtensorMap b_map =
      gg::make_tensor_map({.type = MAP_TYPE<T>,
                           .data = b,
                           .dims = {wide_n, wide_k, groups},
                           .stride_bytes = {wide_n * element, wide_n * wide_k * element},
                           .box = {BOX_COLS, BK, 1},
                           .swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
  // [/maps]
  const int team_bytes = STAGES * (tile.m + tile.n) * BK * 2;
  int device = 0, multiprocessors = 0;
  GG_CHECK(cudaGetDevice(&device));
  GG_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  GG_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 2 * team_bytes));
  kernel<<<blocks ? blocks : multiprocessors, 2 * THREADS, 2 * team_bytes, stream>>>(a_map, b_map, d, offsets,
                                                                                     groups, n, k);
  GG_CHECK(cudaGetLastError());
}

}  // namespace chapter
