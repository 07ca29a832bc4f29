// SPDX-License-Identifier: MIT
//
// Chapter 07b: everything that pays.
//
// Group g owns rows offsets[g] .. offsets[g+1] of A [M,K] and D [M,N]; B is [G,N,K], or [G,K,N]:
//     D[row, col] = sum over k of A[row, k] * B[g][col, k]
// New here: the tensor cores compute D transposed. Columns of D are their 64 rows, always whole; tokens, of
// which a group has any number, are their N, which comes in steps. What else pays is in schedule.cuh,
// store.cuh and below, and can be switched off: --off.

#pragma once

#include <algorithm>
#include <type_traits>

#include "common/ptx/barrier.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/tma.cuh"
#include "common/ptx/warp.cuh"
#include "common/ptx/warpgroup.cuh"
#include "common/ptx/wgmma.cuh"
#include "common/types.cuh"
#include "parts.cuh"
#include "schedule.cuh"
#include "store.cuh"

namespace chapter {

using gg::ptx::Major;

constexpr int BK = 64;  // depth of a slice: 128 bytes of each row, the most that TMA swizzles

struct Problem {
  const void* offsets;  // int32_t, or int64_t if wide_offsets
  bool wide_offsets;
  int groups, n, k;
  Ideas ideas;
  int rows_each;       // of every group, the host guesses; 0: it does not
  Share share_each{};  // then: how these are shared out
  int counter = 0;     // for the claims of this launch
};

// CONSUMERS warpgroups of 64 columns of D each; tiles of up to BM rows; STAGES slices of A and B in shared
// memory; CLUSTER blocks side by side in N load each slice of A once, for all; or SPLIT blocks have a tile
// together, each a part of K.
template <int CONSUMERS_, int BM_, int STAGES_, int CLUSTER_, int SPLIT_ = 1>
struct Config {
  static constexpr int CONSUMERS = CONSUMERS_, BM = BM_, STAGES = STAGES_, CLUSTER = CLUSTER_, SPLIT = SPLIT_;
  static constexpr int BLOCKS = CLUSTER * SPLIT;  // of a cluster
  static_assert(CLUSTER == 1 || SPLIT == 1);
  static constexpr int BN = 64 * CONSUMERS, THREADS = 128 * (CONSUMERS + 1);
  static constexpr int A_BYTES = BM * ROW_BYTES, B_BYTES = BN * ROW_BYTES;  // of a slice
  static constexpr int STORE_BYTES = std::min(BM, HALF) * ROW_BYTES;        // of a warpgroup
  static constexpr int PARTS_BYTES = (SPLIT - 1) * Parts<BM>::FLOATS * 4;   // of a warpgroup
  static constexpr int SHARED_BYTES = STAGES * (A_BYTES + B_BYTES) + CONSUMERS * (STORE_BYTES + PARTS_BYTES);
  static constexpr bool TALL = CONSUMERS == 2 && BM > HALF;
};

// A has a map for each height of a tile: a block's part of a slice is one box, one instruction. B has one for
// all columns of a tile, and where tiles are tall one for a consumer's.
template <int BM>
struct Maps {
  CUtensorMap a[BM / STEP], b[BM > HALF ? 2 : 1], d;
};

// Calls f with WIDTH, or a step less of it as often as that still holds `rows`: as a constant, for wgmma's N
// is part of the instruction. Above HALF rows a step is 16, for there products take longer than loads, and 8
// where the last tile of a group of many rows nearly always is, from 193 to 224.
template <int WIDTH, class F>
__device__ __forceinline__ void with_width_for(int rows, F& f) {
  constexpr int LESS = WIDTH - (WIDTH > 192 && WIDTH <= 224 ? STEP / 4 : WIDTH > HALF ? STEP / 2 : STEP);
  if constexpr (LESS > 0) {
    if (rows <= LESS) return with_width_for<LESS>(rows, f);
  }
  f(std::integral_constant<int, WIDTH>());
}

template <int STAGES>
struct Ring {
  int stage = 0, phase = 0;
  __device__ void next() {
    if (++stage == STAGES) stage = 0, phase ^= 1;
  }
};

template <class T, class D, class C, Major B_MAJOR>
__global__ void __launch_bounds__(C::THREADS, 1)
    grouped_gemm(const __grid_constant__ Maps<C::BM> maps, D* d, const __grid_constant__ Problem problem) {
  constexpr int BM = C::BM, BN = C::BN, STAGES = C::STAGES, CONSUMERS = C::CONSUMERS;
  constexpr int CLUSTER = C::CLUSTER, SPLIT = C::SPLIT, BLOCKS = C::BLOCKS;
  constexpr int BEGIN = 1 + CONSUMERS;  // a named barrier; consumers have those before it
  const Ideas& ideas = problem.ideas;
  const int warp = gg::ptx::uniform(int(threadIdx.x) / 32), warpgroup = warp / 4;
  const int rank = BLOCKS > 1 ? gg::ptx::cluster_ctarank() : 0, side = SPLIT > 1 ? 0 : rank;
  const int workers = int(gridDim.x) / BLOCKS, worker = int(blockIdx.x) / BLOCKS, n = problem.n;
  // This block's part of K, in slices; behind the last part with any the cluster's blocks have nothing to do.
  const int slices = (problem.k + BK - 1) / BK, part = (slices + SPLIT - 1) / SPLIT;
  const int k_tile0 = SPLIT > 1 ? rank * part : 0, k_tiles = max(0, min(part, slices - k_tile0));

  extern __shared__ __align__(1024) unsigned char shared[];
  const uint32_t a_addr = gg::ptx::keep(gg::ptx::shared_addr(shared));        // [STAGES][BM][BK], swizzled
  const uint32_t b_addr = a_addr + STAGES * C::A_BYTES;                       // [STAGES][BN][BK], swizzled
  unsigned char* const stores = shared + STAGES * (C::A_BYTES + C::B_BYTES);  // [CONSUMERS][rows][64]
  __shared__ uint64_t full[STAGES], empty[STAGES];
  __shared__ Mailbox mailbox;
  __shared__ typename Parts<BM>::Barriers parts_bars[CONSUMERS];
  const uint32_t full_addr = gg::ptx::keep(gg::ptx::shared_addr(full));
  const uint32_t empty_addr = gg::ptx::keep(gg::ptx::shared_addr(empty));
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      gg::ptx::mbarrier_init(full_addr + stage * 8, 2);  // who loads A, who loads B
      gg::ptx::mbarrier_init(empty_addr + stage * 8, CLUSTER * CONSUMERS);
    }
    if constexpr (SPLIT > 1) {
      for (auto& bars : parts_bars) Parts<BM>::init(&bars);
    }
    mailbox.init(BLOCKS * (2 + 4 * CONSUMERS));
    gg::ptx::fence_mbarrier_init();
    gg::ptx::prefetch_tensormap(&maps.a[BM / STEP - 1]);
    gg::ptx::prefetch_tensormap(&maps.b[0]);
    gg::ptx::prefetch_tensormap(&maps.d);
  }
  // The other warps guess meanwhile.
  if constexpr (BLOCKS > 1) {
    gg::ptx::cluster_arrive();
  } else if (warp == 0) {
    gg::ptx::bar_arrive(BEGIN, C::THREADS);
  }
  const int tiles_n = (n + BN * CLUSTER - 1) / (BN * CLUSTER);
  Schedule<C> schedule(problem.offsets, problem.wide_offsets, problem.groups, tiles_n, ideas);
  // [guess]
  Tile guess;
  if (problem.rows_each > 0) guess = schedule.guess(worker, problem.rows_each, problem.share_each);
  guess.col0 = (guess.col0 * CLUSTER + side) * BN;
  const int guessed = guess.rows > 0 ? min(STAGES, k_tiles) : 0;  // slices
  // [/guess]
  const bool one_each = schedule.tiles_if(problem.rows_each) <= workers;  // at most, if the guess is right
  if constexpr (BLOCKS > 1) {
    gg::ptx::cluster_wait();
  } else if (warp > 0) {
    gg::ptx::bar_sync(BEGIN, C::THREADS);
  }
  // All of this overlaps the end of the kernel before; nothing of memory was looked at. Each role waits for
  // that kernel where it looks first: what it runs next is then in the instruction cache.
  gg::ptx::griddepcontrol_launch_dependents();

  Ring<STAGES> ring;
  Reader<BLOCKS> reader(mailbox);
  bool right = false;  // the guess: each warp looks for itself
  const auto next_tile = [&] {
    if (right && one_each) return Tile{};
    Tile tile = reader.read();
    tile.col0 = (tile.col0 * CLUSTER + side) * BN;
    return tile;
  };
  // Of a tile of more rows the first consumer multiplies so many slices before the second one begins, which
  // has them in the end: one has products while the other changes tiles. They are loaded twice, each time
  // with the columns of B of one consumer.
  constexpr int BEGUN_TOGETHER = 192;
  const auto alone_of = [&](const Tile& tile) {
    return C::TALL && ideas.stagger && k_tiles >= 8 && tile.rows > BEGUN_TOGETHER ? 2 : 0;
  };
  if (warpgroup == CONSUMERS) {
    // 128 sums per thread want more registers than 384 threads can all have.
    if constexpr (C::TALL) gg::ptx::setmaxnreg_dec<56>();
    const bool loads_a = warp % 2 == 0, a_once = ideas.hints && tiles_n == 1;  // nobody reads it again
    const uint64_t evict_first = gg::ptx::evict_first_policy();
    const auto height_of = [&](const Tile& tile) { return ideas.narrow ? round_up(tile.rows, STEP) : BM; };
    // Asks for a slice. Behind the last one come those that the second consumer has alone.
    const auto load = [&](const Tile& tile, int height, int stage, int k_tile) {
      const bool again = C::TALL && k_tile >= k_tiles;
      const int k0 = (k_tile0 + (again ? k_tile - k_tiles : k_tile)) * BK;
      const uint32_t bar = full_addr + stage * 8;
      if (loads_a) {
        const int box_rows = height / CLUSTER, row0 = tile.row0 + side * box_rows;
        const uint32_t dst = a_addr + stage * C::A_BYTES + side * box_rows * ROW_BYTES;
        const CUtensorMap* map = &maps.a[height / STEP - 1];
        if (gg::ptx::elect()) {
          gg::ptx::mbarrier_arrive_expect_tx(bar, height * ROW_BYTES);
          if constexpr (CLUSTER > 1) {
            gg::ptx::tma_load_2d_multicast(dst, map, k0, row0, bar, (1 << CLUSTER) - 1);
          } else if (a_once) {
            gg::ptx::tma_load_2d(dst, map, k0, row0, bar, evict_first);
          } else {
            gg::ptx::tma_load_2d(dst, map, k0, row0, bar);
          }
        }
      } else {
        const bool first = C::TALL && k_tile < alone_of(tile);
        const int begin = again ? 64 : 0, end = first ? 64 : BN;  // columns
        const uint32_t dst = b_addr + stage * C::B_BYTES;
        if (gg::ptx::elect()) {
          gg::ptx::mbarrier_arrive_expect_tx(bar, (end - begin) * ROW_BYTES);
          if constexpr (B_MAJOR == Major::k) {
            const CUtensorMap* map = &maps.b[again || first];
            gg::ptx::tma_load_3d(dst + begin * ROW_BYTES, map, k0, tile.col0 + begin, tile.group, bar);
          } else {
#pragma unroll
            for (int col = 0; col < BN; col += 64) {
              if (col < begin || col >= end) continue;
              gg::ptx::tma_load_3d(dst + col * ROW_BYTES, &maps.b[0], tile.col0 + col, k0, tile.group, bar);
            }
          }
        }
      }
      __syncwarp();
    };
    if (warp % 4 >= 2) {  // does not know where groups begin, and does not wait for it
      const int height = height_of(guess);
      gg::ptx::griddepcontrol_wait();
#pragma unroll 1
      for (int slice = 0; slice < guessed; ++slice) load(guess, height, slice, slice);
      right = schedule.all_have(problem.rows_each);
      // One of these warps then finds the tiles of the cluster.
      if (loads_a && rank == 0 && !(right && one_each)) {
        hand_out(schedule, mailbox, right ? problem.rows_each : 0, worker, workers, k_tiles, ideas.claims,
                 problem.counter);
      }
    } else {
      gg::ptx::griddepcontrol_wait();
      right = schedule.all_have(problem.rows_each);
      Tile tile = right ? guess : next_tile();
      int k_tile = right ? guessed : 0;
      for (int slice = 0; slice < guessed; ++slice) ring.next();
      while (tile.group >= 0) {
        const int height = height_of(tile), loads = k_tiles + alone_of(tile);
#pragma unroll 1
        for (; k_tile < loads; ++k_tile, ring.next()) {
          // empty[stage]: all consumers of the cluster have read it
          gg::ptx::mbarrier_wait_parity(empty_addr + ring.stage * 8, ring.phase ^ 1);
          load(tile, height, ring.stage, k_tile);
        }
        tile = next_tile();
        k_tile = 0;
      }
    }
  } else {
    if constexpr (C::TALL) gg::ptx::setmaxnreg_inc<224>();
    const gg::ptx::TileLayout layout = {gg::ptx::Swizzle::b128, 0, 8 * ROW_BYTES};
    const auto a_desc0 = gg::ptx::wgmma_desc(a_addr, layout);
    const auto b_desc0 = gg::ptx::wgmma_desc(b_addr + warpgroup * 64 * ROW_BYTES, layout);
    // Nobody reads D here: it leaves the L2 before A and B.
    const uint64_t policy = ideas.hints ? gg::ptx::evict_first_policy() : gg::ptx::evict_normal_policy();
    Store<D, BM> store(&maps.d, d, n, stores + warpgroup * C::STORE_BYTES, 1 + warpgroup, policy);
    auto* const parts_sums = reinterpret_cast<float*>(stores + CONSUMERS * C::STORE_BYTES);
    Parts<BM> parts(rank, (slices + part - 1) / part, &parts_bars[warpgroup],
                    parts_sums + warpgroup * C::PARTS_BYTES / 4, 1 + warpgroup);

    auto release = [&](int stage) {  // in all blocks whose loads write it
      const int thread = int(threadIdx.x) % 128;
      if (thread < CLUSTER) {
        const uint32_t bar = empty_addr + stage * 8;
        if constexpr (CLUSTER > 1) {
          gg::ptx::mbarrier_arrive(gg::ptx::mapa(bar, thread));
        } else {
          gg::ptx::mbarrier_arrive(bar);
        }
      }
    };
    // [unread]
    // Slices that have come, unread. One warp looks: a late one could be overtaken by a phase. The others
    // multiply with it before they come to the stage again, or wait for it.
    auto give_back = [&](int slices) {
      for (int slice = 0; slice < slices; ++slice, ring.next()) {
        if (warp % 4 > 0) continue;
        gg::ptx::mbarrier_wait_parity(full_addr + ring.stage * 8, ring.phase);
        release(ring.stage);
      }
    };
    // [/unread]
    gg::ptx::griddepcontrol_wait();
    Tile next = gg::ptx::uniform(guess);
    right = schedule.all_have(problem.rows_each);
    if (!right) {
      give_back(guessed);
      if (guessed > 0) gg::ptx::bar_sync(1 + warpgroup, 128);  // they have come, for all warps
      next = next_tile();
    }
    if constexpr (SPLIT > 1) {  // behind the last part of K there is nothing to multiply
      while (k_tiles == 0 && next.group >= 0) next = next_tile();
    }
    while (next.group >= 0) {
      const Tile tile = next;
      const int alone = alone_of(tile);
      if (warpgroup == 1) give_back(alone);  // what the first one has alone
      float acc[BM / 2];
      auto multiply = [&]<int WIDTH>(std::integral_constant<int, WIDTH>) {
        auto& sums = reinterpret_cast<float(&)[WIDTH / 2]>(acc);
        int last = 0;
#pragma unroll 1
        for (int k_tile = 0; k_tile < k_tiles; ++k_tile, ring.next()) {
          gg::ptx::mbarrier_wait_parity(full_addr + ring.stage * 8, ring.phase);  // both tiles have landed
          const auto a_desc = gg::ptx::wgmma_advance(a_desc0, ring.stage * C::A_BYTES);
          const auto b_desc = gg::ptx::wgmma_advance(b_desc0, ring.stage * C::B_BYTES);
          gg::ptx::wgmma_fence(sums);
#pragma unroll
          for (int kk = 0; kk < BK; kk += 16) {
            constexpr int B_STEP = B_MAJOR == Major::k ? 16 * 2 : 16 * ROW_BYTES;
            gg::ptx::wgmma<T, T, B_MAJOR, Major::k>(sums, gg::ptx::wgmma_advance(b_desc, kk / 16 * B_STEP),
                                                    gg::ptx::wgmma_advance(a_desc, kk * 2),
                                                    k_tile > 0 || kk > 0);
          }
          // [slice]
          gg::ptx::wgmma_commit_group();
          if (k_tile % 2 == 0 && k_tile >= alone) store.step();  // of the tile before, under these products
          if (k_tile > 0) {
            gg::ptx::wgmma_wait_group<1>();  // the slice before was read
            release(last);
          }
          // [/slice]
          last = ring.stage;
        }
        store.settle();
        next = next_tile();  // while the last products are made
        if constexpr (WIDTH > BEGUN_TOGETHER) {
          if (warpgroup == 0) give_back(alone);  // what the second one has alone
        }
        gg::ptx::wgmma_wait_group<0>(sums);
        release(last);
        if constexpr (SPLIT > 1) parts.add_up(sums);
        if (SPLIT == 1 || rank == 0) store.first(sums, tile, tile.col0 + warpgroup * 64);
      };
      with_width_for<BM>(ideas.narrow ? tile.rows : BM, multiply);  // as many rows as were loaded
      if (!ideas.overlap) store.flush();
    }
    store.finish();
  }
  if constexpr (BLOCKS > 1) {  // no block ends while another still writes into it
    __syncwarp();
    gg::ptx::cluster_arrive();
    gg::ptx::cluster_wait();
  }
}

}  // namespace chapter
