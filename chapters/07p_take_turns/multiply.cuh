// SPDX-License-Identifier: MIT
//
// A consumer is a warpgroup that multiplies every second tile of its block, all 128 columns of B,
// and makes 64 columns of D of them. The two take turns: while one makes D of its sums and stores it,
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
#include "glu.cuh"
#include "guess.cuh"
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

// A thread's identity in two forms, the same numbers:
// - `warp` and `consumer`, made by `uniform`, for mbarriers, the ring and branches around wgmma. The
//   compiler does not know that `Self` is the same in all lanes of a warp. After a wait at an mbarrier
//   that depends on it, it would take the lanes to go on one by one, and would keep wgmma's descriptors
//   in ordinary registers: four moves (R2UR) for each wgmma. Machine code shows that, no test does.
// - `Self`, for addresses and thread numbers before and after the main loop: factors, boxes of D,
//   named barriers. Each Self takes threadIdx.x anew through `keep`, whose result the compiler cannot
//   trace, so it does not know that two of them are equal. Therefore it cannot compute an address
//   once, before the branch to one of six widths, and hold it in a register during the main loop.
//   This is a margin: ptxas of CUDA 13.0 does not spill with `consumer` in these places either, but
//   another one may, and a spill is an error of the build.
struct Self {
  unsigned index = gg::ptx::keep(threadIdx.x);
  int consumer = int(index / 128), thread = int(index % 128);
};

// Sums stay in registers, so all of it is inlined. guess.cuh is chapter 07m's: its `block_slices`
// are all slices of K here, which is never split.
// `release`: thread r speaks for the four warps to the block of rank r. No block arrives twice in one
// phase of an `empty`: it releases the stage again only after the next slice has landed there.
// Each block loads its part of that slice only after its own `empty` has ended the phase.
// A wrong guess (the first loop): warp 0 alone waits for its slices and releases them. `empty` wants
// one arrival of each block; and if all warps waited, a slow one might look only after the stage's
// next phase has ended, when parity shows the guessed slice's as not over. All other warps only
// count these slices. They look at a stage after warp 0 has seen its slice land: the other warps of
// consumer 0 wait for warp 0 at the bar_sync in Factors::read, and consumer 0 passes consumer 1's
// first turn after that. So the loop over these slices, `read` and `pass` stay in this order. No
// assertion says so: without the bar_sync the emulator finds `async-window` in a replay of --check.
// Factors::read and BoxStore share named barrier 1 + consumer: all 128 threads of a consumer come to
// its uses in the same order.
template <class C>
__device__ __forceinline__ void multiply_tiles(const CUtensorMap& d_map, bf16* d, const Operands& operands,
                                               const Memory<C>& memory,
                                               Mailbox<C::BLOCKS> (&mailboxes)[C::CONSUMERS],
                                               const Guess<C>& guess, const gg::Offsets& offsets, int slices,
                                               int n) {
  static_assert(C::CONSUMERS == 2);  // between two tiles of a consumer is one of the other: Turns, ring.skip
  const int warp = gg::ptx::uniform(int(threadIdx.x) / 32), consumer = warp / 4;
  const gg::ptx::TileLayout layout = {.swizzle = gg::ptx::Swizzle::b128, .stride_bytes = 8 * ROW_BYTES};
  const auto a_desc = gg::ptx::wgmma_desc(memory.a_tile_addr, layout);
  const auto b_desc = gg::ptx::wgmma_desc(memory.b_tile_addr, layout);
  // This block does not read the stage any more: wgmma is one operation of all four warps.
  const auto release = [&](int stage) {
    const int thread = int(threadIdx.x) % 128;
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
    {
      // Overwrites factors: `put` has read them before its last bar_sync. Ends with a bar_sync, where
      // consumer 0's other warps wait for warp 0, which has seen a wrong guess's slices land.
      const Self self;
      memory.factors[self.consumer].read(operands, tile, n, self.thread, 1 + self.consumer);
    }
    // [/start]
    float registers[C::PAIRS][C::BM / 2];
    const auto do_tile = [&]<int WIDTH>(std::integral_constant<int, WIDTH>) {
      static_assert(C::PAIRS == 2);  // PAIR 0 left, PAIR 1 right; all widths use these registers
      auto& left = reinterpret_cast<float(&)[WIDTH / 2]>(registers[0]);
      auto& right = reinterpret_cast<float(&)[WIDTH / 2]>(registers[1]);
      // [loop]
      turns.wait(consumer);
      // Set to 0, so that a sum's register is free after its epilogue. 07m's first wgmma ignores old
      // sums by a predicate, but ptxas takes it to read them, and might keep all for it. 192 zeros
      // are 96 machine instructions, executed while the other's last slice is multiplied.
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
          gg::ptx::wgmma<bf16>(right, gg::ptx::wgmma_advance(b, PAIR * ROW_BYTES + kk * 2), rows, true);
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
      const Self self;
      turns.pass(consumer);                       // the products of the last slice go on
      gg::ptx::wgmma_wait_group<0>(left, right);  // all slices are multiplied
      release(last);
      const auto& factors = memory.factors[self.consumer];
      BoxStore<C> store(d_map, d, n / 2, memory.d_rows + self.consumer * C::BOXES * C::BOX_BYTES, self.thread,
                        1 + self.consumer);
      const ColumnFactors<C::PAIRS> own(factors, self.thread);
#pragma unroll
      for (int box = 0; box < WIDTH / STEP; ++box) {
        float prob[8];  // of this thread's rows
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          prob[i] = factors.prob[box * STEP + i / 2 * 8 + self.thread % 4 * 2 + i % 2];
        }
        uint32_t words[C::PAIRS][4];
#pragma unroll
        for (int pair = 0; pair < C::PAIRS; ++pair) {
          const auto activate = [&](auto activation) {
            activate_rows(activation, (pair == 0 ? left : right) + box * 16, own.alpha, own.gate_bias[pair],
                          own.up_bias[pair], prob, words[pair]);
          };
          // ptxas interleaves the computing of outputs that no branch separates. So `geglu` is
          // tested once for 8 outputs: these have enough registers, the outputs of all rows would not.
          if (operands.geglu) {
            activate(gg::epilogue::geglu);
          } else {
            activate(gg::epilogue::swiglu);
          }
        }
        store.put(box, words, factors);
      }
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
  BoxStore<C>::finish();
}

}  // namespace chapter
