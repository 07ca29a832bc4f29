// SPDX-License-Identifier: MIT
//
// Chapter 08a: one thread multiplies, and the sums live in tensor memory.
//
// Group g has rows offsets[g] .. offsets[g+1] of A and D, and B[g] is [N,K], K contiguous:
//     D[row, col] = sum over k of A[row, k] * B[g][col, k]
// New here: tcgen05. One warp loads, one thread multiplies, four warps store the tile before: tensor memory
// holds two tiles of sums.

#pragma once

#include "common/check.h"
#include "common/ptx/cvt.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/shared.cuh"
#include "common/ptx/tcgen05.cuh"
#include "common/ptx/tma.cuh"
#include "common/ptx/warp.cuh"
#include "common/tensor_map.h"
#include "common/types.cuh"
#include "schedule.cuh"

namespace chapter {

constexpr int BK = 64, ROW_BYTES = 128;  // depth of a slice: rows of 128 bytes, the most that TMA swizzles
constexpr int STORERS = 4, PRODUCER = 4, MULTIPLIER = 5, THREADS = 32 * 6;  // warps 0 to 3 store; in all
constexpr int SHARED_BYTES = 226 * 1024;  // of 227 KB: barriers and the like have the last

// 16 bytes of D from the sums of as many columns as they hold.
template <class TD>
__device__ uint4 pack(const uint32_t* sums) {
  uint4 words;
  uint32_t* word = &words.x;
  for (int i = 0; i < 4; ++i) {
    if constexpr (sizeof(TD) == 4) word[i] = sums[i];
    if constexpr (sizeof(TD) == 2)
      word[i] = gg::ptx::cvt_rn_x2<TD>(__uint_as_float(sums[2 * i]), __uint_as_float(sums[2 * i + 1]));
  }
  return words;
}

// One block per multiprocessor: it takes most of the shared memory, and all of tensor memory if BN is 256.
template <class T, class TD, int BN, class Offset>
__global__ void __launch_bounds__(THREADS, 1)
    grouped_gemm(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map, TD* d,
                 const Offset* offsets, int groups, int n, int k) {
  constexpr int A_BYTES = BM * ROW_BYTES, B_BYTES = BN * ROW_BYTES;  // of a slice
  constexpr int STAGES = SHARED_BYTES / (A_BYTES + B_BYTES);         // slices in shared memory
  const int thread = int(threadIdx.x), warp = thread / 32, lane = thread % 32;
  extern __shared__ __align__(1024) unsigned char shared[];
  const uint32_t a_tile_addr = gg::ptx::shared_addr(shared);    // [STAGES][BM][BK], swizzled
  const uint32_t b_tile_addr = a_tile_addr + STAGES * A_BYTES;  // [STAGES][BN][BK], swizzled
  __shared__ uint64_t bars[2 * STAGES + 4];
  const uint32_t full_addr = gg::ptx::shared_addr(bars);  // the slice has landed
  const uint32_t empty_addr = full_addr + STAGES * 8;     // and has been multiplied
  const uint32_t ready_addr = empty_addr + STAGES * 8;    // the tile's sums are complete
  const uint32_t taken_addr = ready_addr + 2 * 8;         // and have been read
  __shared__ gg::ptx::TmemAddr sums_slot;
  if (thread == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      gg::ptx::mbarrier_init(full_addr + stage * 8, 1);
      gg::ptx::mbarrier_init(empty_addr + stage * 8, 1);
    }
    for (int half = 0; half < 2; ++half) {
      gg::ptx::mbarrier_init(ready_addr + half * 8, 1);
      gg::ptx::mbarrier_init(taken_addr + half * 8, STORERS);
    }
    gg::ptx::fence_mbarrier_init();
  }
  // [alloc]
  if (warp == MULTIPLIER) {
    gg::ptx::tcgen05_alloc<2 * BN>(gg::ptx::shared_addr(&sums_slot));
    gg::ptx::tcgen05_relinquish_alloc_permit();
  }
  __syncthreads();  // the barriers are there for all threads and for TMA, and so is tensor memory
  const gg::ptx::TmemAddr sums = sums_slot;  // [2][BM][BN]: of this tile, and of the one before
  // [/alloc]
  // Number i of a ring of `size` has a place and, in its barriers, a phase. before = 1: the phase before it.
  auto wait = [](uint32_t bars_addr, int size, int i, int before) {
    gg::ptx::mbarrier_wait_parity(bars_addr + i % size * 8, i / size % 2 ^ before);
  };
  const int tiles = schedule.first[groups], k_tiles = (k + BK - 1) / BK;
  int slice = 0, turn = 0;  // of this block, counted through all its tiles; its tiles
  if (warp == PRODUCER) {
    for (int tile = int(blockIdx.x), batch = 0; tile < tiles; tile += int(gridDim.x)) {
      const Place at = place_of(tile, offsets, groups, BN, batch);
      if (gg::ptx::elect()) {
        for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
          const int stage = (slice + k_tile) % STAGES, k0 = k_tile * BK;
          const uint32_t bar_addr = full_addr + stage * 8;
          wait(empty_addr, STAGES, slice + k_tile, 1);  // what was in this stage has been multiplied
          gg::ptx::mbarrier_arrive_expect_tx(bar_addr, A_BYTES + B_BYTES);
          gg::ptx::tma_load_3d(a_tile_addr + stage * A_BYTES, &a_map, k0, at.row0, 0, bar_addr);
          gg::ptx::tma_load_3d(b_tile_addr + stage * B_BYTES, &b_map, k0, at.col0, at.g, bar_addr);
        }
      }
      slice += k_tiles;
    }
  } else if (warp == MULTIPLIER) {
    // [multiply]
    constexpr uint32_t IDESC = gg::ptx::tcgen05_idesc_f16<T, BM, BN>();
    if (gg::ptx::elect()) {
      for (int tile = int(blockIdx.x); tile < tiles; tile += int(gridDim.x), ++turn) {
        wait(taken_addr, 2, turn, 1);  // the sums of two tiles ago have been read
        const gg::ptx::TmemAddr my_sums = gg::ptx::tmem_at(sums, 0, turn % 2 * BN);
        for (int k_tile = 0; k_tile < k_tiles; ++k_tile, ++slice) {
          const int stage = slice % STAGES;
          wait(full_addr, STAGES, slice, 0);  // both parts of the slice have landed
          gg::ptx::tcgen05_fence_after();
          const auto a = gg::ptx::tcgen05_desc_k_major_128b(a_tile_addr + stage * A_BYTES);
          const auto b = gg::ptx::tcgen05_desc_k_major_128b(b_tile_addr + stage * B_BYTES);
          for (int kk = 0; kk < BK; kk += 16) {
            gg::ptx::tcgen05_mma_f16(my_sums, gg::ptx::tcgen05_advance(a, kk * 2),
                                     gg::ptx::tcgen05_advance(b, kk * 2), IDESC, k_tile > 0 || kk > 0);
          }
          gg::ptx::tcgen05_commit(empty_addr + stage * 8);  // arrives when these products are done
        }
        gg::ptx::tcgen05_commit(ready_addr + turn % 2 * 8);  // and the tile's
      }
    }
    // [/multiply]
  } else {
    // [store]
    for (int tile = int(blockIdx.x), batch = 0; tile < tiles; tile += int(gridDim.x), ++turn) {
      const Place at = place_of(tile, offsets, groups, BN, batch);
      const int r = warp * 32 + lane;  // this thread's row, and its lane of tensor memory
      TD* row = d + int64_t(at.row0 + r) * n;
      wait(ready_addr, 2, turn, 0);  // the tile's sums are complete
      gg::ptx::tcgen05_fence_after();
      for (int c0 = 0; c0 < BN; c0 += 32) {
        uint32_t part[32];  // of the row
        gg::ptx::tcgen05_ld_32x32b_x32(part, gg::ptx::tmem_at(sums, warp * 32, turn % 2 * BN + c0));
        gg::ptx::tcgen05_wait_ld(part);
#pragma unroll
        for (int c = 0; c < 32; c += 16 / int(sizeof(TD))) {
          const int col = at.col0 + c0 + c;
          if (r < at.rows && col < n) *reinterpret_cast<uint4*>(row + col) = pack<TD>(part + c);
        }
      }
      gg::ptx::tcgen05_fence_before();
      if (gg::ptx::elect())
        gg::ptx::mbarrier_arrive(taken_addr + turn % 2 * 8);  // this warp has read its rows
    }
    // [/store]
  }
  __syncwarp();     // one lane multiplied, or loaded
  __syncthreads();  // nobody uses tensor memory any more
  if (warp == MULTIPLIER) gg::ptx::tcgen05_dealloc<2 * BN>(sums);
}

// A [rows,K], B [G,N,K], D [rows,N] and offsets[G+1] on the device. K and N: multiples of 8.
template <class T, class TD, class Offset>
void launch(const T* a, const T* b, TD* d, const Offset* offsets, int64_t rows, int groups, int n, int k,
            gg::Tile tile, int blocks, cudaStream_t stream) {
  GG_REQUIRE(groups <= MAX_GROUPS, "G=%d: the schedule has room for %d groups", groups, MAX_GROUPS);
  GG_REQUIRE(n % 8 == 0 && k % 8 == 0, "N=%d, K=%d: TMA and D's stores want multiples of 8", n, k);
  auto* kernel = tile.n == 64    ? grouped_gemm<T, TD, 64, Offset>
                 : tile.n == 128 ? grouped_gemm<T, TD, 128, Offset>
                 : tile.n == 256 ? grouped_gemm<T, TD, 256, Offset>
                                 : nullptr;
  GG_REQUIRE(tile.m == BM && kernel, "--tile %dx%d: tiles are 128x64, 128x128 or 128x256", tile.m, tile.n);
  const auto map = [k](const T* matrices, int64_t count, int64_t matrix_rows, int box_rows) {
    return gg::make_tensor_map({.data = matrices,  // of 16 bits, whatever they mean
                                .dims = {k, matrix_rows, count},
                                .stride_bytes = {k * int64_t(2), matrix_rows * k * 2},
                                .box = {BK, box_rows, 1},
                                .swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
  };
  int device = 0, multiprocessors = 0;
  GG_CHECK(cudaGetDevice(&device));
  GG_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  GG_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES));
  const int planners = groups < PLANNERS ? (groups + 31) / 32 * 32 : PLANNERS;
  plan<<<1, planners, 0, stream>>>(offsets, n, groups, tile.n);
  kernel<<<blocks ? blocks : multiprocessors, THREADS, SHARED_BYTES, stream>>>(
      map(a, 1, rows, BM), map(b, groups, n, tile.n), d, offsets, groups, n, k);
  GG_CHECK(cudaGetLastError());
}

}  // namespace chapter
