// SPDX-License-Identifier: MIT
//
// A consumer is a warpgroup that multiplies every second tile of its block, all 128 columns of B,
// and quantises them. The two take turns: while one makes D and D_col of its sums and stores them,
// the other multiplies. A consumer waits for its turn and for `full`. It signals the other's turn and
// `empty`, that of all blocks whose loads write this one's shared memory.

#pragma once

#include "cluster.cuh"
#include "common/kernel/ptx/barrier.cuh"
#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "common/kernel/ptx/warpgroup.cuh"
#include "common/kernel/ptx/wgmma.cuh"
#include "common/kernel/widths.cuh"
#include "config.cuh"
#include "guess.cuh"
#include "quantise.cuh"
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

// Sums stay in registers, so all of it is inlined. guess.cuh is chapter 07m's: its `block_slices`
// are all slices of K here, which is never split.
// `release`: thread r speaks for the four warps to the block of rank r. No block arrives twice in one
// phase of an `empty`: it releases the stage again only after the next slice has landed there.
// Each block loads its part of that slice only after its own `empty` has ended the phase.
// A wrong guess (the first loop): warp 0 alone waits for its slices and releases them. `empty` wants
// one arrival of each block; and if all warps waited, a slow one might look only after the stage's
// next phase has ended, when parity shows the guessed slice's as not over. All other warps only
// count these slices. They look at a stage after warp 0 has seen its slice land: the other warps of
// consumer 0 wait for warp 0 at the bar_sync in Quantiser's constructor, and consumer 0 passes the
// first turn to consumer 1 after that. So the loop over these slices, the constructor and `pass` stay
// in this order. No assertion says so: without the bar_sync the emulator finds `async-window` in a
// replay of --check.
// Quantiser and BoxStore share named barrier 1 + consumer: all 128 threads of a consumer come to
// its uses in the same order.
template <class C>
__device__ __forceinline__ void multiply_tiles(const Maps<C>& maps, const Operands& operands,
                                               const Memory<C>& memory,
                                               Mailbox<C::BLOCKS> (&mailboxes)[C::CONSUMERS],
                                               const Guess<C>& guess, const gg::Offsets& offsets, int slices,
                                               int n) {
  static_assert(C::CONSUMERS == 2);  // between two tiles of a consumer is one of the other: Turns, ring.skip
  const int warp = gg::ptx::uniform(int(threadIdx.x) / 32), consumer = warp / 4;
  const int thread = int(threadIdx.x) % 128;  // of the consumer
  const gg::ptx::TileLayout layout = {.swizzle = gg::ptx::Swizzle::b128, .stride_bytes = 8 * ROW_BYTES};
  const auto a_desc = gg::ptx::wgmma_desc(memory.a_tile_addr, layout);
  const auto b_desc = gg::ptx::wgmma_desc(memory.b_tile_addr, layout);
  // This block does not read the stage any more: wgmma is one operation of all four warps.
  const auto release = [&](int stage) {
    if (thread < C::CLUSTER) arrive_in<C::CLUSTER>(thread, memory.empty_addr + stage * 8);
  };
  Turns turns(memory.turn_addr, consumer);
  Ring<C::STAGES> ring;
  const bool holds = guess.holds(offsets);
  if (!holds && guess.slices > 0) {  // the guessed slices are not used
    for (int slice = 0; slice < guess.slices; ++slice, ring.next()) {
      if (warp > 0) continue;
      gg::ptx::mbarrier_wait_parity(memory.full_addr + ring.stage * 8, ring.phase);
      __syncwarp();  // all its lanes have seen it land
      release(ring.stage);
    }
  }
  // [start]
  if (consumer > 0) ring.skip(slices);  // tile 0, which is consumer 0's
  TileReceiver<C> tiles(mailboxes, consumer, C::CONSUMERS, guess, holds);
  Tile tile;
  bool more = tiles.first(tile);
  while (more) {
    // Loads what the epilogue begins with, as a rule while the other consumer multiplies. Ends with a
    // bar_sync: outputs and warp codes may be overwritten after it, and in consumer 0 warp 0 has seen
    // all slices of a wrong guess land.
    Quantiser<C> quantiser(operands, offsets, tile, n, memory.warp_codes[consumer], thread, 1 + consumer);
    // [/start]
    float registers[C::HALVES][C::BM / 2];
    const auto do_tile = [&]<int WIDTH>(std::integral_constant<int, WIDTH>) {
      // The sums of columns 0 to 63 and 64 to 127 of the tile. All widths use the same registers.
      auto& left = reinterpret_cast<float(&)[WIDTH / 2]>(registers[0]);
      auto& right = reinterpret_cast<float(&)[WIDTH / 2]>(registers[1]);
      // [loop]
      turns.wait(consumer);
      // Set to 0, so that a sum's register is free after its epilogue. 07m's first wgmma ignores old
      // sums by a predicate, but ptxas takes it to read them, and might keep all for it. 128 zeros
      // are 64 machine instructions, executed while the other's last slice is multiplied.
#pragma unroll
      for (int i = 0; i < WIDTH / 2; ++i) left[i] = right[i] = 0;
      int last = 0;  // stage of the slice before
#pragma unroll 1
      for (int k_tile = 0; k_tile < slices; ++k_tile, ring.next()) {
        const int stage = ring.stage;
        gg::ptx::mbarrier_wait_parity(memory.full_addr + stage * 8, ring.phase);  // it has landed
        const auto a = gg::ptx::wgmma_advance(a_desc, stage * C::A_BYTES);
        const auto b = gg::ptx::wgmma_advance(b_desc, stage * C::B_BYTES);
        gg::ptx::wgmma_fence(left, right);
#pragma unroll
        for (int kk = 0; kk < BK; kk += 16) {
          const auto rows = gg::ptx::wgmma_advance(a, kk * 2);  // of A, a descriptor
          gg::ptx::wgmma<bf16>(left, gg::ptx::wgmma_advance(b, kk * 2), rows, true);
          gg::ptx::wgmma<bf16>(right, gg::ptx::wgmma_advance(b, HALF * ROW_BYTES + kk * 2), rows, true);
        }
        gg::ptx::wgmma_commit_group();
        if (k_tile > 0) {
          gg::ptx::wgmma_wait_group<1>();  // the slice before is multiplied, while this one goes on
          release(last);
        }
        last = stage;
      }
      // [/loop]
      // [end]
      turns.pass(consumer);                       // the products of the last slice go on
      gg::ptx::wgmma_wait_group<0>(left, right);  // all slices are multiplied
      release(last);
      BoxStore<C> store(maps, memory.d_rows + consumer * C::STORE_BYTES, thread, 1 + consumer);
      quantiser.apply(left, right, store);
      // [/end]
    };
    // [next]
    gg::with_width_for<C::BM, STEP>(tile.rows, do_tile);  // as many rows as load_tiles loaded
    ring.skip(slices);                                    // those of the other consumer's tile
    // Reads message t, after the epilogue of t - 2. That is early enough: only the scheduling warp
    // waits until it is read, to claim t + 1 (if tiles are claimed) and to send t + 2. The loading
    // warps want t + 1 only when they have started all loads of t.
    more = tiles.next(tile);
    // [/next]
  }
  gg::ptx::griddepcontrol_launch_dependents();  // changes nothing where kernel.cuh has executed it
  BoxStore<C>::wait_until_read();               // shared memory must be there until then
}

}  // namespace chapter
