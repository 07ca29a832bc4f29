// SPDX-License-Identifier: MIT
//
// A consumer is a warpgroup that multiplies 64 columns of each tile's D, and stores them while it
// has the next tile. Where blocks split K it multiplies its block's slices only; the block of rank
// 0 along K adds the sums of all and stores. It waits for `full` and signals `empty`, that of all
// blocks whose loads write this one's shared memory.

#pragma once

#include "cluster.cuh"
#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "common/kernel/ptx/wgmma.cuh"
#include "common/kernel/widths.cuh"
#include "config.cuh"
#include "ring.cuh"
#include "schedule.cuh"
#include "split_k.cuh"
#include "store.cuh"

namespace chapter {

// Sums stay in registers, so all of it is inlined. A consumer that waits for tile i + 1 has released
// all slices of tile i - 1: else the warps of a worker could wait for each other for ever (Mailbox).
// That holds anywhere in do_tile, so tiles.next may stand there earlier or later.
template <class C, class T>
__device__ __forceinline__ void multiply_tiles(const CUtensorMap& d_map, T* d, const Memory& memory,
                                               TileReceiver<C> tiles, Slices slices, int k_rank, int n,
                                               int k) {
  const int consumer = gg::ptx::uniform(int(threadIdx.x) / 128);
  const gg::ptx::TileLayout layout = {.swizzle = gg::ptx::Swizzle::b128, .stride_bytes = 8 * ROW_BYTES};
  const auto a_desc = gg::ptx::wgmma_desc(memory.a_tile_addr, layout);
  const auto b_desc = gg::ptx::wgmma_desc(memory.b_tile_addr + consumer * 64 * ROW_BYTES, layout);
  // [release]
  // To be called after a wait for the products of the stage's slice. wgmma is one operation of four
  // warps. So we conclude: when the wait returns in one of them, all four have waited for `full`,
  // and none reads the stage any more. Thread r arrives, for the whole consumer, at the `empty` of
  // the block of rank r along N. A phase there counts each consumer once: a consumer arrives again
  // when the stage's next slice has landed here. By then the block of rank r has loaded its part of
  // that slice, and it does so only after the phase has ended.
  const auto release = [&](int stage) {
    const int thread = int(threadIdx.x) % 128;
    if (thread < C::CLUSTER) arrive_in<C::CLUSTER>(thread, memory.empty_addr + stage * 8);
  };
  // [/release]
  Store<C, T> store(d_map, d, n, memory.d_rows + consumer * C::STORE_BYTES, 1 + consumer);
  // [split]
  // `store` uses the same named barrier: the same four warps come to all its uses in the same order.
  AddSums<C> splits(k_rank, blocks_with_slices<C>(k), memory.landed_addr + consumer * 16,
                    reinterpret_cast<float*>(memory.sums + consumer * C::SUMS_BYTES), 1 + consumer);
  // A block without slices has no sums to send, but must receive: until this warp has read a tile,
  // the next one is not sent. `return` does not end the kernel: its cluster barrier is still to come.
  if (C::SPLIT > 1 && slices.count == 0) {
    for (Tile tile; tiles.next(tile);) {
    }
    return;
  }
  // [/split]
  Ring<C::STAGES> ring;
  Tile next;
  bool more = tiles.next(next);
  while (more) {
    const Tile tile = next;  // a copy: do_tile overwrites `next` before it stores `tile`
    float registers[C::BM / 2];
    const auto do_tile = [&]<int WIDTH>(std::integral_constant<int, WIDTH>) {
      auto& sums = reinterpret_cast<float(&)[WIDTH / 2]>(registers);  // all widths use the same ones
      // [multiply]
      int last = 0;  // stage of the slice before
#pragma unroll 1
      for (int k_tile = 0; k_tile < slices.count; ++k_tile, ring.next()) {
        const int stage = ring.stage;
        gg::ptx::mbarrier_wait_parity(memory.full_addr + stage * 8, ring.phase);  // it has landed
        const auto a = gg::ptx::wgmma_advance(a_desc, stage * C::A_BYTES);
        const auto b = gg::ptx::wgmma_advance(b_desc, stage * C::B_BYTES);
        gg::ptx::wgmma_fence(sums);
#pragma unroll
        for (int kk = 0; kk < BK; kk += 16) {
          gg::ptx::wgmma<T>(sums, gg::ptx::wgmma_advance(b, kk * 2), gg::ptx::wgmma_advance(a, kk * 2),
                            k_tile > 0 || kk > 0);
        }
        gg::ptx::wgmma_commit_group();
        store.proceed();  // one action for the tile before, during these products. It touches no sums
        if (k_tile > 0) {
          gg::ptx::wgmma_wait_group<1>();  // the slice before is multiplied, while this one goes on
          release(last);
        }
        last = stage;
      }
      store.complete();
      // Read early, during the last products: once all have read it, the tile after it can be sent.
      more = tiles.next(next);
      gg::ptx::wgmma_wait_group<0>(sums);  // all slices are multiplied
      release(last);
      // [/multiply]
      if constexpr (C::SPLIT > 1) splits.send_or_add(sums);
      if (k_rank == 0) store.put(sums, tile, tile.col0 + consumer * 64);
    };
    gg::with_width_for<C::BM, STEP>(tile.rows, do_tile);  // as many rows as load_tiles loaded
  }
  store.finish();
}

}  // namespace chapter
