// SPDX-License-Identifier: MIT
//
// How X of a tile becomes D. A consumer puts its 32 columns into shared memory. Its storing warp makes Y of
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

// Two named barriers of each consumer and its storing warp. `filled`: X of a tile lies in shared memory.
// `emptied`: TMA has read it.
struct Meeting {
  static constexpr int THREADS = 128 + 32;
  int filled, emptied;

  __device__ explicit Meeting(int consumer) : filled(3 + consumer), emptied(5 + consumer) {}
};

// The consumer's end. A whole consumer has one and makes each call.
template <class C>
class Outbox {
 public:
  __device__ Outbox(const Memory& memory, int consumer)
      : meeting_(consumer),
        tile_(memory.tiles + consumer),
        addr_(gg::ptx::keep(gg::ptx::shared_addr(memory.boxes + consumer * C::STORE_BYTES))) {}

  // Takes X of a tile's rows, rounded up to a multiple of STEP. tile.col0 is the first of its 32 columns in
  // D. Only tile.rows rows are stored, and only columns that D has.
  // [put]
  template <int WORDS>
  __device__ void put(const uint32_t (&words)[WORDS], const Tile& tile) const {
    gg::ptx::bar_sync(meeting_.emptied, Meeting::THREADS);
    // A stmatrix takes 32 rows of this warp's 8 columns: four 8x8 matrices, as wgmma left the sums. Lane l
    // gives the address of row l % 8 of matrix l / 8, whose 8 columns are one chunk.
    const int lane = int(threadIdx.x) % 32, chunk = int(threadIdx.x) / 32 % 4;
#pragma unroll
    for (int box = 0; box * 4 < WORDS; ++box) {
      const auto& reg = reinterpret_cast<const uint32_t(&)[4]>(words[box * 4]);
      gg::ptx::stmatrix_x4_trans(addr_ + box * BOX_BYTES + swizzled(lane, chunk), reg);
    }
    if (threadIdx.x % 128 == 0) *tile_ = tile;
    gg::ptx::bar_arrive(meeting_.filled, Meeting::THREADS);
  }
  // [/put]
  // Call it after the last tile.
  __device__ void put_none() const {
    gg::ptx::bar_sync(meeting_.emptied, Meeting::THREADS);
    if (threadIdx.x % 128 == 0) *tile_ = {-1, 0, 0, 0};
    gg::ptx::bar_arrive(meeting_.filled, Meeting::THREADS);
  }

 private:
  Meeting meeting_;
  Tile* tile_;
  uint32_t addr_;
};

// The role of a consumer's storing warp. n: columns of D.
// [store]
template <class C>
__device__ void store_tiles(const CUtensorMap& d_map, bf16* d, const Operands& operands, const Memory& memory,
                            int consumer, int n) {
  const int lane = int(threadIdx.x) % 32;
  const Meeting meeting(consumer);
  const Transform transform(operands.w);
  for (;;) {
    gg::ptx::bar_arrive(meeting.emptied, Meeting::THREADS);
    gg::ptx::bar_sync(meeting.filled, Meeting::THREADS);
    const Tile tile = gg::ptx::uniform(memory.tiles[consumer]);
    if (tile.group < 0) return;
    if (tile.col0 >= n) continue;  // N is a multiple of 64, so D has all 32 columns or none
    unsigned char* box = memory.boxes + consumer * C::STORE_BYTES;
    uint32_t largest = 0;
#pragma unroll 1
    for (int first = 0; first < tile.rows; first += STEP, box += BOX_BYTES) {
      const int rows = min(STEP, tile.rows - first), row0 = tile.row0 + first;
      largest = gg::epilogue::larger(largest, transform.apply(box, rows));
      gg::ptx::fence_proxy_async();
      __syncwarp();  // Y of all lanes is there, for TMA too
      if (rows < STEP) {
        for (int row = lane / 4, chunk = lane % 4; row < rows; row += 8) {
          *reinterpret_cast<uint4*>(d + int64_t(row0 + row) * n + tile.col0 + chunk * 8) =
              *reinterpret_cast<const uint4*>(box + swizzled(row, chunk));
        }
      } else if (gg::ptx::elect()) {
        gg::ptx::tma_store_2d(&d_map, tile.col0, row0, gg::ptx::shared_addr(box));
        gg::ptx::bulk_commit_group();
      }
    }
    largest = __reduce_max_sync(~0u, largest);
    if (gg::ptx::elect()) {
      // As signed integers, magnitudes have the order of their numbers, and -infinity is below all of them.
      atomicMax(reinterpret_cast<int*>(operands.amax) + tile.group, int(largest));
      gg::ptx::bulk_wait_group_read<0>();
    }
    __syncwarp();  // TMA has read all boxes, and lanes the last rows
  }
}
// [/store]

}  // namespace chapter
