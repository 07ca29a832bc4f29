// SPDX-License-Identifier: MIT
//
// Chapter 07c: one launch. A warp of each block finds its tiles while the others load and multiply.
//
// Group g owns rows offsets[g] .. offsets[g+1] of A [M,K] and D [M,N]; B is [G,N,K], K contiguous:
//     D[row, col] = sum over k of A[row, k] * B[g][col, k]
// New here: no kernel plans beforehand; tiles go through a mailbox, and a launch begins under the one before.

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
#include "schedule.cuh"

namespace chapter {

constexpr int BK = 64, ROW_BYTES = 128;  // depth of a slice: rows of 128 bytes, the most that TMA swizzles
constexpr int CONSUMERS = 2, THREADS = 128 * (CONSUMERS + 1);  // warpgroups that multiply; one more loads
constexpr int SHARED_BYTES = 200 * 1024;

struct Maps {
  CUtensorMap a, b;
};
struct Problem {
  gg::Offsets offsets;
  int groups, n, k;
};
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
  __shared__ Mailbox mailbox;
  __shared__ uint64_t bars[2 * STAGES];  // full: the slice has landed; empty: all warps are done with it
  const uint32_t full_addr = gg::ptx::keep(gg::ptx::shared_addr(bars)), empty_addr = full_addr + STAGES * 8;
  if (thread == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      gg::ptx::mbarrier_init(full_addr + stage * 8, 1);
      gg::ptx::mbarrier_init(empty_addr + stage * 8, 4 * CONSUMERS);
    }
    gg::ptx::mbarrier_init(gg::ptx::shared_addr(&mailbox.full), 1);
    gg::ptx::mbarrier_init(gg::ptx::shared_addr(&mailbox.empty), 1 + 4 * CONSUMERS);
    gg::ptx::fence_mbarrier_init();
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
    if (warp == 1) {
      // [find]
      Schedule<BM, BN> schedule(problem.offsets, problem.groups, n);
      Tile tile = {};
      for (int index = int(blockIdx.x); tile.group >= 0; index += int(gridDim.x), phase ^= 1) {
        tile = schedule.find(index);
        mailbox.send(tile, phase);  // as soon as all warps have the one before
      }
      // [/find]
    }
    for (Tile tile; warp == 0 && (tile = next_tile()).group >= 0;) {
      // [produce]
      for (int k_tile = 0; k_tile < k_tiles; ++k_tile, ring.next()) {
        const int stage = ring.stage, k0 = k_tile * BK;
        const uint32_t bar_addr = full_addr + stage * 8;
        // empty[stage]: all consumers have multiplied what was in it. The first time there was nothing.
        gg::ptx::mbarrier_wait_parity(empty_addr + stage * 8, ring.phase ^ 1);
        if (gg::ptx::elect()) {
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
    for (Tile tile; (tile = next_tile()).group >= 0;) {
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
