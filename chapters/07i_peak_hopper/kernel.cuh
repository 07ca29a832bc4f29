// SPDX-License-Identifier: MIT
//
// Chapter 07i: sizes chosen for each problem, and what equal groups allow.
//
// Group g owns rows offsets[g] .. offsets[g+1] of A [M,K] and D [M,N]; B is [G,N,K], or [G,K,N]:
//     D[row, col] = sum over k of A[row, k] * B[g][col, k]
// New here: where the caller says that all groups have as many rows, the first slices are asked for before
// the offsets are there. launch.cuh chooses among nine configurations of this kernel.

#pragma once

#include "claim.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/shared.cuh"
#include "common/ptx/tma.cuh"
#include "common/ptx/warp.cuh"
#include "common/ptx/warpgroup.cuh"
#include "common/ptx/wgmma.cuh"
#include "common/types.cuh"
#include "ring.cuh"
#include "store.cuh"

namespace chapter {

using gg::ptx::Major;

// One block per multiprocessor: 65536 registers for 384 threads, 168 each before they are dealt out anew.
template <class T, class D, class C, Major B_MAJOR>
__global__ void __launch_bounds__(C::THREADS, 1)
    grouped_gemm(const __grid_constant__ Maps<C::BM> maps, D* d, const __grid_constant__ Problem problem) {
  constexpr int BM = C::BM, STAGES = C::STAGES, CONSUMERS = C::CONSUMERS, CLUSTER = C::CLUSTER;
  constexpr int BLOCKS = C::BLOCKS, SPLIT = C::SPLIT;
  const int thread = int(threadIdx.x), warp = gg::ptx::uniform(thread / 32), warpgroup = warp / 4;
  const int rank = BLOCKS > 1 ? gg::ptx::cluster_ctarank() : 0, side = SPLIT > 1 ? 0 : rank;
  const int workers = int(gridDim.x) / BLOCKS, worker = int(blockIdx.x) / BLOCKS;
  constexpr int BEGIN = 1 + CONSUMERS;  // a named barrier
  // [share]
  // This block's share of K, in slices. Where there are fewer than shares want, the last blocks get none.
  const int n = problem.n, slices = (problem.k + BK - 1) / BK, share = (slices + SPLIT - 1) / SPLIT;
  const int k_tile0 = SPLIT > 1 ? rank * share : 0, k_tiles = max(0, min(share, slices - k_tile0));
  // [/share]
  extern __shared__ __align__(1024) unsigned char shared[];
  const uint32_t a_tile_addr = gg::ptx::keep(gg::ptx::shared_addr(shared));  // [STAGES][BM][BK], swizzled
  const uint32_t b_tile_addr = a_tile_addr + STAGES * C::A_BYTES;            // [STAGES][BN][BK], swizzled
  const int store_off = STAGES * (C::A_BYTES + C::B_BYTES);  // [CONSUMERS][rows][64], swizzled
  __shared__ Mailbox<BLOCKS> mailbox;
  __shared__ typename SplitK<BM>::Barriers sums_bars[CONSUMERS];
  __shared__ uint64_t bars[2 * STAGES];  // full: the slice has landed; empty: all warps are done with it
  const uint32_t full_addr = gg::ptx::keep(gg::ptx::shared_addr(bars)), empty_addr = full_addr + STAGES * 8;
  if (thread == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      gg::ptx::mbarrier_init(full_addr + stage * 8, 2);  // the warp that loads A and the one that loads B
      gg::ptx::mbarrier_init(empty_addr + stage * 8, CLUSTER * CONSUMERS);
    }
    gg::ptx::mbarrier_init(gg::ptx::shared_addr(&mailbox.full), 1);
    gg::ptx::mbarrier_init(gg::ptx::shared_addr(&mailbox.empty), BLOCKS * (2 + 4 * CONSUMERS));
    for (int i = 0; SPLIT > 1 && i < 2 * CONSUMERS; ++i) {
      gg::ptx::mbarrier_init(gg::ptx::shared_addr(sums_bars) + i * 8, 1);
    }
    gg::ptx::fence_mbarrier_init();
    gg::ptx::prefetch_tensormap(&maps.a[BM / STEP - 1]);
    gg::ptx::prefetch_tensormap(&maps.b);
    gg::ptx::prefetch_tensormap(&maps.d);
  }
  // Warp 0 made the barriers. The others look meanwhile what comes first.
  if constexpr (BLOCKS > 1) {
    gg::ptx::cluster_arrive();
  } else if (warp == 0) {
    gg::ptx::bar_arrive(BEGIN, C::THREADS);
  }
  // [guess]
  Schedule<C> schedule(problem.offsets, problem.groups, n);
  Tile guess = {-1, 0, 0, 0};
  if (problem.rows_each > 0) guess = schedule.guess(worker, problem.rows_each, problem.share_each);
  guess.col0 += side * C::BN;
  const int guessed = guess.rows > 0 ? min(STAGES, k_tiles) : 0;          // slices
  const bool one_each = schedule.tiles_if(problem.rows_each) <= workers;  // tile, if the caller is right
  // [/guess]
  if constexpr (BLOCKS > 1) {
    gg::ptx::cluster_wait();  // the barriers of all blocks are there
  } else if (warp > 0) {
    gg::ptx::bar_sync(BEGIN, C::THREADS);  // the barriers are there
  }
  // [dependent]
  // All above overlaps the end of the kernel before. Nothing of memory was looked at.
  gg::ptx::griddepcontrol_launch_dependents();  // the next kernel's blocks may start where there is room
  // Each role waits for that kernel where it looks first: its code is in the instruction cache by then.
  // [/dependent]
  Ring<STAGES> ring;
  int phase = 0;       // of the mailbox
  bool right = false;  // what the caller says: each warp looks for itself
  auto next_tile = [&] {
    if (right && one_each) return Tile{-1, 0, 0, 0};
    Tile tile = mailbox.read(phase);
    phase ^= 1;
    tile.col0 += side * C::BN;
    return tile;
  };
  if (warpgroup == CONSUMERS) {
    if constexpr (BM > HALF) gg::ptx::setmaxnreg_dec<56>();
    // [produce]
    // One warp asks for this block's part of a slice of A, the other one for B.
    const bool loads_a = warp % 2 == 0;
    const uint64_t evict_first = gg::ptx::evict_first_policy();
    const auto load = [&](const Tile& tile, int rows, int stage, int k_tile) {
      const int k0 = (k_tile0 + k_tile) * BK;
      const uint32_t bar_addr = full_addr + stage * 8, b_addr = b_tile_addr + stage * C::B_BYTES;
      if (loads_a) {
        const int box_rows = rows / CLUSTER, row0 = tile.row0 + side * box_rows;
        const uint32_t a_addr = a_tile_addr + stage * C::A_BYTES + side * box_rows * ROW_BYTES;
        const CUtensorMap* map = &maps.a[rows / STEP - 1];
        if (gg::ptx::elect()) {
          gg::ptx::mbarrier_arrive_expect_tx(bar_addr, rows * ROW_BYTES);
          if constexpr (CLUSTER > 1) {
            gg::ptx::tma_load_2d_multicast(a_addr, map, k0, row0, bar_addr, (1 << CLUSTER) - 1);
          } else if (n <= C::BN) {  // nobody reads A again: evict-first
            gg::ptx::tma_load_2d(a_addr, map, k0, row0, bar_addr, evict_first);
          } else {
            gg::ptx::tma_load_2d(a_addr, map, k0, row0, bar_addr);
          }
        }
      } else if (gg::ptx::elect()) {
        gg::ptx::mbarrier_arrive_expect_tx(bar_addr, C::B_BYTES);
        if constexpr (B_MAJOR == Major::k) {
          gg::ptx::tma_load_3d(b_addr, &maps.b, k0, tile.col0, tile.group, bar_addr);
        } else {
          for (int c = 0; c < C::BN; c += 64) {
            gg::ptx::tma_load_3d(b_addr + c * ROW_BYTES, &maps.b, tile.col0 + c, k0, tile.group, bar_addr);
          }
        }
      }
      __syncwarp();
    };
    // [/produce]
    gg::ptx::griddepcontrol_wait();  // all that the kernel before wrote is there
    if (warp % 4 >= 2) {             // asks for the guessed slices, whether right or not
#pragma unroll 1
      for (int slice = 0; slice < guessed; ++slice) load(guess, round_up(guess.rows, STEP), slice, slice);
    }
    right = schedule.all_have(problem.rows_each);
    if (warp % 4 == 2 && rank == 0 && !(right && one_each)) {
      // [find]
      int index = worker;
      Tile tile = {};
      schedule.begin();
      if (!right) {  // then not all have their first tile
        tile = schedule.find(index);
        mailbox.send(tile, phase);
        phase ^= 1;
      }
      // The first tile is on its way: nobody waits for this.
      const int tiles = schedule.plan_end(workers, k_tiles, right ? problem.rows_each : 0);
      const bool claims = tiles > workers && k_tiles >= LEAST_SLICES;
      while (tile.group >= 0) {
        // Claim late: a tile claimed early waits for this worker though another may be free first.
        if (claims) mailbox.wait_empty(phase);
        index = claims ? claim(problem.counter, workers, tiles) : index + workers;
        tile = schedule.find(index);
        if (tile.group >= 0 && tile.rows == 0) continue;  // a piece that got no rows
        mailbox.send(tile, phase);
        phase ^= 1;
      }
      // [/find]
    } else if (warp % 4 < 2) {
      int k_tile = right ? guessed : 0;  // those before are under way
      for (int slice = 0; slice < guessed; ++slice) ring.next();
      for (Tile tile = right ? guess : next_tile(); tile.group >= 0; tile = next_tile(), k_tile = 0) {
        const int rows = round_up(tile.rows, STEP);  // as many as are multiplied
#pragma unroll 1
        for (; k_tile < k_tiles; ++k_tile, ring.next()) {
          // empty[stage]: all consumers of the cluster have multiplied what was in it
          gg::ptx::mbarrier_wait_parity(empty_addr + ring.stage * 8, ring.phase ^ 1);
          load(tile, rows, ring.stage, k_tile);
        }
      }
    }
  } else {
    if constexpr (BM > HALF) gg::ptx::setmaxnreg_inc<224>();
    const gg::ptx::TileLayout layout = {gg::ptx::Swizzle::b128, 0, 8 * ROW_BYTES};
    const auto a_desc0 = gg::ptx::wgmma_desc(a_tile_addr, layout);
    const auto b_desc0 = gg::ptx::wgmma_desc(b_tile_addr + warpgroup * 64 * ROW_BYTES, layout);
    auto release = [&](int stage) {  // in all blocks whose loads write it
      if (thread % 128 < CLUSTER) arrive_in<CLUSTER>(thread % 128, empty_addr + stage * 8);
    };
    Store<D, BM> store(&maps.d, d, n, shared + store_off + warpgroup * C::STORE_BYTES, 1 + warpgroup);
    auto* const sums_of_others = reinterpret_cast<float*>(shared + store_off + CONSUMERS * C::STORE_BYTES);
    SplitK<BM> split(rank, (slices + share - 1) / share, &sums_bars[warpgroup],
                     sums_of_others + warpgroup * C::SUMS_BYTES / 4, 1 + warpgroup);
    gg::ptx::griddepcontrol_wait();
    Tile next = gg::ptx::uniform(guess);
    right = schedule.all_have(problem.rows_each);
    // [unread]
    if (!right) {
      // Slices loaded for nothing. Invariant: who waits for a phase must not be overtaken by the next one,
      // whose end he would take for his. So one warp waits, then releases; the others wait at the barrier.
      for (int slice = 0; slice < guessed; ++slice, ring.next()) {
        if (warp % 4 > 0) continue;
        gg::ptx::mbarrier_wait_parity(full_addr + ring.stage * 8, ring.phase);
        __syncwarp();  // in all its lanes
        release(ring.stage);
      }
      if (guessed > 0) gg::ptx::bar_sync(1 + warpgroup, 128);  // all of them have landed
      next = next_tile();
    }
    // [/unread]
    if constexpr (SPLIT > 1) {  // no share of K: reads all tiles, for `empty` counts it
      while (k_tiles == 0 && next.group >= 0) next = next_tile();
    }
    while (next.group >= 0) {
      const Tile tile = next;
      float acc[BM / 2];
      auto multiply = [&]<int WIDTH>(std::integral_constant<int, WIDTH>) {
        auto& sums = reinterpret_cast<float(&)[WIDTH / 2]>(acc);  // all widths use the same registers
        // [consume]
        int last = 0;
#pragma unroll 1
        for (int k_tile = 0; k_tile < k_tiles; ++k_tile, ring.next()) {
          const int stage = ring.stage;
          gg::ptx::mbarrier_wait_parity(full_addr + stage * 8, ring.phase);  // both parts have landed
          const auto a = gg::ptx::wgmma_advance(a_desc0, stage * C::A_BYTES);
          const auto b = gg::ptx::wgmma_advance(b_desc0, stage * C::B_BYTES);
          gg::ptx::wgmma_fence(sums);
#pragma unroll
          for (int kk = 0; kk < BK; kk += 16) {
            constexpr int B_STEP = B_MAJOR == Major::k ? 16 * 2 : 16 * ROW_BYTES;
            gg::ptx::wgmma<T, T, B_MAJOR, Major::k>(sums, gg::ptx::wgmma_advance(b, kk / 16 * B_STEP),
                                                    gg::ptx::wgmma_advance(a, kk * 2), k_tile > 0 || kk > 0);
          }
          gg::ptx::wgmma_commit_group();
          if (k_tile % 2 == 0) store.step();  // of the tile before, under these products
          if (k_tile > 0) gg::ptx::wgmma_wait_group<1>(), release(last);  // while this one goes on
          last = stage;
        }
        store.settle();
        next = next_tile();                  // while the last products are made
        gg::ptx::wgmma_wait_group<0>(sums);  // all slices are multiplied
        release(last);
        // [/consume]
        if constexpr (SPLIT > 1) split.add_up(sums);
        if (SPLIT == 1 || rank == 0) store.put(sums, tile, tile.col0 + warpgroup * 64);
      };
      with_width_for<BM>(tile.rows, multiply);  // as many rows as were loaded
    }
    store.finish();
  }
  // No block ends while another still writes into it.
  if constexpr (BLOCKS > 1) __syncwarp(), gg::ptx::cluster_arrive(), gg::ptx::cluster_wait();
}

}  // namespace chapter
