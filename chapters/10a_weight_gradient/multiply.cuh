// SPDX-License-Identifier: MIT
//
// A consumer is a warpgroup that multiplies every second tile of its block. The two take turns: while one
// stores its sums, the other multiplies. A consumer waits for its turn and for `full`, and signals the
// other's turn and `empty`, that of all blocks whose loads write this one's shared memory.

#pragma once

#include "cluster.cuh"
#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "common/kernel/ptx/wgmma.cuh"
#include "config.cuh"
#include "place.cuh"
#include "ring.cuh"
#include "schedule.cuh"
#include "store.cuh"

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
template <class C, class T, class D>
__device__ __forceinline__ void multiply_tiles(const CUtensorMap& d_map, const D* d, const Memory& memory,
                                               Mailbox<C::CLUSTER> (&mailboxes)[C::CONSUMERS], int rank,
                                               int n, int k, bool accumulate) {
  const int consumer = gg::ptx::uniform(int(threadIdx.x) / 128);
  // [descriptors]
  // Neighbours in memory are neighbours in a row of A or of B, so along wgmma's M and N. A row of a
  // box is a token, one k of wgmma. So the next eight k are 8 rows further on (stride_bytes), and the
  // next BOX columns of B are in the next box (leading_bytes).
  const gg::ptx::TileLayout layout = {
      .swizzle = gg::ptx::Swizzle::b128, .leading_bytes = BOX_BYTES, .stride_bytes = 8 * ROW_BYTES};
  const auto a_desc = gg::ptx::wgmma_desc(memory.a_tile_addr, layout);
  const auto b_desc = gg::ptx::wgmma_desc(memory.b_tile_addr, layout);
  // [/descriptors]
  // This block does not read the stage any more. wgmma is one operation of the consumer's four warps, so one
  // thread may speak for them.
  const auto release = [&](int stage) {
    const int thread = int(threadIdx.x) % 128;
    if (thread < C::CLUSTER) arrive_in<C::CLUSTER>(thread, memory.empty_addr + stage * 8);
  };
  const TileList<C> list(n, k);
  Turns turns(memory.turn_addr, consumer);
  TileReceiver<C> tiles(mailboxes, consumer, C::CONSUMERS);
  for (Tile tile; tiles.next(tile);) {
    // [multiply]
    // A thread's share of 64 x BN sums: of rows 0 to 63 of the block's tile, and of 64 to 127.
    float upper[BN / 2], lower[BN / 2];
    turns.wait(consumer);
    // A group without rows leaves them so: its gradient is 0.
#pragma unroll
    for (int i = 0; i < BN / 2; ++i) upper[i] = lower[i] = 0;
    Ring<C::STAGES> ring(tile.position);
    int last = 0;  // stage of the slice before
#pragma unroll 1
    for (int token = 0; token < tile.tokens; token += BK, ring.next()) {
      const int stage = ring.stage;
      gg::ptx::mbarrier_wait_parity(memory.full_addr + stage * 8, ring.phase);  // it has landed
      const auto a = gg::ptx::wgmma_advance(a_desc, stage * C::A_BYTES);
      const auto b = gg::ptx::wgmma_advance(b_desc, stage * C::B_BYTES);
      gg::ptx::wgmma_fence(upper, lower);
#pragma unroll
      for (int kk = 0; kk < BK; kk += 16) {
        constexpr auto mn = gg::ptx::Major::mn;
        const auto columns = gg::ptx::wgmma_advance(b, kk * ROW_BYTES);
        gg::ptx::wgmma<T, T, mn, mn>(upper, gg::ptx::wgmma_advance(a, kk * ROW_BYTES), columns, true);
        gg::ptx::wgmma<T, T, mn, mn>(lower, gg::ptx::wgmma_advance(a, BOX_BYTES + kk * ROW_BYTES), columns,
                                     true);
      }
      gg::ptx::wgmma_commit_group();
      if (token > 0) {
        gg::ptx::wgmma_wait_group<1>();  // the slice before is multiplied, while this one goes on
        release(last);
      }
      last = stage;
    }
    turns.pass(consumer);                        // the products of the last slice go on
    gg::ptx::wgmma_wait_group<0>(upper, lower);  // all slices are multiplied
    if (tile.tokens > 0) release(last);
    // [/multiply]
    if (tile.tokens == 0 && accumulate) continue;  // nothing to add
    const auto place = list.place(tile.index);
    const int row = place.row + rank * BM;
    if constexpr (sizeof(D) == 2) {
      // TMA would add what is rounded already. So D is read, here alone, and added to the sums.
      const D* const d_group = d + int64_t(place.group) * k * n;
      if (accumulate) {
        add_to(upper, d_group, row, place.col, n, k);
        add_to(lower, d_group, row + SUM_ROWS, place.col, n, k);
      }
    }
    store_boxes<C, D>(d_map, memory, upper, place.group, row, place.col, k, accumulate);
    store_boxes<C, D>(d_map, memory, lower, place.group, row + SUM_ROWS, place.col, k, accumulate);
  }
  // The next kernel waits for the end of this one in griddepcontrol_wait, so no result depends on where
  // this line stands. The consumer that comes here first counts for its block.
  gg::ptx::griddepcontrol_launch_dependents();
  // The boxes' shared memory must be there until TMA has read them. The lane is that of store_boxes.
  if (gg::ptx::elect()) gg::ptx::bulk_wait_group_read<0>();
}

}  // namespace chapter
