// SPDX-License-Identifier: MIT
//
// Chapter 07b: groups have an N and a K of their own, and matrices of their own.
//
// Group g has rows of A and D, and B[g] is [N,K], K contiguous; N and K may be the group's own:
//     D[row, col] = sum over k of A[row, k] * B[g][col, k]
// New here: the device makes each group's tensor maps, for the host does not know where its matrices are.

#pragma once

#include "common/check.h"
#include "common/ptx/cvt.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/shared.cuh"
#include "common/ptx/tensormap.cuh"
#include "common/ptx/tma.cuh"
#include "common/ptx/warp.cuh"
#include "common/ptx/warpgroup.cuh"
#include "common/ptx/wgmma.cuh"
#include "common/types.cuh"
#include "group.cuh"
#include "ring.cuh"

namespace chapter {

constexpr int BK = 64, ROW_BYTES = 128;  // depth of a slice: rows of 128 bytes, the most that TMA swizzles
constexpr int CONSUMERS = 2, THREADS = 128 * (CONSUMERS + 1);  // warpgroups that multiply; one more loads
constexpr int SHARED_BYTES = 200 * 1024;
constexpr int MAX_GROUPS = 4096, PLANNERS = 1024;

struct alignas(128) Maps {
  CUtensorMap a, b;
};
// At a fixed place: a launch allocates nothing, and a graph can hold it. One launch at a time may use it.
__device__ struct {
  Group groups[MAX_GROUPS];
  int tile[MAX_GROUPS + 1];  // first tile of each group in the list of all; [0] stays 0
  Maps maps[MAX_GROUPS];     // of groups with matrices of their own
} schedule;

// Block 0 writes the schedule. The warps of the others make maps, if groups have sizes of their own.
template <class T, class Offset>
__global__ void __launch_bounds__(PLANNERS, 1)
    plan(const __grid_constant__ Maps maps, const T* const* a_ptrs, const T* const* b_ptrs, T* const* d_ptrs,
         const int* sizes, const int* leading_dims, T* d, const Offset* offsets, int n, int k, int groups,
         int bm, int bn) {
  const int thread = int(threadIdx.x), threads = int(blockDim.x), warp = thread / 32, lane = thread % 32;
  if (blockIdx.x > 0) {
    // [maps]
    // One map of A and one of B, from patterns that have type, box and swizzle: lane 0 A's, lane 1 B's.
    __shared__ Maps of_warp[PLANNERS / 32];
    const int g = (int(blockIdx.x) - 1) * threads / 32 + warp;
    if (g >= groups) return;
    GG_DEVICE_ASSERT(sizes[3 * g + 1] % 8 == 0 && sizes[3 * g + 2] % 8 == 0 &&
                     leading_dims[3 * g + 2] % 8 == 0);
    const uint32_t a_addr = gg::ptx::shared_addr(&of_warp[warp].a), b_addr = a_addr + sizeof(CUtensorMap);
    if (lane < 2) {
      const uint32_t map_addr = lane == 0 ? a_addr : b_addr;
      (lane == 0 ? of_warp[warp].a : of_warp[warp].b) = lane == 0 ? maps.a : maps.b;
      gg::ptx::tensormap_replace_global_address(map_addr, lane == 0 ? a_ptrs[g] : b_ptrs[g]);
      gg::ptx::tensormap_replace_global_dim<0>(map_addr, sizes[3 * g + 2]);  // behind K there are zeros
      gg::ptx::tensormap_replace_global_dim<1>(map_addr, max(sizes[3 * g + lane], 1));
      gg::ptx::tensormap_replace_global_stride<1>(map_addr, leading_dims[3 * g + lane] * int64_t(sizeof(T)));
    }
    __syncwarp();  // both maps are in shared memory
    gg::ptx::tensormap_cp_fenceproxy(&schedule.maps[g].a, a_addr);
    gg::ptx::tensormap_cp_fenceproxy(&schedule.maps[g].b, b_addr);
    // [/maps]
    return;
  }
  // A thread describes its group; then all add up their tiles, those of 1, 2, 4 .. groups at a time.
  __shared__ int ends[PLANNERS];
  for (int batch = 0, before = 0; batch < groups; batch += threads) {
    const int g = batch + thread, *size = sizes + 3 * g;
    Group group = {};  // no rows, no tiles
    if (g < groups && sizes) group = {d_ptrs[g], 0, size[0], size[1], size[2], leading_dims[3 * g + 2]};
    if (g < groups && !sizes)
      group = {d + int64_t(offsets[g]) * n, int(offsets[g]), int(offsets[g + 1] - offsets[g]), n, k, n};
    ends[thread] = group.tiles(bm, bn);
    for (int step = 1; step < threads; step *= 2) {
      __syncthreads();  // sums of `step` groups are there
      const int below = thread >= step ? ends[thread - step] : 0;
      __syncthreads();  // and have been read
      ends[thread] += below;
    }
    if (g < groups) schedule.groups[g] = group, schedule.tile[g + 1] = before + ends[thread];
    __syncthreads();
    before += ends[threads - 1];
    __syncthreads();  // everybody knows where the next batch begins
  }
}

// One block per multiprocessor: 65536 registers for 384 threads, 168 each before they are dealt out anew.
template <class T, int BM, int BN>
__global__ void __launch_bounds__(THREADS, 1)
    grouped_gemm(const __grid_constant__ Maps packed, bool own_maps, int groups) {
  constexpr int A_BYTES = BM * ROW_BYTES, B_BYTES = BN * ROW_BYTES;  // of a slice
  constexpr int STAGES = SHARED_BYTES / (A_BYTES + B_BYTES);         // slices in shared memory
  constexpr int WN = BM == 128 ? BN : BN / 2;  // columns of a warpgroup's part of the tile, which has 64 rows
  const int thread = int(threadIdx.x), warpgroup = thread / 128, warp = thread / 32 % 4, lane = thread % 32;
  extern __shared__ __align__(1024) unsigned char shared[];
  const uint32_t a_tile_addr = gg::ptx::keep(gg::ptx::shared_addr(shared));  // [STAGES][BM][BK], swizzled
  const uint32_t b_tile_addr = a_tile_addr + STAGES * A_BYTES;               // [STAGES][BN][BK], swizzled
  __shared__ Group headers[STAGES];      // of the tile whose first slice is in this stage
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
  const int tiles = schedule.tile[groups];
  Ring<STAGES> ring;
  if (warpgroup == CONSUMERS) {
    gg::ptx::setmaxnreg_dec<56>();
    int batch = 0;  // first group looked at
    for (int t = int(blockIdx.x); warp == 0 && t < tiles; t += int(gridDim.x)) {
      unsigned after;  // which of 32 groups end after this tile: each lane looks at one
      while (!(after = __ballot_sync(~0u, t < schedule.tile[min(batch + lane + 1, groups)]))) batch += 32;
      const int g = batch + __ffs(after) - 1, in_group = t - schedule.tile[g];
      Group group = schedule.groups[g];
      const int r = group.tile_m(in_group, BM) * BM, col0 = group.tile_n(in_group, BM) * BN;
      const int k_tiles = (group.k + BK - 1) / BK;
      group.d = static_cast<T*>(group.d) + int64_t(r) * group.ldd + col0;
      group.row0 += r, group.rows -= r, group.n -= col0;  // as seen from the tile's corner
      // [produce]
      const Maps& maps = own_maps ? schedule.maps[g] : packed;
      if (own_maps) gg::ptx::fence_tensormap_acquire(&maps.a), gg::ptx::fence_tensormap_acquire(&maps.b);
      for (int k_tile = 0; k_tile < k_tiles; ++k_tile, ring.next()) {
        const int stage = ring.stage, k0 = k_tile * BK;
        const uint32_t bar_addr = full_addr + stage * 8;
        // empty[stage]: all consumers have multiplied what was in it. The first time there was nothing.
        gg::ptx::mbarrier_wait_parity(empty_addr + stage * 8, ring.phase ^ 1);
        if (gg::ptx::elect()) {
          if (k_tile == 0) headers[stage] = group;
          gg::ptx::mbarrier_arrive_expect_tx(bar_addr, A_BYTES + B_BYTES);
          gg::ptx::tma_load_3d(a_tile_addr + stage * A_BYTES, &maps.a, k0, group.row0, 0, bar_addr);
          gg::ptx::tma_load_3d(b_tile_addr + stage * B_BYTES, &maps.b, k0, col0, own_maps ? 0 : g, bar_addr);
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
      const Group tile = headers[ring.stage];
      const int k_tiles = (tile.k + BK - 1) / BK;
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
      T* d = static_cast<T*>(tile.d);
#pragma unroll
      for (int i = 0; i < WN / 2; i += 2) {  // registers i and i + 1 are neighbours in a row
        const int r = my_row + warp * 16 + i / 2 % 2 * 8 + lane / 4, c = my_col + i / 4 * 8 + lane % 4 * 2;
        const uint32_t pair = gg::ptx::cvt_rn_x2<T>(acc[i], acc[i + 1]);
        if (r < tile.rows && c < tile.n) *reinterpret_cast<uint32_t*>(d + int64_t(r) * tile.ldd + c) = pair;
      }
    }
  }
}

}  // namespace chapter
