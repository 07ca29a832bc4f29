// SPDX-License-Identifier: MIT
//
// How a consumer's sums, 64 columns of a tile of D, get to memory. stmatrix transposes them on the way to
// shared memory. TMA stores boxes of 32 rows from there. Rows that fill no box are stored by threads, for a
// box would reach into the next group's rows.

#pragma once

#include "common/kernel/ptx/barrier.cuh"
#include "common/kernel/ptx/cvt.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/stmatrix.cuh"
#include "common/kernel/ptx/tma.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "config.cuh"

namespace chapter {

// Who: a whole warpgroup. Each of its 128 threads has an object, and all make the same calls for
// the same tiles. So all have the same next action and come to the same barriers; only held_
// differs.
// Two modes, by BM, the most rows that a tile has:
// - BM up to STORE_ROWS: `put` waits until shared memory may be overwritten, writes the whole tile
//   there and starts its copies. There are no actions: `proceed` and `complete` do nothing.
// - BM over STORE_ROWS (C::HOLDS_ROWS): `put` neither waits nor sends. It writes the tile's first
//   STORE_ROWS rows to shared memory and holds the others in registers, as 16 bits. `proceed` then
//   sends every tile, also one that has no held rows, one action at a time; the last action waits.
//   So before a `put` `complete` must have ended: all of the tile before has been read.
template <class C, class T>
class Store {
  static constexpr int BM = C::BM;
  static_assert(sizeof(T) == 2 && ROW_BYTES == 64 * sizeof(T));  // launch.cuh's boxes of D

  // [actions]
  // A tile's actions count down to DONE. Action 1 is the last and must wait until all has been read:
  // where rows are held, `put` overwrites shared memory without a wait of its own.
  static constexpr int SEND_FIRST = 4, WRITE_HELD = 3, SEND_HELD = 2, LAST_WAIT = 1, DONE = 0;
  static_assert(LAST_WAIT == DONE + 1, "the action before DONE waits, and `put` relies on it");

  // A tile of at most STORE_ROWS rows holds none, and skips the two actions of held rows.
  __device__ int action_after(int action) const {
    return action == SEND_FIRST && rows_ <= STORE_ROWS ? LAST_WAIT : action - 1;
  }
  // [/actions]

 public:
  // `shared`: C::STORE_BYTES at a multiple of 1024. `barrier`: a named barrier of this warpgroup's own.
  __device__ Store(const CUtensorMap& d_map, T* d, int n, unsigned char* shared, int barrier)
      : d_map_(d_map), d_(d), n_(n), barrier_(barrier), shared_(shared) {}

  // [put]
  // Takes the sums of all rows of a tile's width; the first tile.rows of them will be stored.
  // Before: `complete`. After: the caller may overwrite `sums` and `tile`.
  template <int SUMS>
  __device__ void put(const float (&sums)[SUMS], const Tile& tile, int col0) {
    static_assert(SUMS % 16 == 0 && SUMS <= BM / 2);  // whole boxes, and held_ has room for them
    if (!C::HOLDS_ROWS && has_sent_) wait_until_read();  // where rows are held, LAST_WAIT has waited
    has_sent_ = true;
#pragma unroll
    for (int box = 0; box * 16 < SUMS; ++box) {  // this thread's 16 sums of 32 rows
      uint32_t reg[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        reg[i] = gg::ptx::cvt_rn_x2<T>(sums[box * 16 + i * 2], sums[box * 16 + i * 2 + 1]);
      }
      if (box < STORE_ROWS / STEP) {
        write_box(box, reg);
      } else {
#pragma unroll
        for (int i = 0; i < 8; ++i) held_[(box - STORE_ROWS / STEP) * 8 + i] = reg[i];
      }
    }
    row0_ = tile.row0;
    rows_ = tile.rows;
    col0_ = col0;
    if constexpr (C::HOLDS_ROWS) {
      action_ = SEND_FIRST;  // not at once: `send` has a barrier, and no products are queued now
    } else {
      send(0, rows_);
    }
  }
  // [/put]

  // [proceed]
  // Does the next action for the tile that `put` took, during products of the tile after it. At most
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
          if (STORE_ROWS + box * STEP < rows_)  // `put` has filled these registers
            write_box(box, reinterpret_cast<uint32_t(&)[8]>(held_[box * 8]));
        }
      } else if (action_ == SEND_HELD) {
        send(STORE_ROWS, rows_ - STORE_ROWS);
      } else {  // LAST_WAIT
        wait_until_read();
      }
      action_ = action_after(action_);  // here alone: assigned in each branch, ptxas spilled registers
    }
  }

  // Does all actions that are left, so that `put` may be called.
  __device__ void complete() {
    while (action_ != DONE) proceed();
  }
  // [/proceed]

  // After the last `put`: sends what is left, and waits until TMA has read. When the block ends, its
  // shared memory may be another's.
  __device__ void finish() {
    complete();
    if (thread() == 0) gg::ptx::bulk_wait_group_read<0>();  // where rows are held, LAST_WAIT has waited
  }

 private:
  __device__ static int thread() { return int(threadIdx.x) % 128; }

  // [room]
  // Waits until all that was sent has been read, by TMA and by threads: all 128 may overwrite it.
  __device__ void wait_until_read() {
    if (thread() == 0) gg::ptx::bulk_wait_group_read<0>();
    gg::ptx::bar_sync(barrier_, 128);
  }
  // [/room]

  // [write]
  // Where 16 bytes of a row are, a chunk: TMA's swizzle of 128 bytes moves chunk c of row r to c xor r % 8.
  __device__ static int swizzled(int row, int chunk) { return row * ROW_BYTES + (chunk ^ row % 8) * 16; }

  // Writes this warp's quarter of a box to shared memory: 32 rows of its 16 columns. As wgmma left
  // the sums, the 32 lanes' reg[i] are an 8x8 matrix: 8 rows from i / 2 * 8 on, 8 columns from
  // i % 2 * 8 on. A stmatrix takes four matrices, and lane l gives the address of row l % 8 of
  // matrix l / 8, whose 8 columns are one chunk.
  __device__ void write_box(int box, const uint32_t (&reg)[8]) {
    static_assert(STEP == 32);  // two stmatrix of 16 rows
    const int lane = thread() % 32, row = lane / 16 * 8 + lane % 8, chunk = thread() / 32 * 2 + lane / 8 % 2;
    const uint32_t row_addr = addr_ + box * STEP * ROW_BYTES + swizzled(row, chunk);
    gg::ptx::stmatrix_x4_trans(row_addr, {reg[0], reg[1], reg[2], reg[3]});
    gg::ptx::stmatrix_x4_trans(row_addr + 16 * ROW_BYTES, {reg[4], reg[5], reg[6], reg[7]});
  }
  // [/write]

  // [send]
  // Stores the first `rows` rows that shared memory has: whole boxes by TMA, the others by threads.
  // `row_in_tile`: which row of the tile shared memory begins with, 0 or STORE_ROWS. Thread 0
  // starts the copies, for wait_until_read and finish wait in thread 0: a copy group is known to
  // its thread alone.
  __device__ void send(int row_in_tile, int rows) {
    const int row0 = row0_ + row_in_tile, boxes = rows / STEP, chunk = thread() % 8;
    gg::ptx::fence_proxy_async();
    gg::ptx::bar_sync(barrier_, 128);  // all rows are there, for TMA too
    if (thread() == 0) {
#pragma unroll 1  // short code: each width's do_tile has its copies of `send`
      for (int box = 0; box < boxes; ++box) {
        gg::ptx::tma_store_2d(&d_map_, col0_, row0 + box * STEP, addr_ + box * STEP * ROW_BYTES);
      }
      gg::ptx::bulk_commit_group();
    }
#pragma unroll 1
    for (int row = boxes * STEP + thread() / 8; row < rows; row += 16) {
      if (col0_ + chunk * 8 < n_) {
        *reinterpret_cast<uint4*>(d_ + int64_t(row0 + row) * n_ + col0_ + chunk * 8) =
            *reinterpret_cast<const uint4*>(shared_ + swizzled(row, chunk));
      }
    }
  }
  // [/send]

  const CUtensorMap& d_map_;  // no copy: TMA reads the kernel's parameter, at its address
  T* d_;
  int n_, barrier_;
  const unsigned char* shared_;  // as threads read it; addr_: as stmatrix and TMA take it
  const uint32_t addr_ = gg::ptx::keep(gg::ptx::shared_addr(shared_));  // `keep` for speed alone
  // Rows from STORE_ROWS on: 64 columns among 128 threads, two sums in a register. In registers: it
  // is only indexed by constants, in unrolled loops. Not initialised: `put` fills it up to the
  // tile's width, and `proceed` reads no further.
  uint32_t held_[C::HOLDS_ROWS ? (BM - STORE_ROWS) * 64 / 128 / 2 : 1];
  // The tile that `put` took: its first row in D, how many it has, this consumer's first column.
  int row0_ = 0, rows_ = 0, col0_ = 0;
  int action_ = DONE;      // the next one for that tile
  bool has_sent_ = false;  // `put` has taken a tile: where no rows are held, the next `put` waits for it
};

}  // namespace chapter
