// SPDX-License-Identifier: MIT
//
// How a consumer's outputs, 128 columns of a tile of D and of D_col, get to memory. stmatrix
// transposes them on the way to shared memory, and TMA stores boxes of 32 rows from there.

#pragma once

#include "common/kernel/ptx/barrier.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/stmatrix.cuh"
#include "common/kernel/ptx/tma.cuh"
#include "config.cuh"

namespace chapter {

// Who: a whole warpgroup. It has room for a tile of each output. Before a tile's first `take`:
// `wait_until_read`, and then a bar_sync, both in Quantiser's constructor.
template <class C>
class BoxStore {
 public:
  // `shared`: C::STORE_BYTES at a multiple of 1024. `thread`: this one's number in the warpgroup.
  // `barrier`: a named barrier of this warpgroup's own.
  __device__ BoxStore(const Maps<C>& maps, unsigned char* shared, int thread, int barrier)
      : maps_(maps), thread_(thread), barrier_(barrier), addr_(gg::ptx::keep(gg::ptx::shared_addr(shared))) {}

  // [take]
  // Takes 32 rows of this warp's 16 columns in a half of the tile's columns. As wgmma left the sums,
  // reg[i] is a matrix of 8x8 times 16 bits, each two columns of a row: rows i * 8 and up. A stmatrix
  // takes four of them, and lane l gives the address of row l % 8 of matrix l / 8, whose 16
  // columns are one chunk.
  __device__ void take(Output output, int box, int half, const uint32_t (&reg)[4]) {
    static_assert(STEP == 32 && WARP_COLUMNS == 16 && HALF == 4 * WARP_COLUMNS);  // one stmatrix
    const int lane = thread_ % 32, warp = thread_ / 32;
    gg::ptx::stmatrix_x4_trans(box_addr(output, box) + swizzled(lane, half * 4 + warp), reg);
  }
  // [/take]

  // Stores all rows of an output. Before: this thread has taken its part of it. Guarantees: no thread
  // returns before all 128 have called it. Quantiser's warp codes rely on that too.
  // [send]
  __device__ void send(Output output, const Tile& tile) {
    gg::ptx::fence_proxy_async();
    gg::ptx::bar_sync(barrier_, 128);  // all rows are there, for TMA too
    if (thread_ == 0) {
#pragma unroll 1
      for (int box = 0; box < tile.rows / STEP; ++box) {
        gg::ptx::tma_store_2d(output == D ? &maps_.d : &maps_.d_col, tile.col0, tile.row0 + box * STEP,
                              box_addr(output, box));
      }
      gg::ptx::bulk_commit_group();
    }
  }
  // [/send]
  // Who: all threads of the consumer. Thread 0 waits until TMA has read all that was sent: no other
  // thread can, since none sends. So a bar_sync must follow before the others `take`.
  __device__ static void wait_until_read() {
    if (threadIdx.x % 128 == 0) gg::ptx::bulk_wait_group_read<0>();
  }

 private:
  // Where 16 bytes of a row are, a chunk: TMA's swizzle of 128 bytes moves chunk c of row r to
  // c xor r % 8, with r counted from a multiple of 1024 bytes, as each box begins at one.
  static_assert(D_SWIZZLE == CU_TENSOR_MAP_SWIZZLE_128B && C::D_BYTES == 128 &&
                STEP * C::D_BYTES % 1024 == 0);
  __device__ static int swizzled(int row, int chunk) { return row * C::D_BYTES + (chunk ^ row % 8) * 16; }
  __device__ uint32_t box_addr(Output output, int box) const {  // in shared memory
    return addr_ + output * C::OUTPUT_BYTES + box * STEP * C::D_BYTES;
  }

  const Maps<C>& maps_;  // no copy: TMA reads the kernel's parameter, at its address
  int thread_, barrier_;
  const uint32_t addr_;
};

}  // namespace chapter
