// SPDX-License-Identifier: MIT
//
// How X of a tile becomes D. A consumer puts its 32 columns into shared memory. Its storing warp makes D of
// them there, and TMA stores boxes of 32 rows. Rows that fill no box are stored by lanes, for a box would
// reach into the next group's rows.

#pragma once

#include "common/kernel/ptx/barrier.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/stmatrix.cuh"
#include "common/kernel/ptx/tma.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "config.cuh"
#include "glu.cuh"
#include "transform.cuh"

namespace chapter {

// Two named barriers that a consumer and its storing warp share. Invariant: the consumer's part of
// `boxes` and its tile are the storing warp's from `filled` to `emptied`, and the consumer's from
// `emptied` to `filled`. When a phase ends, all that threads read or wrote before their bar_arrive
// is done: who has waited may overwrite the one and read the other.
// Each side waits at the other barrier before it arrives at the same one again, so that it never
// arrives twice in a phase.
struct HandOver {
  static constexpr int THREADS = 128 + 32;
  int filled;   // X of a tile, and what the tile is, are in shared memory. The consumer arrives.
  int emptied;  // D of it has been read from there. The storing warp arrives, also before the first tile.

  __device__ explicit HandOver(int consumer) : filled(FILLED + consumer), emptied(EMPTIED + consumer) {}
};

// The consumer's end. A whole consumer has one and makes each call. Each call first waits until the
// memory is given back.
template <class C>
class Outbox {
 public:
  __device__ Outbox(const Memory& memory, int consumer)
      : hand_over_(consumer),
        tile_(memory.output_tiles + consumer),
        addr_(gg::ptx::keep(gg::ptx::shared_addr(memory.boxes + consumer * C::STORE_BYTES))) {}

  // Takes X of a tile's rows, rounded up to a multiple of STEP, in words as `activate` makes them.
  // Only tile.rows rows are stored, and only columns that D has.
  // [put]
  template <int WORDS>
  __device__ void put(const uint32_t (&words)[WORDS], const OutputTile& tile) const {
    static_assert(STEP == 32 && D_BYTES == 4 * 16);  // a box takes one stmatrix of each of four warps
    static_assert(WORDS % 4 == 0);                   // and each stmatrix takes 4 words of a thread
    gg::ptx::bar_sync(hand_over_.emptied, HandOver::THREADS);
    // A stmatrix takes 32 rows of this warp's 8 columns: four 8x8 matrices, as wgmma left the sums.
    // Lane l gives the address of row l % 8 of matrix l / 8, which is row l of the box. Warp w's 8
    // columns are chunk w, by the order of B's map (launch.cuh).
    const int lane = int(threadIdx.x) % 32, chunk = int(threadIdx.x) / 32 % 4;
#pragma unroll
    for (int i = 0; i * 4 < WORDS; ++i) {  // box i of the tile
      const auto& reg = reinterpret_cast<const uint32_t(&)[4]>(words[i * 4]);
      gg::ptx::stmatrix_x4_trans(addr_ + i * BOX_BYTES + swizzled(lane, chunk), reg);
    }
    if (threadIdx.x % 128 == 0) *tile_ = tile;
    gg::ptx::bar_arrive(hand_over_.filled, HandOver::THREADS);
  }
  // [/put]
  // Call it once, after the last tile: the storing warp returns.
  __device__ void put_none() const {
    gg::ptx::bar_sync(hand_over_.emptied, HandOver::THREADS);
    if (threadIdx.x % 128 == 0) *tile_ = {.group = -1, .row0 = 0, .rows = 0, .d_col0 = 0};
    gg::ptx::bar_arrive(hand_over_.filled, HandOver::THREADS);
  }

 private:
  HandOver hand_over_;
  OutputTile* tile_;
  uint32_t addr_;
};

// The role of a consumer's storing warp, until the consumer calls put_none. d_columns: of D, N / 2.
// [store]
template <class C>
__device__ void store_tiles(const CUtensorMap& d_map, bf16* d, const Operands& operands, const Memory& memory,
                            int consumer, int d_columns) {
  const int lane = int(threadIdx.x) % 32;
  const HandOver hand_over(consumer);
  const Transform transform(operands.w);
  for (;;) {
    gg::ptx::bar_arrive(hand_over.emptied, HandOver::THREADS);
    gg::ptx::bar_sync(hand_over.filled, HandOver::THREADS);
    const OutputTile tile = gg::ptx::uniform(memory.output_tiles[consumer]);
    if (tile.group < 0) return;              // put_none: the consumer waits at `emptied` no more
    if (tile.d_col0 >= d_columns) continue;  // d_columns is a multiple of 32: D has all 32 or none
    unsigned char* box = memory.boxes + consumer * C::STORE_BYTES;
    uint32_t largest_bits = 0;  // those of the largest |Y|
#pragma unroll 1
    for (int first = 0; first < tile.rows; first += STEP, box += BOX_BYTES) {
      const int rows = min(STEP, tile.rows - first), row0 = tile.row0 + first;  // of this box
      largest_bits = gg::epilogue::larger(largest_bits, transform.apply(box, rows));
      // Each lane makes what it wrote of D visible to TMA.
      gg::ptx::fence_proxy_async();
      __syncwarp();  // D of all lanes is there, for TMA too
      if (rows < STEP) {
        for (int row = lane / 4, chunk = lane % 4; row < rows; row += 8) {
          *reinterpret_cast<uint4*>(d + int64_t(row0 + row) * d_columns + tile.d_col0 + chunk * 8) =
              *reinterpret_cast<const uint4*>(box + swizzled(row, chunk));
        }
      } else if (gg::ptx::elect()) {  // the lane that waits below
        gg::ptx::tma_store_2d(&d_map, tile.d_col0, row0, gg::ptx::shared_addr(box));
        gg::ptx::bulk_commit_group();
      }
    }
    largest_bits = __reduce_max_sync(~0u, largest_bits);
    // This is the lane that has committed above, for `elect` always chooses the same one. In another
    // lane the wait would return at once: a copy group is one thread's.
    if (gg::ptx::elect()) {
      // As signed integers, magnitudes have the order of their numbers, and -infinity is below all.
      atomicMax(reinterpret_cast<int*>(operands.amax) + tile.group, int(largest_bits));
      gg::ptx::bulk_wait_group_read<0>();
    }
    __syncwarp();  // TMA has read all boxes, and lanes the last rows
  }
}
// [/store]

}  // namespace chapter
