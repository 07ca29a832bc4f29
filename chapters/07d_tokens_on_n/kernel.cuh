// SPDX-License-Identifier: MIT
//
// Chapter 07d: A and B swap places: the tensor cores compute D transposed.
//
// Group g owns rows offsets[g] .. offsets[g+1] of A [M,K] and D [M,N]; B is [G,N,K], K contiguous:
//     D[row, col] = sum over k of A[row, k] * B[g][col, k]
// New here: columns of D are WGMMA's M, always 64 of them, and tokens, of which a group has any number, are
// its N, which comes in steps. A tile loads and multiplies no more steps of 32 rows than it has.

#pragma once

#include "common/ptx/mbarrier.cuh"
#include "common/ptx/shared.cuh"
#include "common/ptx/tma.cuh"
#include "common/ptx/warp.cuh"
#include "common/ptx/warpgroup.cuh"
#include "common/ptx/wgmma.cuh"
#include "common/types.cuh"
#include "config.cuh"
#include "ring.cuh"

namespace chapter {

// One block per multiprocessor: 65536 registers for 384 threads, 168 each before they are dealt out anew.
template <class T, class C>
__global__ void __launch_bounds__(C::THREADS, 1)
    grouped_gemm(const __grid_constant__ Maps<C::BM> maps, T* d, const __grid_constant__ Problem problem) {
  constexpr int BM = C::BM, STAGES = C::STAGES, CONSUMERS = C::CONSUMERS;
  const int n = problem.n, k_tiles = (problem.k + BK - 1) / BK;
  const int thread = int(threadIdx.x), warp = gg::ptx::uniform(thread / 32), warpgroup = warp / 4;
  extern __shared__ __align__(1024) unsigned char shared[];
  const uint32_t a_tile_addr = gg::ptx::keep(gg::ptx::shared_addr(shared));  // [STAGES][BM][BK], swizzled
  const uint32_t b_tile_addr = a_tile_addr + STAGES * C::A_BYTES;            // [STAGES][BN][BK], swizzled
  __shared__ Mailbox mailbox;
  __shared__ uint64_t bars[2 * STAGES];  // full: the slice has landed; empty: all warps are done with it
  const uint32_t full_addr = gg::ptx::keep(gg::ptx::shared_addr(bars)), empty_addr = full_addr + STAGES * 8;
  if (thread == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      gg::ptx::mbarrier_init(full_addr + stage * 8, 1);
      gg::ptx::mbarrier_init(empty_addr + stage * 8, CONSUMERS);
    }
    gg::ptx::mbarrier_init(gg::ptx::shared_addr(&mailbox.full), 1);
    gg::ptx::mbarrier_init(gg::ptx::shared_addr(&mailbox.empty), 1 + 4 * CONSUMERS);
    gg::ptx::fence_mbarrier_init();
    gg::ptx::prefetch_tensormap(&maps.a[BM / STEP - 1]);
    gg::ptx::prefetch_tensormap(&maps.b);
  }
  __syncthreads();  // the barriers are there for all threads and for TMA
  // [dependent]
  // All above overlaps the end of the kernel before. Nothing of memory was looked at.
  gg::ptx::griddepcontrol_launch_dependents();  // the next kernel's blocks may start where there is room
  gg::ptx::griddepcontrol_wait();               // all that the kernel before wrote is there
  // [/dependent]
  Ring<STAGES> ring;
  int phase = 0;  // of the mailbox
  auto next_tile = [&] {
    phase ^= 1;
    return mailbox.read(phase ^ 1);
  };
  if (warpgroup == CONSUMERS) {
    gg::ptx::setmaxnreg_dec<56>();
    if (warp % 4 == 1) {
      // [find]
      Schedule<C> schedule(problem.offsets, problem.groups, n);
      Tile tile = {};
      for (int index = int(blockIdx.x); tile.group >= 0; index += int(gridDim.x), phase ^= 1) {
        tile = schedule.find(index);
        mailbox.send(tile, phase);  // as soon as all warps have the one before
      }
      // [/find]
    }
    for (Tile tile; warp % 4 == 0 && (tile = next_tile()).group >= 0;) {
      // [produce]
      const int rows = (tile.rows + STEP - 1) / STEP * STEP;  // as many as are multiplied
      for (int k_tile = 0; k_tile < k_tiles; ++k_tile, ring.next()) {
        const int stage = ring.stage, k0 = k_tile * BK;
        const uint32_t bar_addr = full_addr + stage * 8;
        // empty[stage]: all consumers have multiplied what was in it. The first time there was nothing.
        gg::ptx::mbarrier_wait_parity(empty_addr + stage * 8, ring.phase ^ 1);
        if (gg::ptx::elect()) {
          gg::ptx::mbarrier_arrive_expect_tx(bar_addr, rows * ROW_BYTES + C::B_BYTES);
          gg::ptx::tma_load_2d(a_tile_addr + stage * C::A_BYTES, &maps.a[rows / STEP - 1], k0, tile.row0,
                               bar_addr);
          gg::ptx::tma_load_3d(b_tile_addr + stage * C::B_BYTES, &maps.b, k0, tile.col0, tile.group,
                               bar_addr);
        }
        __syncwarp();
      }
      // [/produce]
    }
  } else {
    gg::ptx::setmaxnreg_inc<224>();
    const gg::ptx::TileLayout layout = {gg::ptx::Swizzle::b128, 0, 8 * ROW_BYTES};
    const auto a_desc0 = gg::ptx::wgmma_desc(a_tile_addr, layout);
    const auto b_desc0 = gg::ptx::wgmma_desc(b_tile_addr + warpgroup * 64 * ROW_BYTES, layout);
    auto release = [&](int stage) {  // this warpgroup does not read it any more: it has waited for its wgmma
      if (thread % 128 == 0) gg::ptx::mbarrier_arrive(empty_addr + stage * 8);
    };
    for (Tile tile; (tile = next_tile()).group >= 0;) {
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
            gg::ptx::wgmma<T>(sums, gg::ptx::wgmma_advance(b, kk * 2), gg::ptx::wgmma_advance(a, kk * 2),
                              k_tile > 0 || kk > 0);
          }
          gg::ptx::wgmma_commit_group();
          if (k_tile > 0) gg::ptx::wgmma_wait_group<1>(), release(last);  // while this one goes on
          last = stage;
        }
        gg::ptx::wgmma_wait_group<0>(sums);  // all slices are multiplied
        release(last);
        // [/consume]
        // [store]
        const int row0 = thread % 4 * 2, col0 = tile.col0 + thread / 32 * 16 + thread % 32 / 4;
        T* const to = d + int64_t(tile.row0 + row0) * n + col0;
#pragma unroll
        for (int i = 0; i < WIDTH / 2; ++i) {  // registers i and i + 1 are neighbours in a column
          const int r = i / 4 * 8 + i % 2, c = i / 2 % 2 * 8;
          if (row0 + r < tile.rows && col0 + c < n) to[int64_t(r) * n + c] = gg::from_float<T>(sums[i]);
        }
        // [/store]
      };
      with_width_for<BM>(tile.rows, multiply);  // as many rows as were loaded
    }
  }
}

}  // namespace chapter
