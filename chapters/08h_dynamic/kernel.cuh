// SPDX-License-Identifier: MIT
//
// Chapter 08h: the next tile goes to the pair of blocks that is free first.
//
// Group g has rows ends[g-1] .. ends[g] of A and D, multiples of 256, and B[g] is [N,K], K contiguous:
//     sum[row, col] = sum over k of A[row, k] * SFA[row, k/V] * B[g][col, k] * SFB[g][col, k/V]
//     D[row, col] = alpha[g] * sum * prob[row], or with a bias alpha[g] * sum + prob[row] * bias[g, col]
// New here: a warp that claims tiles, by a counter in global memory, and tells all others of its pair.

#pragma once

#include "common/check.h"
#include "common/ptx/cluster.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/shared.cuh"
#include "common/ptx/tcgen05.cuh"
#include "common/ptx/tma.cuh"
#include "common/ptx/warp.cuh"
#include "common/types.cuh"
#include "maps.cuh"
#include "schedule.cuh"
#include "store.cuh"

namespace chapter {

constexpr int STORERS = 4, PRODUCER = 4, MULTIPLIER = 5, SCHEDULER = 6,
              THREADS = 32 * 7;           // warps 0 to 3 store
constexpr int SHARED_BYTES = 226 * 1024;  // of 227 KB: barriers and the like have the last

// One block per multiprocessor: it takes most of the shared memory, and all of tensor memory.
// Scales are of V elements of K each. BLOCKS of a cluster compute a tile, GROUP of them together: 2 of 2, 1
// of 1, or 1 of 2, each its rows; then one half of B comes to both blocks with one load of each.
template <class T, class Scale, int V, int BLOCKS, int GROUP>
__global__ void __cluster_dims__(BLOCKS) __launch_bounds__(THREADS, 1)
    grouped_gemm(const __grid_constant__ Maps maps, const __grid_constant__ Epilogue epilogue, bool apart,
                 bool dynamic, const int* ends, int groups, int n, int k) {
  constexpr int BM = BLOCKS * BLOCK_ROWS, BK = ROW_BYTES * IN_BYTE<T>;  // rows of a tile, depth of a slice
  constexpr int A_BYTES = BLOCK_ROWS * ROW_BYTES, B_BYTES = BN / GROUP * ROW_BYTES;  // of a block's slice
  constexpr int ATOMS = BK / V / 4;  // of a slice's scales, one behind the other along K
  constexpr int SFA_BYTES = ATOMS * ATOM_BYTES, SFB_BYTES = BN / ATOM_ROWS * SFA_BYTES;  // a slice's scales
  constexpr int STAGE_BYTES = A_BYTES + B_BYTES + SFA_BYTES + SFB_BYTES;
  constexpr int STAGES = SHARED_BYTES / STAGE_BYTES;  // slices in shared memory
  constexpr int HALVES = 1;  // tiles of sums that fit beside the scales: products wait for the epilogue
  const int thread = int(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int rank = int(blockIdx.x),
            leader = GROUP == 2 ? 0 : rank;  // of this block; of those it multiplies with
  extern __shared__ __align__(1024) unsigned char shared[];
  const uint32_t a_tile_addr = gg::ptx::shared_addr(shared);          // [STAGES][BLOCK_ROWS][BK], swizzled
  const uint32_t b_tile_addr = a_tile_addr + STAGES * A_BYTES;        // [STAGES][BN / GROUP][BK], swizzled
  const uint32_t sfa_tile_addr = b_tile_addr + STAGES * B_BYTES;      // [STAGES][ATOMS][512]
  const uint32_t sfb_tile_addr = sfa_tile_addr + STAGES * SFA_BYTES;  // [STAGES][BN / 128][ATOMS][512]
  __shared__ uint64_t bars[2 * STAGES + 2 * HALVES];
  const uint32_t full_addr = gg::ptx::shared_addr(bars);  // all blocks' slice has landed; rank 0's is used
  const uint32_t empty_addr = full_addr + STAGES * 8;     // and has been multiplied
  const uint32_t ready_addr = empty_addr + STAGES * 8;    // the tile's sums are complete
  const uint32_t taken_addr = ready_addr + HALVES * 8;    // and read in all blocks; rank 0's is used
  __shared__ Mailbox mailbox;
  __shared__ gg::ptx::TmemAddr sums_slot;
  if (thread == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      gg::ptx::mbarrier_init(full_addr + stage * 8, 1);
      gg::ptx::mbarrier_init(empty_addr + stage * 8, BLOCKS / GROUP);
    }
    for (int half = 0; half < HALVES; ++half) {
      gg::ptx::mbarrier_init(ready_addr + half * 8, 1);
      gg::ptx::mbarrier_init(taken_addr + half * 8, GROUP * STORERS);
    }
    mailbox.init(BLOCKS * (STORERS + 1) + BLOCKS / GROUP);  // who store, load and multiply
    gg::ptx::fence_mbarrier_init();
  }
  if (warp == MULTIPLIER) {
    gg::ptx::tcgen05_alloc<gg::ptx::TMEM_COLUMNS, GROUP>(gg::ptx::shared_addr(&sums_slot));
    gg::ptx::tcgen05_relinquish_alloc_permit<GROUP>();
  }
  gg::ptx::cluster_arrive();
  gg::ptx::cluster_wait();  // the barriers and tensor memory of all blocks of the pair are there
  // [columns]
  const gg::ptx::TmemAddr sums = sums_slot;                              // [HALVES][BLOCK_ROWS][BN]
  const gg::ptx::TmemAddr sfa = gg::ptx::tmem_at(sums, 0, HALVES * BN);  // [ATOMS][4 columns]
  const gg::ptx::TmemAddr sfb = gg::ptx::tmem_at(sfa, 0, 4 * ATOMS);     // [ATOMS][BN / 32 columns]
  // [/columns]
  constexpr uint16_t ALL = (1 << BLOCKS) - 1;  // blocks at whose barriers a commit arrives, or a box
  auto load = [](uint32_t dst_addr, const CUtensorMap* map, int c0, int c1, int c2, uint32_t bar_addr) {
    if constexpr (GROUP == 2) gg::ptx::tma_load_3d_pair(dst_addr, map, c0, c1, c2, bar_addr);
    if constexpr (GROUP == 1) gg::ptx::tma_load_3d(dst_addr, map, c0, c1, c2, bar_addr);
  };
  // Number i of a ring of `size` has a place and, in its barriers, a phase. before = 1: the phase before it.
  auto wait = [](uint32_t bars_addr, int size, int i, int before) {
    gg::ptx::mbarrier_wait_parity(bars_addr + i % size * 8, i / size % 2 ^ before);
  };
  const int tiles = schedule.first[groups], k_tiles = (k + BK - 1) / BK;
  const int b_atoms = (n + ATOM_ROWS - 1) / ATOM_ROWS;  // of a group's B, for each slice
  int slice = 0, turn = 0;  // of this pair, counted through all its tiles; its tiles
  if (warp == SCHEDULER) {
    if (rank == 0) mailbox.hand_out<BLOCKS>(tiles, dynamic);
  } else if (warp == PRODUCER) {
    for (int tile, batch = 0; (tile = mailbox.read(turn)) < tiles; ++turn) {
      const Place at = place_of(tile, ends, groups, BM, BN, batch);
      if (gg::ptx::elect()) {
        const int row0 = at.row0 + rank * BLOCK_ROWS, col0 = at.col0 + rank * (BN / BLOCKS);
        // [apart]
        const WeightMaps& weights = apart ? apart_maps[at.g] : maps.weights;
        const int b_g = apart ? 0 : at.g;  // where the map has its group
        if (apart)
          gg::ptx::fence_tensormap_acquire(&weights.b), gg::ptx::fence_tensormap_acquire(&weights.sfb);
        // [/apart]
        const int a_atom = row0 / ATOM_ROWS, b_atom = b_g * b_atoms + at.col0 / ATOM_ROWS;
        for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
          const int stage = (slice + k_tile) % STAGES, byte0 = k_tile * ROW_BYTES;
          const uint32_t bar_addr = full_addr + stage * 8;
          wait(empty_addr, STAGES, slice + k_tile, 1);  // what was in this stage has been multiplied
          // [produce]
          if (rank == leader) gg::ptx::mbarrier_arrive_expect_tx(bar_addr, GROUP * STAGE_BYTES);
          load(a_tile_addr + stage * A_BYTES, &maps.a, byte0, row0, 0, bar_addr);
          const uint32_t b_addr = b_tile_addr + stage * B_BYTES;
          if constexpr (BLOCKS > GROUP) {  // a half, into the shared memory of both blocks
            gg::ptx::tma_load_3d_multicast(b_addr + rank * B_BYTES / BLOCKS, &weights.b, byte0, col0, b_g,
                                           bar_addr, ALL);
          } else {
            load(b_addr, &weights.b, byte0, col0, b_g, bar_addr);
          }
          load(sfa_tile_addr + stage * SFA_BYTES, &maps.sfa, 0, k_tile * ATOMS, a_atom, bar_addr);
          // The scales of all columns: each block's rows of D have them all.
          load(sfb_tile_addr + stage * SFB_BYTES, &weights.sfb, 0, k_tile * ATOMS, b_atom, bar_addr);
          // [/produce]
        }
      }
      slice += k_tiles;
    }
    // The block must not end while rank 0's commits are on their way to it.
    for (int i = 0; i < STAGES; ++i) wait(empty_addr, STAGES, slice + i, 1);
  } else if (warp == MULTIPLIER) {
    constexpr uint32_t IDESC = gg::ptx::tcgen05_idesc_block_scale<T, Scale, GROUP * BLOCK_ROWS, BN>();
    for (; rank == leader && mailbox.read(turn) < tiles; ++turn, slice += k_tiles) {
      if (gg::ptx::elect()) {               // for its group
        wait(taken_addr, HALVES, turn, 1);  // the sums that were here have been read
        const gg::ptx::TmemAddr my_sums = gg::ptx::tmem_at(sums, 0, turn % HALVES * BN);
        for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
          const int stage = (slice + k_tile) % STAGES;
          wait(full_addr, STAGES, slice + k_tile, 0);  // the slice has landed in all blocks
          gg::ptx::tcgen05_fence_after();
          const auto a = gg::ptx::tcgen05_desc_k_major_128b(a_tile_addr + stage * A_BYTES);
          const auto b = gg::ptx::tcgen05_desc_k_major_128b(b_tile_addr + stage * B_BYTES);
          // [scales]
          const auto sfa_desc = gg::ptx::tcgen05_desc_scales(sfa_tile_addr + stage * SFA_BYTES);
          const auto sfb_desc = gg::ptx::tcgen05_desc_scales(sfb_tile_addr + stage * SFB_BYTES);
          for (int atom = 0; atom < ATOMS; ++atom) {
            gg::ptx::tcgen05_cp_32x128b_warpx4<GROUP>(gg::ptx::tmem_at(sfa, 0, 4 * atom),
                                                      gg::ptx::tcgen05_advance(sfa_desc, atom * ATOM_BYTES));
            for (int i = 0; i < BN / ATOM_ROWS; ++i) {  // 128 columns of B each
              gg::ptx::tcgen05_cp_32x128b_warpx4<GROUP>(
                  gg::ptx::tmem_at(sfb, 0, atom * BN / 32 + 4 * i),
                  gg::ptx::tcgen05_advance(sfb_desc, (i * ATOMS + atom) * ATOM_BYTES));
            }
          }
          // [/scales]
          // [multiply]
          for (int step = 0; step < 4; ++step) {  // of 32 bytes, with one, two or four scales of a row
            const int scale = step * BK / 4 / V, atom = scale / 4, id = scale % 4;
            gg::ptx::tcgen05_mma_block_scale<T, V, GROUP>(
                my_sums, gg::ptx::tcgen05_advance(a, step * 32), gg::ptx::tcgen05_advance(b, step * 32),
                IDESC | gg::ptx::tcgen05_scale_ids(id, id), gg::ptx::tmem_at(sfa, 0, 4 * atom),
                gg::ptx::tmem_at(sfb, 0, atom * BN / 32), k_tile > 0 || step > 0);
          }
          // [/multiply]
          // [commit]
          gg::ptx::tcgen05_commit_multicast<GROUP>(empty_addr + stage * 8, ALL);
        }
        const uint16_t together = uint16_t(GROUP == 2 ? ALL : 1 << rank);  // whose sums are complete
        gg::ptx::tcgen05_commit_multicast<GROUP>(ready_addr + turn % HALVES * 8, together);
        // [/commit]
      }
    }
  } else {
    for (int tile, batch = 0; (tile = mailbox.read(turn)) < tiles; ++turn) {
      const Place at = place_of(tile, ends, groups, BM, BN, batch);
      Row row(epilogue, at.g, at.row0 + rank * BLOCK_ROWS + warp * 32 + lane, at.col0, n);  // this thread's
      const int cols =
          min(BN, (n - at.col0 + ATOM_ROWS - 1) / ATOM_ROWS * ATOM_ROWS);  // whole atoms of scales
      wait(ready_addr, HALVES, turn, 0);                                   // the tile's sums are complete
      gg::ptx::tcgen05_fence_after();
      for (int c0 = 0; c0 < cols; c0 += PART) {
        uint32_t part[PART];  // of the row
        // [taken]
        gg::ptx::tcgen05_ld_32x32b_x32(part, gg::ptx::tmem_at(sums, warp * 32, turn % HALVES * BN + c0));
        gg::ptx::tcgen05_wait_ld(part);
        if (c0 + PART >= cols) {  // this warp has read its rows: products need not wait for what follows
          gg::ptx::tcgen05_fence_before();
          if (gg::ptx::elect())
            gg::ptx::mbarrier_arrive(gg::ptx::mapa(taken_addr + turn % HALVES * 8, leader));
        }
        // [/taken]
        row.take(part, at.col0 + c0);
      }
      row.finish();
    }
  }
  __syncwarp();  // one lane multiplied, or loaded
  gg::ptx::cluster_arrive();
  gg::ptx::cluster_wait();  // nobody uses the pair's tensor memory, or the other block's barriers, any more
  if (warp == MULTIPLIER) gg::ptx::tcgen05_dealloc<gg::ptx::TMEM_COLUMNS, GROUP>(sums);
}

// A [rows,K], B [G,N,K], of E2M1 two elements to a byte, the even one low; D [rows,N], ends[G]; scales in
// atoms of 128 rows by four blocks of V k, SFA [rows/128][K/4V][512], SFB [G][N/128][K/4V][512], rounded up.
// Rows of A and of D are multiples of 16 bytes.
template <class Scale, int V, class T>
void launch(const T* a, const uint8_t* sfa, const Weights<T>& weights, const Epilogue& epilogue,
            const int* ends, int64_t rows, int groups, int n, int k, gg::ClusterTile tile, bool dynamic,
            cudaStream_t stream) {
  GG_REQUIRE(groups <= MAX_GROUPS, "G=%d: the schedule has room for %d groups", groups, MAX_GROUPS);
  if (rows == 0) return;  // there is no tensor to map
  const int d_bits = gg::format_info(epilogue.d_format).bits;
  GG_REQUIRE(n * d_bits % 128 == 0 && k % (16 * IN_BYTE<T>) == 0,
             "N=%d, K=%d: TMA wants multiples of %d for K, D's stores of %d for N", n, k, 16 * IN_BYTE<T>,
             128 / d_bits);
  const int blocks = tile.cluster,
            group = tile.m / BLOCK_ROWS;  // who share a tile's slices; who multiply together
  auto* kernel = group == 2    ? grouped_gemm<T, Scale, V, 2, 2>
                 : blocks == 2 ? grouped_gemm<T, Scale, V, 2, 1>
                               : grouped_gemm<T, Scale, V, 1, 1>;
  GG_REQUIRE((blocks == 1 || blocks == 2) && (group == 1 || group == blocks) && tile.m % BLOCK_ROWS == 0 &&
                 tile.n == BN,
             "--tile %dx%d --cluster %dx1: 256x256 with 2x1, 128x256 with 1x1 or 2x1", tile.m, tile.n,
             blocks);
  const Maps maps = make_maps<V>(a, sfa, weights, rows, groups, n, k, blocks, stream);
  int device = 0, multiprocessors = 0;
  GG_CHECK(cudaGetDevice(&device));
  GG_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  GG_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES));
  const int planners = groups < PLANNERS ? (groups + 31) / 32 * 32 : PLANNERS;
  GG_REQUIRE(multiprocessors >= blocks, "--cluster %dx1 wants 2 multiprocessors", blocks);
  plan<<<1, planners, 0, stream>>>(ends, n, groups, blocks * BLOCK_ROWS, tile.n);
  const dim3 grid(unsigned(blocks), unsigned(multiprocessors / blocks));
  kernel<<<grid, THREADS, SHARED_BYTES, stream>>>(maps, epilogue, !weights.b, dynamic, ends, groups, n, k);
  GG_CHECK(cudaGetLastError());
}

}  // namespace chapter
