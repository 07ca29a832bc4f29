// SPDX-License-Identifier: MIT
//
// Chapter 08c: four bits an element, and a scale for each 32 or each 16 of them.
//
// Group g has rows ends[g-1] .. ends[g] of A and D, multiples of 256, and B[g] is [N,K], K contiguous:
//     D[row, col] = sum over k of A[row, k] * SFA[row, k/V] * B[g][col, k] * SFB[g][col, k/V]
// New here: two elements to a byte, and products over 64 of them, which use two scales of a row or four.

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

constexpr int BK = 256, ROW_BYTES = 128;  // depth of a slice: rows of 128 bytes, the most that TMA swizzles
constexpr int ATOM_ROWS = 128, ATOM_BYTES = 512;  // scales of 128 rows and four blocks of k lie together
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

struct Maps {
  CUtensorMap a, b, sfa, sfb;
};

// One block per multiprocessor: it takes most of the shared memory, and all of tensor memory.
// Scales are of V elements of K each.
template <class Scale, int V, class TD, int BN>
__global__ void __launch_bounds__(THREADS, 1)
    grouped_gemm(const __grid_constant__ Maps maps, TD* d, const int* ends, int groups, int n, int k) {
  constexpr int A_BYTES = BM * ROW_BYTES, B_BYTES = BN * ROW_BYTES;  // of a slice
  constexpr int ATOMS = BK / V / 4;  // of a slice's scales, one behind the other along K
  constexpr int SFA_BYTES = ATOMS * ATOM_BYTES, SFB_BYTES = BN / ATOM_ROWS * SFA_BYTES;  // a slice's scales
  constexpr int STAGE_BYTES = A_BYTES + B_BYTES + SFA_BYTES + SFB_BYTES;
  constexpr int STAGES = SHARED_BYTES / STAGE_BYTES;  // slices in shared memory
  constexpr int HALVES = BN == 256 ? 1 : 2;           // tiles of sums that fit beside the scales
  const int thread = int(threadIdx.x), warp = thread / 32, lane = thread % 32;
  extern __shared__ __align__(1024) unsigned char shared[];
  const uint32_t a_tile_addr = gg::ptx::shared_addr(shared);          // [STAGES][BM][BK], swizzled
  const uint32_t b_tile_addr = a_tile_addr + STAGES * A_BYTES;        // [STAGES][BN][BK], swizzled
  const uint32_t sfa_tile_addr = b_tile_addr + STAGES * B_BYTES;      // [STAGES][ATOMS][512]
  const uint32_t sfb_tile_addr = sfa_tile_addr + STAGES * SFA_BYTES;  // [STAGES][BN / 128][ATOMS][512]
  __shared__ uint64_t bars[2 * STAGES + 2 * HALVES];
  const uint32_t full_addr = gg::ptx::shared_addr(bars);  // the slice has landed
  const uint32_t empty_addr = full_addr + STAGES * 8;     // and has been multiplied
  const uint32_t ready_addr = empty_addr + STAGES * 8;    // the tile's sums are complete
  const uint32_t taken_addr = ready_addr + HALVES * 8;    // and have been read
  __shared__ gg::ptx::TmemAddr sums_slot;
  if (thread == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      gg::ptx::mbarrier_init(full_addr + stage * 8, 1);
      gg::ptx::mbarrier_init(empty_addr + stage * 8, 1);
    }
    for (int half = 0; half < HALVES; ++half) {
      gg::ptx::mbarrier_init(ready_addr + half * 8, 1);
      gg::ptx::mbarrier_init(taken_addr + half * 8, STORERS);
    }
    gg::ptx::fence_mbarrier_init();
  }
  if (warp == MULTIPLIER) {
    gg::ptx::tcgen05_alloc<gg::ptx::TMEM_COLUMNS>(gg::ptx::shared_addr(&sums_slot));
    gg::ptx::tcgen05_relinquish_alloc_permit();
  }
  __syncthreads();  // the barriers are there for all threads and for TMA, and so is tensor memory
  // [columns]
  const gg::ptx::TmemAddr sums = sums_slot;  // [HALVES][BM][BN]: with 2, of this tile and the one before
  const gg::ptx::TmemAddr sfa = gg::ptx::tmem_at(sums, 0, HALVES * BN);  // [ATOMS][4 columns]
  const gg::ptx::TmemAddr sfb = gg::ptx::tmem_at(sfa, 0, 4 * ATOMS);     // [ATOMS][BN / 32 columns]
  // [/columns]
  // Number i of a ring of `size` has a place and, in its barriers, a phase. before = 1: the phase before it.
  auto wait = [](uint32_t bars_addr, int size, int i, int before) {
    gg::ptx::mbarrier_wait_parity(bars_addr + i % size * 8, i / size % 2 ^ before);
  };
  const int tiles = schedule.first[groups], k_tiles = (k + BK - 1) / BK;
  const int b_atoms = (n + ATOM_ROWS - 1) / ATOM_ROWS;  // of a group's B, for each slice
  int slice = 0, turn = 0;  // of this block, counted through all its tiles; its tiles
  if (warp == PRODUCER) {
    for (int tile = int(blockIdx.x), batch = 0; tile < tiles; tile += int(gridDim.x)) {
      const Place at = place_of(tile, ends, groups, BN, batch);
      if (gg::ptx::elect()) {
        for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
          const int stage = (slice + k_tile) % STAGES, byte0 = k_tile * ROW_BYTES;
          const uint32_t bar_addr = full_addr + stage * 8;
          wait(empty_addr, STAGES, slice + k_tile, 1);  // what was in this stage has been multiplied
          // [produce]
          gg::ptx::mbarrier_arrive_expect_tx(bar_addr, STAGE_BYTES);
          gg::ptx::tma_load_3d(a_tile_addr + stage * A_BYTES, &maps.a, byte0, at.row0, 0, bar_addr);
          gg::ptx::tma_load_3d(b_tile_addr + stage * B_BYTES, &maps.b, byte0, at.col0, at.g, bar_addr);
          const int a_atom = at.row0 / ATOM_ROWS, b_atom = at.g * b_atoms + at.col0 / ATOM_ROWS;
          gg::ptx::tma_load_3d(sfa_tile_addr + stage * SFA_BYTES, &maps.sfa, 0, k_tile * ATOMS, a_atom,
                               bar_addr);
          gg::ptx::tma_load_3d(sfb_tile_addr + stage * SFB_BYTES, &maps.sfb, 0, k_tile * ATOMS, b_atom,
                               bar_addr);
          // [/produce]
        }
      }
      slice += k_tiles;
    }
  } else if (warp == MULTIPLIER) {
    constexpr uint32_t IDESC = gg::ptx::tcgen05_idesc_mxf4nvf4<Scale, BM, BN>();
    if (gg::ptx::elect()) {
      for (int tile = int(blockIdx.x); tile < tiles; tile += int(gridDim.x), ++turn) {
        wait(taken_addr, HALVES, turn, 1);  // the sums that were here have been read
        const gg::ptx::TmemAddr my_sums = gg::ptx::tmem_at(sums, 0, turn % HALVES * BN);
        for (int k_tile = 0; k_tile < k_tiles; ++k_tile, ++slice) {
          const int stage = slice % STAGES;
          wait(full_addr, STAGES, slice, 0);  // all four parts of the slice have landed
          gg::ptx::tcgen05_fence_after();
          const auto a = gg::ptx::tcgen05_desc_k_major_128b(a_tile_addr + stage * A_BYTES);
          const auto b = gg::ptx::tcgen05_desc_k_major_128b(b_tile_addr + stage * B_BYTES);
          // [scales]
          const auto sfa_desc = gg::ptx::tcgen05_desc_scales(sfa_tile_addr + stage * SFA_BYTES);
          const auto sfb_desc = gg::ptx::tcgen05_desc_scales(sfb_tile_addr + stage * SFB_BYTES);
          for (int atom = 0; atom < ATOMS; ++atom) {
            gg::ptx::tcgen05_cp_32x128b_warpx4(gg::ptx::tmem_at(sfa, 0, 4 * atom),
                                               gg::ptx::tcgen05_advance(sfa_desc, atom * ATOM_BYTES));
            for (int i = 0; i < BN / ATOM_ROWS; ++i) {  // 128 columns of B each
              gg::ptx::tcgen05_cp_32x128b_warpx4(
                  gg::ptx::tmem_at(sfb, 0, atom * BN / 32 + 4 * i),
                  gg::ptx::tcgen05_advance(sfb_desc, (i * ATOMS + atom) * ATOM_BYTES));
            }
          }
          // [/scales]
          // [multiply]
          for (int step = 0; step < BK / 64; ++step) {  // of 64 k: two scales or four for each row and column
            const int scale = step * 64 / V, atom = scale / 4, id = scale % 4;
            gg::ptx::tcgen05_mma_mxf4nvf4<V>(
                my_sums, gg::ptx::tcgen05_advance(a, step * 32), gg::ptx::tcgen05_advance(b, step * 32),
                IDESC | gg::ptx::tcgen05_scale_ids(id, id), gg::ptx::tmem_at(sfa, 0, 4 * atom),
                gg::ptx::tmem_at(sfb, 0, atom * BN / 32), k_tile > 0 || step > 0);
          }
          // [/multiply]
          gg::ptx::tcgen05_commit(empty_addr + stage * 8);  // arrives when these products are done
        }
        gg::ptx::tcgen05_commit(ready_addr + turn % HALVES * 8);  // and the tile's
      }
    }
  } else {
    for (int tile = int(blockIdx.x), batch = 0; tile < tiles; tile += int(gridDim.x), ++turn) {
      const Place at = place_of(tile, ends, groups, BN, batch);
      const int r = warp * 32 + lane;  // this thread's row, and its lane of tensor memory
      TD* row = d + int64_t(at.row0 + r) * n;
      wait(ready_addr, HALVES, turn, 0);  // the tile's sums are complete
      gg::ptx::tcgen05_fence_after();
      for (int c0 = 0; c0 < BN; c0 += 32) {
        uint32_t part[32];  // of the row
        gg::ptx::tcgen05_ld_32x32b_x32(part, gg::ptx::tmem_at(sums, warp * 32, turn % HALVES * BN + c0));
        gg::ptx::tcgen05_wait_ld(part);
#pragma unroll
        for (int c = 0; c < 32; c += 16 / int(sizeof(TD))) {
          const int col = at.col0 + c0 + c;
          if (r < at.rows && col < n) *reinterpret_cast<uint4*>(row + col) = pack<TD>(part + c);
        }
      }
      gg::ptx::tcgen05_fence_before();
      if (gg::ptx::elect())
        gg::ptx::mbarrier_arrive(taken_addr + turn % HALVES * 8);  // this warp has read its rows
    }
  }
  __syncwarp();     // one lane multiplied, or loaded
  __syncthreads();  // nobody uses tensor memory any more
  if (warp == MULTIPLIER) gg::ptx::tcgen05_dealloc<gg::ptx::TMEM_COLUMNS>(sums);
}

// A [rows,K/2], B [G,N,K/2] in bytes of two elements, the even one low; D [rows,N], ends[G]; scales in atoms
// of 128 rows by four blocks of V k, SFA [rows/128][K/4V][512], SFB [G][N/128][K/4V][512], rounded up. K: a
// multiple of 32; N: of 8.
template <class Scale, int V, class TD>
void launch(const gg::e2m1* a, const gg::e2m1* b, const uint8_t* sfa, const uint8_t* sfb, TD* d,
            const int* ends, int64_t rows, int groups, int n, int k, gg::Tile tile, int blocks,
            cudaStream_t stream) {
  GG_REQUIRE(groups <= MAX_GROUPS, "G=%d: the schedule has room for %d groups", groups, MAX_GROUPS);
  GG_REQUIRE(n % 8 == 0 && k % 32 == 0, "N=%d, K=%d: TMA wants multiples of 32 for K, D's stores of 8 for N",
             n, k);
  auto* kernel = tile.n == 128   ? grouped_gemm<Scale, V, TD, 128>
                 : tile.n == 256 ? grouped_gemm<Scale, V, TD, 256>
                                 : nullptr;
  GG_REQUIRE(tile.m == BM && kernel, "--tile %dx%d: tiles are 128x128 or 128x256", tile.m, tile.n);
  const auto map = [row_bytes = k / 2](const gg::e2m1* matrices, int64_t count, int64_t matrix_rows,
                                       int box_rows) {
    return gg::make_tensor_map({.type = CU_TENSOR_MAP_DATA_TYPE_UINT8,
                                .data = matrices,
                                .dims = {row_bytes, matrix_rows, count},
                                .stride_bytes = {row_bytes, matrix_rows * row_bytes},
                                .box = {ROW_BYTES, box_rows, 1},
                                .swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
  };
  // [map]
  const auto scale_map = [k](const uint8_t* scales, int64_t atom_rows, int box_atoms) {
    const int64_t k_atoms = (k + 4 * V - 1) / (4 * V);
    return gg::make_tensor_map({.type = CU_TENSOR_MAP_DATA_TYPE_INT32,  // a row's four scales
                                .data = scales,
                                .dims = {ATOM_BYTES / 4, k_atoms, atom_rows},
                                .stride_bytes = {ATOM_BYTES, k_atoms * ATOM_BYTES},
                                .box = {ATOM_BYTES / 4, BK / V / 4, box_atoms}});
  };
  // [/map]
  const auto atoms = [](int64_t extent) { return (extent + ATOM_ROWS - 1) / ATOM_ROWS; };
  const Maps maps = {map(a, 1, rows, BM), map(b, groups, n, tile.n), scale_map(sfa, atoms(rows), 1),
                     scale_map(sfb, groups * atoms(n), tile.n / ATOM_ROWS)};
  int device = 0, multiprocessors = 0;
  GG_CHECK(cudaGetDevice(&device));
  GG_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  GG_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES));
  const int planners = groups < PLANNERS ? (groups + 31) / 32 * 32 : PLANNERS;
  plan<<<1, planners, 0, stream>>>(ends, n, groups, tile.n);
  kernel<<<blocks ? blocks : multiprocessors, THREADS, SHARED_BYTES, stream>>>(maps, d, ends, groups, n, k);
  GG_CHECK(cudaGetLastError());
}

}  // namespace chapter
