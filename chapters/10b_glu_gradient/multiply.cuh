// SPDX-License-Identifier: MIT
//
// A consumer is a warpgroup that multiplies every second tile of its block. The two take turns:
// while one makes gradients of its sums, the other multiplies. It waits for `sent` of its mailbox,
// its turn, `full` of each slice, `landed` of each box of C, and in a named barrier for its own
// threads. It signals `received` in the worker's first block, the other's turn, and `empty` of all
// blocks whose loads write this one's shared memory.

#pragma once

#include "boxes.cuh"
#include "cluster.cuh"
#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "common/kernel/ptx/wgmma.cuh"
#include "common/kernel/widths.cuh"
#include "config.cuh"
#include "gradient.cuh"
#include "ring.cuh"
#include "schedule.cuh"
#include "sums.cuh"

namespace chapter {

// The two consumers multiply in turn: tile 0 is consumer 0's, tile 1 is consumer 1's, and so on.
// Guarantees: a consumer that has waited for its turn knows that all slices of all tiles before
// have landed. That is not only for speed, `full` relies on it: a consumer may look at a stage for
// lap t only after lap t - 1 has landed there. Before that the wait for the parity of lap t may
// return at once (where lap t - 2 was the last to land, or none has landed and t is odd), or when
// an earlier lap lands. Then the consumer would multiply what is not its slice.
// A consumer passes the turn when it has started the products of its tile's last slice, and those
// of the slice before have ended, whether the other one has another tile or not. A consumer without
// a tile does not wait. The phase that then ends is waited for by nobody, which an mbarrier allows.
// [turns]
class Turns {
 public:
  __device__ Turns(uint32_t turn_addr, int consumer) : turn_addr_(turn_addr), phase_(consumer ^ 1) {}
  // Before a tile's first product. Consumer 1 waits for phase 0 of its barrier before its first
  // tile, for phase 1 before its second one, and so on. Consumer 0 may begin its first tile at
  // once and waits for phase 0 before its second one. So its first wait is for parity 1, which at
  // a new mbarrier returns at once.
  __device__ void wait(int consumer) {
    gg::ptx::mbarrier_wait_parity(turn_addr_ + consumer * 8, phase_);
    phase_ ^= 1;
  }
  // Who: all four warps of this `consumer`, when all products of its tile are started, and have
  // ended but for the last slice's. The other one's barrier gets their arrivals.
  __device__ void pass(int consumer) const {
    __syncwarp();  // all lanes have seen the last slice land
    if (threadIdx.x % 32 == 0) gg::ptx::mbarrier_arrive(turn_addr_ + (consumer ^ 1) * 8);
  }

 private:
  uint32_t turn_addr_;
  int phase_;
};
// [/turns]

// Sums stay in registers, so all of it is inlined.
template <class C, class Activation>
__device__ __forceinline__ void multiply_tiles(Activation activation, const Maps& maps,
                                               const Operands& operands, const Parts& parts,
                                               const Memory& memory,
                                               Mailbox<C::CLUSTER> (&mailboxes)[C::CONSUMERS], int rank,
                                               int all_rows, int n, int slices) {
  const int consumer = gg::ptx::uniform(int(threadIdx.x) / 128), thread = int(threadIdx.x) % 128;
  // [descriptors]
  // A row of A's slice has 64 of k. A row of a box of B has 64 columns of one k: from eight k to
  // the next eight are 8 rows, from 64 columns to the next BK rows.
  const auto a_desc = gg::ptx::wgmma_desc(
      memory.a_tile_addr,
      gg::ptx::TileLayout{.swizzle = gg::ptx::Swizzle::b128, .stride_bytes = 8 * ROW_BYTES});
  const auto b_desc =
      gg::ptx::wgmma_desc(memory.b_tile_addr, gg::ptx::TileLayout{.swizzle = gg::ptx::Swizzle::b128,
                                                                  .leading_bytes = BK * ROW_BYTES,
                                                                  .stride_bytes = 8 * ROW_BYTES});
  // [/descriptors]
  // This block does not read the stage any more. wgmma is one operation of the consumer's four warps, so one
  // thread may speak for them.
  const auto release = [&](int stage) {
    if (thread < C::CLUSTER) arrive_in<C::CLUSTER>(thread, memory.empty_addr + stage * 8);
  };
  Boxes<C> boxes(maps, memory.boxes_addr + consumer * C::SLOTS * BOX_BYTES,
                 memory.landed_addr + consumer * C::SLOTS * 8, thread, 1 + consumer);
  Turns turns(memory.turn_addr, consumer);
  TileReceiver<C> tiles(mailboxes, consumer, C::CONSUMERS);
  Ring<C::STAGES> ring;
  if (consumer > 0) ring.skip(slices);  // tile 0
  float upper[BN / 2], lower[BN / 2];   // of a tile's halves
  // Multiplies all slices of K of a tile of up to ROWS rows. Passes the turn when the last products
  // are started, and then waits for them.
  // [multiply]
  const auto multiply = [&](auto ROWS) {
    // Passed by with_width_for: HALF for a tile of up to BM - HALF rows, else BM (config.cuh).
    static_assert(BM - HALF == HALF);
    constexpr bool HAS_LOWER = ROWS > HALF;
    int last = 0;  // stage of the slice before
#pragma unroll 1
    for (int slice = 0; slice < slices; ++slice, ring.next()) {
      const int stage = ring.stage;
      gg::ptx::mbarrier_wait_parity(memory.full_addr + stage * 8, ring.phase);  // it has landed
      const auto a = gg::ptx::wgmma_advance(a_desc, stage * C::A_BYTES);
      const auto b = gg::ptx::wgmma_advance(b_desc, stage * C::B_BYTES);
      gg::ptx::wgmma_fence(upper, lower);
#pragma unroll
      for (int kk = 0; kk < BK; kk += 16) {
        constexpr auto k_major = gg::ptx::Major::k, n_major = gg::ptx::Major::mn;
        const auto columns = gg::ptx::wgmma_advance(b, kk * ROW_BYTES);
        // A tile's first wgmma ignores what is in `upper` and `lower`: an earlier tile's sums.
        const bool adds = slice > 0 || kk > 0;
        gg::ptx::wgmma<bf16, bf16, k_major, n_major>(upper, gg::ptx::wgmma_advance(a, kk * 2), columns, adds);
        if constexpr (HAS_LOWER)
          gg::ptx::wgmma<bf16, bf16, k_major, n_major>(
              lower, gg::ptx::wgmma_advance(a, HALF * ROW_BYTES + kk * 2), columns, adds);
      }
      gg::ptx::wgmma_commit_group();
      if (slice > 0) {
        gg::ptx::wgmma_wait_group<1>();  // the slice before is multiplied, while this one goes on
        release(last);
      }
      last = stage;
    }
    turns.pass(consumer);                        // the products of the last slice go on
    gg::ptx::wgmma_wait_group<0>(upper, lower);  // all slices are multiplied
    release(last);
  };
  // [/multiply]
  for (Tile tile; tiles.next(tile);) {
    // [tile]
    const int col0 = tile.col0 + rank * BN;
    boxes.begin(tile, 2 * col0);  // C's first boxes land while the other consumer multiplies
    const Factors factors(operands, tile, thread);
    turns.wait(consumer);
    gg::with_width_for<BM, HALF>(tile.rows, multiply);
    make_gradients<C>(activation, upper, lower, factors, tile, col0, boxes, memory.warp_sums[consumer], parts,
                      all_rows, n, thread);
    // [/tile]
    ring.skip(slices);  // those of the other consumer's tile
  }
  // The next kernel waits for the end of this one in griddepcontrol_wait, so no result depends on where
  // this line stands. The consumer that comes here first counts for its block.
  gg::ptx::griddepcontrol_launch_dependents();
  boxes.finish();
}

}  // namespace chapter
