// SPDX-License-Identifier: MIT
//
// How a consumer's FP8 elements, 64 columns of a tile of D and of D_col, get to memory. stmatrix
// transposes them on the way to shared memory, two columns' elements together as 16 bits. TMA
// stores boxes of 32 rows from there: groups are multiples of 128 rows, so all boxes are full.

#pragma once

#include "common/kernel/ptx/barrier.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/stmatrix.cuh"
#include "common/kernel/ptx/tma.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "config.cuh"

namespace chapter {

// Who: a whole warpgroup. Each of its 128 threads has an object, and all make the same calls for
// the same tiles. So all have the same next action and come to the same barriers; only held_
// differs. Of each tile all call `begin`, then `take` for every box of D and of D_col, then `leave`.
// Two modes, by BM, the most rows that a tile has:
// - BM up to STORE_ROWS: `begin` waits until shared memory may be overwritten, `take` writes there,
//   and `leave` starts the copies. There are no actions: `proceed` and `complete` do nothing.
// - BM over STORE_ROWS (C::HOLDS_ROWS): none of the three waits or sends. `take` writes the first
//   STORE_ROWS rows to shared memory and holds the others in registers, two rows of two columns in
//   each. `proceed` then sends every tile, also one without held rows, one action at a time; the last
//   action waits. So before a `begin` `complete` must have ended: the tile before has been read.
template <class C>
class BoxStore {
  static constexpr int BM = C::BM;

 public:
  // `shared`: C::STORE_BYTES at a multiple of 1024. `barrier`: a named barrier of this warpgroup's own.
  __device__ BoxStore(const Maps<C>& maps, unsigned char* shared, int barrier)
      : maps_(maps), barrier_(barrier), addr_(gg::ptx::keep(gg::ptx::shared_addr(shared))) {}

  // [begin]
  // Makes room for a tile. Before: `complete`. Guarantees to Quantiser: no thread returns from here
  // before all threads have called `leave` for the tile before. Since then all have met in two
  // bar_syncs: that of `send`, and that of `wait_until_read`, here or in the action LAST_WAIT.
  __device__ void begin() {
    if (!C::HOLDS_ROWS && has_begun_) wait_until_read();  // a block's first tile need not wait
    has_begun_ = true;
  }
  // [/begin]
  // Takes 32 rows of this warp's 16 columns. The box must be known when compiled: it indexes
  // registers, and held_ would be in local memory otherwise. `reg`: as write_box wants them.
  __device__ void take(Output output, int box, const uint32_t (&reg)[4]) {
    if (box < STORE_ROWS / STEP) {
      write_box(output, box, reg);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) held(output, box - STORE_ROWS / STEP)[i] = reg[i];
    }
  }
  // All rows have been taken. Sends them, or, where tiles hold rows, leaves that to `proceed`.
  __device__ void leave(const Tile& tile, int col0) {
    row0_ = tile.row0;
    rows_ = tile.rows;
    col0_ = col0;
    if constexpr (C::HOLDS_ROWS) {
      action_ = SEND_FIRST;  // not at once: `send` has a barrier, and no products are queued now
    } else {
      send(0, rows_);
    }
  }

  // [proceed]
  // Does the next action for the tile that left, during products of the tile after it. At most
  // those of two slices are queued: if all actions came at once, the tensor cores could run dry.
  __device__ void proceed() {
    if constexpr (C::HOLDS_ROWS) {
      if (action_ == DONE) return;
      if (action_ == SEND_FIRST) {
        send(0, min(rows_, STORE_ROWS));
      } else if (action_ == WRITE_HELD) {
        wait_until_read();
#pragma unroll
        for (int box = 0; box < (BM - STORE_ROWS) / STEP; ++box) {
          if (STORE_ROWS + box * STEP < rows_) {  // `take` has filled these registers
#pragma unroll
            for (int output = D; output <= D_COL; ++output) {
              write_box(Output(output), box, held(Output(output), box));
            }
          }
        }
      } else if (action_ == SEND_HELD) {
        send(STORE_ROWS, rows_ - STORE_ROWS);
      } else {  // LAST_WAIT
        wait_until_read();
      }
      action_ = action_ == SEND_FIRST && rows_ <= STORE_ROWS ? LAST_WAIT : action_ - 1;
    }
  }

  // Does all actions that are left, so that `begin` may be called again.
  __device__ void complete() {
    while (action_ != DONE) proceed();
  }
  // [/proceed]

  // After the last tile: sends what is left, and waits until TMA has read. When the block ends, its
  // shared memory may be another's.
  __device__ void finish() {
    complete();
    if (thread() == 0) gg::ptx::bulk_wait_group_read<0>();
  }

 private:
  __device__ static int thread() { return int(threadIdx.x) % 128; }

  // The registers of a held box; box 0 has the rows from STORE_ROWS on.
  __device__ uint32_t (&held(Output output, int box))[4] {
    return reinterpret_cast<uint32_t(&)[4]>(held_[(box * 2 + output) * 4]);
  }

  // [room]
  // Waits until TMA has read all that was sent: all 128 may overwrite it, and warp codes (`begin`).
  __device__ void wait_until_read() {
    if (thread() == 0) gg::ptx::bulk_wait_group_read<0>();
    gg::ptx::bar_sync(barrier_, 128);
  }
  // [/room]

  // Where 16 bytes of a row are, a chunk, counted from the box: TMA's swizzle of 64 bytes moves
  // chunk c of row r to c xor r/2 % 4. It goes by the address: boxes begin at multiples of 512.
  static_assert(D_SWIZZLE == CU_TENSOR_MAP_SWIZZLE_64B && STEP * D_BYTES % 512 == 0);
  __device__ static int swizzled(int row, int chunk) { return row * D_BYTES + (chunk ^ row / 2 % 4) * 16; }

  __device__ uint32_t box_addr(Output output, int box) const {  // in shared memory
    return addr_ + output * C::OUTPUT_BYTES + box * STEP * D_BYTES;
  }

  // Writes 32 rows of this warp's 16 columns to shared memory. As wgmma left the sums, reg[i] is
  // a matrix of 8x8 times 16 bits, each two columns of a row: rows i * 8 and up. A stmatrix
  // takes four of them, and lane l gives the address of row l % 8 of matrix l / 8, whose 16
  // columns are one chunk.
  __device__ void write_box(Output output, int box, const uint32_t (&reg)[4]) {
    static_assert(STEP == 32);  // one stmatrix
    const int lane = thread() % 32, chunk = thread() / 32;
    gg::ptx::stmatrix_x4_trans(box_addr(output, box) + swizzled(lane, chunk), reg);
  }

  // Stores `rows` rows of D and of D_col from shared memory. The first one is the tile's row `first`.
  // Thread 0 starts the copies, for wait_until_read and finish wait in thread 0: a copy group is
  // known to its thread alone. Quantiser's warp codes rely on the bar_sync, too (`begin`).
  __device__ void send(int first, int rows) {
    gg::ptx::fence_proxy_async();
    gg::ptx::bar_sync(barrier_, 128);  // all rows are there, for TMA too
    if (thread() == 0) {
#pragma unroll 1  // short code: each width's do_tile has its copies of `send`
      for (int box = 0; box < rows / STEP; ++box) {
        const int row = row0_ + first + box * STEP;
        gg::ptx::tma_store_2d(&maps_.d, col0_, row, box_addr(D, box));
        gg::ptx::tma_store_2d(&maps_.d_col, col0_, row, box_addr(D_COL, box));
      }
      gg::ptx::bulk_commit_group();
    }
  }

  // A tile's actions count down to DONE. Action 1 is the last and must wait until all has been read:
  // where rows are held, `begin` has no wait of its own. A tile of at most STORE_ROWS rows skips the
  // two of held rows. Where each branch of `proceed` set the next one instead, ptxas spilled.
  static constexpr int SEND_FIRST = 4, WRITE_HELD = 3, SEND_HELD = 2, LAST_WAIT = 1, DONE = 0;
  static_assert(LAST_WAIT == DONE + 1, "the action before DONE waits, and `begin` relies on it");

  const Maps<C>& maps_;  // no copy: TMA reads the kernel's parameter, at its address
  int barrier_;
  const uint32_t addr_;
  // Rows from STORE_ROWS on: 64 columns of D and of D_col among 128 threads, four elements in a
  // register. In registers: it is only indexed by constants, in unrolled loops. Not initialised:
  // `take` fills it up to the tile's width, and `proceed` reads no further.
  uint32_t held_[C::HOLDS_ROWS ? (BM - STORE_ROWS) / 4 : 1];
  // The tile that `leave` took: its first row in D, how many it has, this consumer's first column.
  int row0_ = 0, rows_ = 0, col0_ = 0;
  int action_ = DONE;       // the next one for that tile
  bool has_begun_ = false;  // `begin` was called: where no rows are held, the next one waits for TMA
};

}  // namespace chapter
