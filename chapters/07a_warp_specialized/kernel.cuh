// SPDX-License-Identifier: MIT
//
// Chapter 07a: one warp loads, eight multiply, along a schedule that the device makes.
//
// Group g owns rows offsets[g] .. offsets[g+1] of A [M,K] and D [M,N]; B is [G,N,K], K contiguous:
//     D[row, col] = sum over k of A[row, k] * B[g][col, k]
// New here: loading and multiplying are loops of different warps, held together by barriers alone.

#pragma once

#include "common/ptx/cvt.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/shared.cuh"
#include "common/ptx/tma.cuh"
#include "common/ptx/warp.cuh"
#include "common/ptx/warpgroup.cuh"
#include "common/ptx/wgmma.cuh"
#include "common/types.cuh"
#include "ring.cuh"

namespace chapter {

constexpr int BK = 64, ROW_BYTES = 128;  // depth of a slice: rows of 128 bytes, the most that TMA swizzles
constexpr int CONSUMERS = 2, THREADS = 128 * (CONSUMERS + 1);  // warpgroups that multiply; one more loads
constexpr int SHARED_BYTES = 200 * 1024;
constexpr int MAX_GROUPS = 4096, PLANNERS = 1024;

struct Tile {  // row0: its first row in A and D; rows: from there to the group's end
  int group, row0, rows, col0;
};
struct Maps {
  CUtensorMap a, b;
};
struct Problem {
  gg::Offsets offsets;
  int groups, n, k;
};
// At a fixed place: a launch allocates nothing, and a graph can hold it. One launch at a time may use it.
__device__ struct {
  int row[MAX_GROUPS + 1];   // first row of each group; behind them, how many there are
  int tile[MAX_GROUPS + 1];  // first tile of each group in the list of all; [0] stays 0
} schedule;

// One block: a thread looks at its group, then all add up their tiles, those of 1, 2, 4 .. groups at a time.
__global__ void __launch_bounds__(PLANNERS, 1)
    plan(const __grid_constant__ Problem problem, int bm, int tiles_n) {
  // [plan]
  const int thread = int(threadIdx.x), threads = int(blockDim.x), groups = problem.groups;
  __shared__ int ends[PLANNERS];
  for (int batch = 0, before = 0; batch <= groups; batch += threads) {
    const int g = min(batch + thread, groups), row = problem.offsets[g];
    ends[thread] = (problem.offsets[min(g + 1, groups)] - row + bm - 1) / bm * tiles_n;
    for (int step = 1; step < threads; step *= 2) {
      __syncthreads();  // sums of `step` groups are there
      const int below = thread >= step ? ends[thread - step] : 0;
      __syncthreads();  // and have been read
      ends[thread] += below;
    }
    if (batch + thread <= groups) schedule.row[g] = row;
    if (batch + thread < groups) schedule.tile[g + 1] = before + ends[thread];
    __syncthreads();
    before += ends[threads - 1];
    __syncthreads();  // everybody knows where the next batch begins
  }
  // [/plan]
}

// One block per multiprocessor: 65536 registers for 384 threads, 168 each before they are dealt out anew.
template <class T, int BM, int BN>
__global__ void __launch_bounds__(THREADS, 1)
    grouped_gemm(const __grid_constant__ Maps maps, T* d, const __grid_constant__ Problem problem) {
  constexpr int A_BYTES = BM * ROW_BYTES, B_BYTES = BN * ROW_BYTES;  // of a slice
  constexpr int STAGES = SHARED_BYTES / (A_BYTES + B_BYTES);         // slices in shared memory
  constexpr int WN = BM == 128 ? BN : BN / 2;  // columns of a warpgroup's part of the tile, which has 64 rows
  const int n = problem.n, k_tiles = (problem.k + BK - 1) / BK;
  const int thread = int(threadIdx.x), warpgroup = thread / 128, warp = thread / 32 % 4, lane = thread % 32;
  extern __shared__ __align__(1024) unsigned char shared[];
  const uint32_t a_tile_addr = gg::ptx::keep(gg::ptx::shared_addr(shared));  // [STAGES][BM][BK], swizzled
  const uint32_t b_tile_addr = a_tile_addr + STAGES * A_BYTES;               // [STAGES][BN][BK], swizzled
  __shared__ Tile headers[STAGES];       // the tile whose first slice is in this stage
  __shared__ uint64_t bars[2 * STAGES];  // full: the slice has landed; empty: all warps are done with it
  const uint32_t full_addr = gg::ptx::keep(gg::ptx::shared_addr(bars)), empty_addr = full_addr + STAGES * 8;
  if (thread == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      gg::ptx::mbarrier_init(full_addr + stage * 8, 1);
      gg::ptx::mbarrier_init(empty_addr + stage * 8, 4 * CONSUMERS);
    }
    gg::ptx::fence_mbarrier_init();
  }
  __syncthreads();  // the barriers are there for all threads and for TMA
  const int tiles = schedule.tile[problem.groups];
  Ring<STAGES> ring;
  if (warpgroup == CONSUMERS) {
    gg::ptx::setmaxnreg_dec<56>();
    int batch = 0, groups = problem.groups;  // batch: first group looked at
    for (int t = int(blockIdx.x); warp == 0 && t < tiles; t += int(gridDim.x)) {
      unsigned after;  // which of 32 groups end after this tile: each lane looks at one
      while (!(after = __ballot_sync(~0u, t < schedule.tile[min(batch + lane + 1, groups)]))) batch += 32;
      const int g = batch + __ffs(after) - 1, in_group = t - schedule.tile[g];
      const int row0 = schedule.row[g], rows = schedule.row[g + 1] - row0, tiles_m = (rows + BM - 1) / BM;
      const int r = in_group % tiles_m * BM, col0 = in_group / tiles_m * BN;  // column after column
      const Tile tile = {g, row0 + r, rows - r, col0};
      // [produce]
      for (int k_tile = 0; k_tile < k_tiles; ++k_tile, ring.next()) {
        const int stage = ring.stage, k0 = k_tile * BK;
        const uint32_t bar_addr = full_addr + stage * 8;
        // empty[stage]: all consumers have multiplied what was in it. The first time there was nothing.
        gg::ptx::mbarrier_wait_parity(empty_addr + stage * 8, ring.phase ^ 1);
        if (gg::ptx::elect()) {
          if (k_tile == 0) headers[stage] = tile;
          gg::ptx::mbarrier_arrive_expect_tx(bar_addr, A_BYTES + B_BYTES);
          gg::ptx::tma_load_2d(a_tile_addr + stage * A_BYTES, &maps.a, k0, tile.row0, bar_addr);
          gg::ptx::tma_load_3d(b_tile_addr + stage * B_BYTES, &maps.b, k0, tile.col0, tile.group, bar_addr);
        }
        __syncwarp();
      }
      // [/produce]
    }
  } else {
    gg::ptx::setmaxnreg_inc<224>();
    const int my_row = BM == 128 ? warpgroup * 64 : 0, my_col = BM == 128 ? 0 : warpgroup * WN;
    auto release = [&](int stage) {  // this warp does not read it any more
      if (gg::ptx::elect()) gg::ptx::mbarrier_arrive(empty_addr + stage * 8);
    };
    for (int t = int(blockIdx.x); t < tiles; t += int(gridDim.x)) {
      // full: the tile's first slice has landed, and the header before it
      gg::ptx::mbarrier_wait_parity(full_addr + ring.stage * 8, ring.phase);
      const Tile tile = headers[ring.stage];
      int last = 0;
      float acc[WN / 2];
      // [consume]
      for (int k_tile = 0; k_tile < k_tiles; ++k_tile, ring.next()) {
        const int stage = ring.stage;
        gg::ptx::mbarrier_wait_parity(full_addr + stage * 8, ring.phase);  // both parts have landed
        const gg::ptx::TileLayout layout = {gg::ptx::Swizzle::b128, 0, 8 * ROW_BYTES};
        const auto a = gg::ptx::wgmma_desc(a_tile_addr + stage * A_BYTES + my_row * ROW_BYTES, layout);
        const auto b = gg::ptx::wgmma_desc(b_tile_addr + stage * B_BYTES + my_col * ROW_BYTES, layout);
        gg::ptx::wgmma_fence(acc);
#pragma unroll
        for (int kk = 0; kk < BK; kk += 16) {
          gg::ptx::wgmma<T>(acc, gg::ptx::wgmma_advance(a, kk * 2), gg::ptx::wgmma_advance(b, kk * 2),
                            k_tile > 0 || kk > 0);
        }
        gg::ptx::wgmma_commit_group();
        if (k_tile > 0) gg::ptx::wgmma_wait_group<1>(), release(last);  // while this one goes on
        last = stage;
      }
      gg::ptx::wgmma_wait_group<0>(acc);  // all slices are multiplied
      release(last);
      // [/consume]
#pragma unroll
      for (int i = 0; i < WN / 2; i += 2) {  // registers i and i + 1 are neighbours in a row
        const int r = my_row + warp * 16 + i / 2 % 2 * 8 + lane / 4;
        const int col = tile.col0 + my_col + i / 4 * 8 + lane % 4 * 2;
        const uint32_t pair = gg::ptx::cvt_rn_x2<T>(acc[i], acc[i + 1]);
        if (r < tile.rows && col < n)
          *reinterpret_cast<uint32_t*>(d + int64_t(tile.row0 + r) * n + col) = pair;
      }
    }
  }
}

}  // namespace chapter
