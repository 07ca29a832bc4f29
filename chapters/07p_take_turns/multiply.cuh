// SPDX-License-Identifier: MIT
//
// A consumer is a warpgroup that multiplies every second tile of its block, all 128 columns of B, and makes
// 64 columns of D of them. The two take turns: while one makes D of its sums and stores it, the other
// multiplies. It waits for its turn and for `full`, and signals the other's turn and `empty`, that of all
// blocks whose loads write this one's shared memory.

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

// The two consumers multiply in turn: tile 0 is the first one's, tile 1 the second one's, and so on.
// Guarantees: who has waited for its turn knows that all slices of all tiles before have landed. `full` needs
// that, not only speed: its parity tells a stage's lap from the next one only to who is less than two
// laps behind, so it must not be asked for a lap while the lap before has not landed.
// No deadlock: a turn is passed as soon as a tile's products are started, whether the other has a tile or
// not. Who has none does not wait for his turn, and the arrivals that stay in the barrier harm nobody.
// [turns]
class Turns {
 public:
  __device__ Turns(uint32_t turn_addr, int consumer) : turn_addr_(turn_addr), phase_(consumer ^ 1) {}
  // Before a tile's first product. Phase i of a consumer's barrier ends when it may begin its tile i, counted
  // from 0, but the first consumer may always begin its first tile: its phase i is for tile i + 1, and a wait
  // for the phase before the first one returns at once.
  __device__ void wait(int consumer) {
    gg::ptx::mbarrier_wait_parity(turn_addr_ + consumer * 8, phase_);
    phase_ ^= 1;
  }
  // Who: all four warps, after the tile's last product was started. The other's queue up behind it.
  __device__ void pass(int consumer) const {
    __syncwarp();  // all lanes have seen the last slice land
    if (threadIdx.x % 32 == 0) gg::ptx::mbarrier_arrive(turn_addr_ + (consumer ^ 1) * 8);
  }

 private:
  uint32_t turn_addr_;
  int phase_;
};
// [/turns]

// The consumer that this thread is in, and its number there. They are made anew wherever they are wanted, and
// hidden. Else the compiler would make addresses of them once, for all widths of tiles, and keep these in
// registers during the main loop. It is not known to be the same in all lanes. So no wait at an mbarrier
// may depend on it: behind one the compiler would take the lanes to come one by one, and wgmma's
// descriptors would no longer be in uniform registers.
struct Self {
  unsigned index = gg::ptx::keep(threadIdx.x);
  int consumer = int(index / 128), thread = int(index % 128);
};

// Sums stay in registers, so all of it is inlined.
template <class C>
__device__ __forceinline__ void multiply_tiles(const CUtensorMap& d_map, bf16* d, const Operands& operands,
                                               const Memory<C>& memory,
                                               Mailbox<C::BLOCKS> (&mailboxes)[C::CONSUMERS],
                                               const Guess<C>& guess, const gg::Offsets& offsets, int slices,
                                               int n) {
  const int warp = gg::ptx::uniform(int(threadIdx.x) / 32), consumer = warp / 4;
  const gg::ptx::TileLayout layout = {.swizzle = gg::ptx::Swizzle::b128, .stride_bytes = 8 * ROW_BYTES};
  const auto a_desc = gg::ptx::wgmma_desc(memory.a_tile_addr, layout);
  const auto b_desc = gg::ptx::wgmma_desc(memory.b_tile_addr, layout);
  // This block does not read the stage any more. wgmma is one operation of the consumer's four warps, so one
  // thread may speak for them.
  const auto release = [&](int stage) {
    const int thread = int(threadIdx.x) % 128;
    if (thread < C::CLUSTER) arrive_in<C::CLUSTER>(thread, memory.empty_addr + stage * 8);
  };
  Turns turns(memory.turn_addr, consumer);
  Ring<C::STAGES> ring;
  const bool holds = guess.holds(offsets);
  // [discard]
  if (!holds && guess.slices > 0) {
    // Slices were loaded for nothing. Invariant: who waits for a phase must not be overtaken by the next one,
    // whose end he would take for his. So one warp waits, then releases; the others wait for it at the barrier in
    // `read`. The second consumer counts slices only: its first turn comes when the first one has seen later
    // ones land.
    for (int slice = 0; slice < guess.slices; ++slice, ring.next()) {
      if (warp > 0) continue;
      gg::ptx::mbarrier_wait_parity(memory.full_addr + ring.stage * 8, ring.phase);
      __syncwarp();  // in all its lanes
      release(ring.stage);
    }
  }
  // [/discard]
  if (consumer > 0) ring.skip(slices);  // tile 0
  TileReceiver<C> tiles(mailboxes, consumer, C::CONSUMERS, guess, holds);
  Tile tile;
  bool more = tiles.first(tile);
  while (more) {
    {
      const Self self;
      memory.factors[self.consumer].read(operands, tile, n, self.thread, 1 + self.consumer);
    }
    float registers[C::PAIRS][C::BM / 2];
    const auto do_tile = [&]<int WIDTH>(std::integral_constant<int, WIDTH>) {
      // All widths use the same registers.
      auto& left = reinterpret_cast<float(&)[WIDTH / 2]>(registers[0]);
      auto& right = reinterpret_cast<float(&)[WIDTH / 2]>(registers[1]);
      turns.wait(consumer);
      // Few cycles, during the products of the other consumer's last slice. If this tile's first products
      // set the sums instead, as a predicate tells them, then to the compiler they would read these
      // registers, which it would keep from tile to tile.
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
          const auto rows = gg::ptx::wgmma_advance(a, kk * 2);
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
      const Self self;
      turns.pass(consumer);  // the products of the last slice go on
      // [end]
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
          // Where `geglu` is tested matters to ptxas, which lets no outputs be computed at a time that have a
          // branch between them: 8 outputs at a time have enough registers, those of all rows would not.
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
    gg::with_width_for<C::BM, STEP>(tile.rows, do_tile);  // as many rows as load_tiles loaded
    ring.skip(slices);                                    // those of the other consumer's tile
    // It is read late, but nobody waits for that: the other consumer's tile was sent before this one
    // and is multiplied meanwhile.
    more = tiles.next(tile);
  }
  gg::ptx::griddepcontrol_launch_dependents();
  BoxStore<C>::finish();
}

}  // namespace chapter
