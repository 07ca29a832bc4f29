// SPDX-License-Identifier: MIT
//
// Chapter 07a: one warp loads, eight multiply, along a schedule that the device makes.
//
// Group g has rows of A and D, and B[g] is [N,K], K contiguous; N and K may be the group's own:
//     D[row, col] = sum over k of A[row, k] * B[g][col, k]
// New here: loading and multiplying are loops of different warps, held together by barriers alone.

#pragma once

#include <algorithm>
#include <cstdio>
#include <type_traits>

#include "common/check.h"
#include "common/ptx/elect.cuh"
#include "common/ptx/ldmatrix.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/tensormap.cuh"
#include "common/ptx/tma.cuh"
#include "common/ptx/warpgroup.cuh"
#include "common/ptx/wgmma.cuh"
#include "common/tensor_map.h"
#include "common/types.cuh"

namespace chapter {

constexpr int BK = 64, ROW_BYTES = 128;   // depth of a slice: rows of 128 bytes, the most that TMA swizzles
constexpr int CONSUMERS = 2;              // warpgroups that multiply; one more loads
constexpr int SHARED_BYTES = 200 * 1024;  // for slices: as many stages as it holds
constexpr int MAX_GROUPS = 4096, PLANNERS = 1024;

// [schedule]
struct Group {  // what a worker must know of a group, or of that part of it that begins at a tile's corner
  void* d;      // first element of D
  int row0;     // first row, as the map of A counts
  int rows, n, k, ldd;
  GG_HD int tiles_m(int bm) const { return (rows + bm - 1) / bm; }
  GG_HD int tiles(int bm, int bn) const { return tiles_m(bm) * ((n + bn - 1) / bn); }
  GG_HD int tile_m(int tile, int bm) const { return tile % tiles_m(bm); }  // column after column
  GG_HD int tile_n(int tile, int bm) const { return tile / tiles_m(bm); }
};
struct alignas(128) Maps {
  CUtensorMap a, b;
};
// At a fixed place: a launch allocates nothing, and a graph can hold it. One launch at a time may use it.
__device__ struct {
  Maps maps[MAX_GROUPS];      // of groups with matrices of their own
  int first[MAX_GROUPS + 1];  // tile of each group in the list of all; behind them, how many there are
  Group groups[MAX_GROUPS];
} schedule;
// [/schedule]

// [plan]
// One block: a thread describes its group, then all add up their tiles, those of 1, 2, 4 .. groups at a time.
template <class T, class Offset>
__global__ void __launch_bounds__(PLANNERS, 1)
    plan(T* d, const Offset* offsets, int n, int k, T* const* d_ptrs, const int* sizes,
         const int* leading_dims, int groups, int bm, int bn) {
  __shared__ int ends[PLANNERS];
  const int thread = int(threadIdx.x), threads = int(blockDim.x);
  for (int batch = 0, before = 0; batch < groups; batch += threads) {
    const int g = batch + thread;
    Group group = {};  // no rows, no tiles
    if (g < groups && sizes) {
      group = {d_ptrs[g], 0, sizes[3 * g], sizes[3 * g + 1], sizes[3 * g + 2], leading_dims[3 * g + 2]};
    } else if (g < groups) {
      group = {d + int64_t(offsets[g]) * n, int(offsets[g]), int(offsets[g + 1] - offsets[g]), n, k, n};
    }
    ends[thread] = group.tiles(bm, bn);
    for (int step = 1; step < threads; step *= 2) {
      __syncthreads();  // sums of `step` groups are there
      const int below = thread >= step ? ends[thread - step] : 0;
      __syncthreads();  // and have been read
      ends[thread] += below;
    }
    if (g < groups) schedule.groups[g] = group, schedule.first[g + 1] = before + ends[thread];
    if (g == 0) schedule.first[0] = 0;
    __syncthreads();
    before += ends[threads - 1];
    __syncthreads();  // everybody knows where the next batch begins
  }
}
// [/plan]

// [maps]
// One warp: the maps of group blockIdx.x, from patterns that have type, box and swizzle. Lane 0 A's, lane 1
// B's.
template <class T>
__global__ void __launch_bounds__(32)
    make_maps(const __grid_constant__ Maps patterns, const T* const* a_ptrs, const T* const* b_ptrs,
              const int* sizes, const int* leading_dims) {
  __shared__ Maps maps;
  const int g = int(blockIdx.x), lane = int(threadIdx.x);
  const uint32_t a_addr = gg::ptx::shared_addr(&maps.a), b_addr = gg::ptx::shared_addr(&maps.b);
  if (lane < 2) {
    const uint32_t map_addr = lane == 0 ? a_addr : b_addr;
    (lane == 0 ? maps.a : maps.b) = lane == 0 ? patterns.a : patterns.b;
    gg::ptx::tensormap_replace_global_address(map_addr, lane == 0 ? a_ptrs[g] : b_ptrs[g]);
    gg::ptx::tensormap_replace_global_dim<0>(map_addr, sizes[3 * g + 2]);  // behind K there are zeros
    gg::ptx::tensormap_replace_global_dim<1>(map_addr, max(sizes[3 * g + lane], 1));
    gg::ptx::tensormap_replace_global_stride<1>(map_addr, leading_dims[3 * g + lane] * int64_t(sizeof(T)));
  }
  __syncwarp();  // both maps are in shared memory
  gg::ptx::tensormap_cp_fenceproxy(&schedule.maps[g].a, a_addr);
  gg::ptx::tensormap_cp_fenceproxy(&schedule.maps[g].b, b_addr);
}
// [/maps]

template <class T>
struct alignas(2 * sizeof(T)) Pair {  // two neighbours in a row of D, one store
  T left, right;
};

// One block per multiprocessor: 65536 registers for 384 threads, 168 each before they are dealt out anew.
template <class T, int BM, int BN>
__global__ void __launch_bounds__(128 * (CONSUMERS + 1), 1)
    grouped_gemm(const __grid_constant__ Maps packed, bool own_maps, int groups) {
  constexpr int A_BYTES = BM * ROW_BYTES, B_BYTES = BN * ROW_BYTES;  // of a slice
  constexpr int STAGES = SHARED_BYTES / (A_BYTES + B_BYTES);
  constexpr int WN = BM == 128 ? BN : BN / 2;  // columns of a warpgroup's part of the tile, which has 64 rows
  const int warpgroup = int(threadIdx.x) / 128, warp = int(threadIdx.x) / 32 % 4,
            lane = int(threadIdx.x) % 32;
  extern __shared__ __align__(1024) unsigned char shared[];
  const uint32_t a_tile_addr = gg::ptx::opaque(gg::ptx::shared_addr(shared));  // [STAGES][BM][BK], swizzled
  const uint32_t b_tile_addr = a_tile_addr + STAGES * A_BYTES;                 // [STAGES][BN][BK], swizzled
  __shared__ Group headers[STAGES];                 // of the tile whose first slice is in this stage
  __shared__ uint64_t full[STAGES], empty[STAGES];  // the slice has landed; both warpgroups are done with it
  const uint32_t full_addr = gg::ptx::opaque(gg::ptx::shared_addr(full));
  const uint32_t empty_addr = gg::ptx::opaque(gg::ptx::shared_addr(empty));
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      gg::ptx::mbarrier_init(full_addr + stage * 8, 1);
      gg::ptx::mbarrier_init(empty_addr + stage * 8, 4 * CONSUMERS);
    }
    gg::ptx::fence_mbarrier_init();
  }
  __syncthreads();  // the barriers are there for all threads and for TMA

  int first = 0;  // slices of the tiles before this one: they say which stage and phase the barriers are in
  if (warpgroup == CONSUMERS) {
    gg::ptx::setmaxnreg_dec<40>();
    // [produce]
    int batch = 0;               // first group looked at
    auto find = [&](int tile) {  // the group that has it, each lane looking at one; -1: there is no such tile
      for (; batch < groups; batch += 32) {
        const int end = schedule.first[min(batch + lane + 1, groups)];
        const unsigned after = __ballot_sync(~0u, tile < end);  // groups ending after it
        if (after != 0) return batch + __ffs(after) - 1;
      }
      return -1;
    };
    auto wait_empty = [&](int at) {  // both warpgroups have multiplied what was in its stage
      gg::ptx::mbarrier_wait_parity(empty_addr + at % STAGES * 8, at / STAGES % 2 ^ 1);
    };
    auto announce =
        [&](const Group& tile) {  // in the stage of its first slice, whose barrier says it is there
          wait_empty(first);
          headers[first % STAGES] = tile;
        };
    for (int tile = int(blockIdx.x), g; warp == 0 && (g = find(tile)) >= 0; tile += int(gridDim.x)) {
      const Group group = schedule.groups[g];
      const int in_group = tile - schedule.first[g], k_tiles = (group.k + BK - 1) / BK;
      const int r = group.tile_m(in_group, BM) * BM, col0 = group.tile_n(in_group, BM) * BN;
      if (gg::ptx::elect_sync()) {
        const Maps& maps = own_maps ? schedule.maps[g] : packed;
        if (own_maps) gg::ptx::fence_tensormap_acquire(&maps.a), gg::ptx::fence_tensormap_acquire(&maps.b);
        T* d = static_cast<T*>(group.d) + int64_t(r) * group.ldd + col0;
        announce({d, group.row0 + r, group.rows - r, group.n - col0, group.k, group.ldd});
#pragma unroll 1
        for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
          const int at = first + k_tile, stage = at % STAGES, k0 = k_tile * BK;
          const uint32_t bar_addr = full_addr + stage * 8;
          wait_empty(at);
          gg::ptx::mbarrier_arrive_expect_tx(bar_addr, A_BYTES + B_BYTES);
          gg::ptx::tma_load_2d(a_tile_addr + stage * A_BYTES, &maps.a, k0, group.row0 + r, bar_addr);
          gg::ptx::tma_load_3d(b_tile_addr + stage * B_BYTES, &maps.b, k0, col0, own_maps ? 0 : g, bar_addr);
        }
      }
      __syncwarp();
      first += k_tiles;
    }
    // [/produce]
    if (warp == 0 && gg::ptx::elect_sync()) {
      announce({});  // no rows: there are no more tiles
      gg::ptx::mbarrier_arrive(full_addr + first % STAGES * 8);
    }
  } else {
    gg::ptx::setmaxnreg_inc<232>();
    // [consume]
    const int my_row = BM == 128 ? warpgroup * 64 : 0, my_col = BM == 128 ? 0 : warpgroup * WN;
    auto wait_full = [&](int at) {  // the slice has landed; if a tile begins with it, its header is there
      gg::ptx::mbarrier_wait_parity(full_addr + at % STAGES * 8, at / STAGES % 2);
    };
    auto release = [&](int at) {  // this warp does not read the slice any more
      if (gg::ptx::elect_sync()) gg::ptx::mbarrier_arrive(empty_addr + at % STAGES * 8);
    };
    for (Group tile; wait_full(first), (tile = headers[first % STAGES]).rows > 0;) {
      const int last = first + (tile.k + BK - 1) / BK - 1;
      float acc[WN / 2];
#pragma unroll 1
      for (int at = first; at <= last; ++at) {
        const int stage = at % STAGES;
        wait_full(at);
        const gg::ptx::TileLayout layout = {gg::ptx::Swizzle::b128, 0, 8 * ROW_BYTES};
        const auto a = gg::ptx::wgmma_desc(a_tile_addr + stage * A_BYTES + my_row * ROW_BYTES, layout);
        const auto b = gg::ptx::wgmma_desc(b_tile_addr + stage * B_BYTES + my_col * ROW_BYTES, layout);
        gg::ptx::wgmma_fence(acc);
#pragma unroll
        for (int kk = 0; kk < BK; kk += 16) {
          gg::ptx::wgmma<T>(acc, gg::ptx::wgmma_advance(a, kk * 2), gg::ptx::wgmma_advance(b, kk * 2),
                            at > first || kk > 0);
        }
        gg::ptx::wgmma_commit_group();
        if (at > first) {
          gg::ptx::wgmma_wait_group<1>();  // the slice before is multiplied, this one is under way
          release(at - 1);
        }
      }
      gg::ptx::wgmma_wait_group<0>(acc);  // all slices are multiplied
      release(last);
      first = last + 1;
      // [/consume]

      T* d = static_cast<T*>(tile.d);
#pragma unroll
      for (int i = 0; i < WN / 2; i += 2) {  // registers i and i + 1 are neighbours in a row
        const int r = my_row + warp * 16 + i / 2 % 2 * 8 + lane / 4, c = my_col + i / 4 * 8 + lane % 4 * 2;
        const Pair<T> pair = {gg::from_float<T>(acc[i]), gg::from_float<T>(acc[i + 1])};
        if (r < tile.rows && c < tile.n) *reinterpret_cast<Pair<T>*>(d + int64_t(r) * tile.ldd + c) = pair;
      }
    }
  }
}

template <class T, int BM>
auto* kernel_for(int bn) {
  return bn == 256   ? grouped_gemm<T, BM, 256>
         : bn == 128 ? grouped_gemm<T, BM, 128>
                     : grouped_gemm<T, BM, 64>;
}

// The same list on the host: prints which block computes which tiles, as group(tile_m,tile_n).
template <class Shape>
void print_schedule(const Shape& shape, gg::Tile tile, int blocks) {
  for (int block = 0; block < blocks; ++block) {
    std::printf("block %d:", block);
    for (int g = 0, next = block; g < shape.groups();
         ++g) {  // next: the block's next tile, seen from group g
      const Group group = {nullptr, 0, shape.m[size_t(g)], shape.n_of(g), shape.k_of(g), 0};
      for (; next < group.tiles(tile.m, tile.n); next += blocks)
        std::printf(" %d(%d,%d)", g, group.tile_m(next, tile.m), group.tile_n(next, tile.m));
      next -= group.tiles(tile.m, tile.n);
    }
    std::printf("\n");
  }
}

// Either packed: A [rows,K], B [G,N,K], D and offsets on the device. Or groups of their own sizes: device
// arrays of G pointers, sizes [G,3] as M, N, K, leading dimensions [G,3] of A, B, D; sizes null: packed.
template <class T, class Offset>
void launch(const T* a, const T* b, T* d, const Offset* offsets, int64_t rows, int groups, int n, int k,
            const T* const* a_ptrs, const T* const* b_ptrs, T* const* d_ptrs, const int* sizes,
            const int* leading_dims, gg::Tile tile, int blocks, cudaStream_t stream) {
  GG_REQUIRE(groups <= MAX_GROUPS, "G=%d: the schedule has room for %d groups", groups, MAX_GROUPS);
  GG_REQUIRE(sizes || (n % 8 == 0 && k % 8 == 0), "N=%d, K=%d: TMA and D's stores want multiples of 8", n, k);
  if (tile.m == 0) tile = {128, 128};
  GG_REQUIRE((tile.m == 64 || tile.m == 128) && (tile.n == 64 || tile.n == 128 || tile.n == 256),
             "--tile %dx%d: tiles have 64 or 128 rows and 64, 128 or 256 columns", tile.m, tile.n);
  auto* kernel = tile.m == 128 ? kernel_for<T, 128>(tile.n) : kernel_for<T, 64>(tile.n);
  // [launch]
  // Packed: one map of A, and B as three dimensions. Else patterns, over any memory, of a map of each
  // group's.
  const int64_t cols = sizes ? tile.n : n, depth = sizes ? BK : k, element = sizeof(T);
  gg::TensorBox box = {
      .type = std::is_same_v<T, bf16> ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
      .data = sizes ? static_cast<const void*>(a_ptrs) : a,
      .dims = {depth, sizes ? tile.m : rows},
      .stride_bytes = {depth * element},
      .box = {BK, tile.m},
      .swizzle = CU_TENSOR_MAP_SWIZZLE_128B};
  Maps maps = {gg::make_tensor_map(box), {}};
  if (!sizes) box.data = b;
  box.dims = {depth, cols, sizes ? 1 : groups};
  box.stride_bytes = {depth * element, cols * depth * element};
  box.box = {BK, tile.n, 1};
  maps.b = gg::make_tensor_map(box);
  int device = 0, multiprocessors = 0;
  GG_CHECK(cudaGetDevice(&device));
  GG_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  GG_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES));
  plan<<<1, std::min(groups, PLANNERS), 0, stream>>>(d, offsets, n, k, d_ptrs, sizes, leading_dims, groups,
                                                     tile.m, tile.n);
  if (sizes) make_maps<<<groups, 32, 0, stream>>>(maps, a_ptrs, b_ptrs, sizes, leading_dims);
  kernel<<<blocks ? blocks : multiprocessors, 128 * (CONSUMERS + 1), SHARED_BYTES, stream>>>(
      maps, sizes != nullptr, groups);
  // [/launch]
  GG_CHECK(cudaGetLastError());
}

}  // namespace chapter
