// SPDX-License-Identifier: MIT
//
// How a consumer's outputs, 32 columns of a tile of D, get to memory. stmatrix transposes them on the way to
// shared memory. TMA stores boxes of 32 rows from there. Rows that fill no box are stored by threads, for a
// box would reach into the next group's rows. Rows and columns here are D's: tokens and output columns.

#pragma once

#include "common/kernel/ptx/barrier.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/stmatrix.cuh"
#include "common/kernel/ptx/tma.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "config.cuh"

namespace chapter {

// Who: a whole warpgroup. Where BM is at most STORE_ROWS, `put` sends each tile at once. Where tiles may have
// more rows (C::HOLDS_ROWS), `put` writes the first STORE_ROWS to shared memory and holds the others in
// registers, as 16 bits: two rows of a column in each. `proceed` sends every tile then, one action at a time.
template <class C>
class BoxStore {
  static constexpr int BM = C::BM;

 public:
  // `shared`: C::STORE_BYTES at a multiple of 1024. `barrier`: a named barrier of this warpgroup's own.
  // n: columns of D.
  __device__ BoxStore(const CUtensorMap& d_map, bf16* d, int n, unsigned char* shared, int barrier)
      : d_map_(d_map), d_(d), n_(n), barrier_(barrier), shared_(shared) {}

  // [put]
  // Takes the outputs of a tile's rows, rounded up to a multiple of STEP. Only tile.rows rows are stored.
  // col0: this warpgroup's first column of D. tile.col0 is no substitute: it counts columns of B, and
  // is the whole block's.
  // Before: `complete`.
  template <int WORDS>
  __device__ void put(const uint32_t (&words)[WORDS], const Tile& tile, int col0) {
    if (!C::HOLDS_ROWS && has_sent_) wait_until_read();  // a block's first tile need not wait
    has_sent_ = true;
#pragma unroll
    for (int box = 0; box * 4 < WORDS; ++box) {
      const auto& reg = reinterpret_cast<const uint32_t(&)[4]>(words[box * 4]);
      if (box < STORE_ROWS / STEP) {
        write_box(box, reg);
      } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) held_[(box - STORE_ROWS / STEP) * 4 + i] = reg[i];
      }
    }
    row0_ = tile.row0;
    rows_ = tile.rows;
    col0_ = col0;
    if constexpr (C::HOLDS_ROWS) {
      action_ = SEND_FIRST;
    } else {
      send(0, rows_);
    }
  }
  // [/put]

  // [proceed]
  // Does the next action for the tile that `put` took, during products of the tile after it. Only the
  // products of two slices are queued: if all actions came at once, the tensor cores would run dry.
  __device__ void proceed() {
    if constexpr (C::HOLDS_ROWS) {
      if (action_ == DONE) return;
      if (action_ == SEND_FIRST) {
        send(0, min(rows_, STORE_ROWS));
      } else if (action_ == WRITE_HELD) {
        wait_until_read();
#pragma unroll
        for (int box = 0; box < (BM - STORE_ROWS) / STEP; ++box) {
          if (STORE_ROWS + box * STEP < rows_)
            write_box(box, reinterpret_cast<uint32_t(&)[4]>(held_[box * 4]));
        }
      } else if (action_ == SEND_HELD) {
        send(STORE_ROWS, rows_ - STORE_ROWS);
      } else {  // LAST_WAIT
        wait_until_read();
      }
      action_ = action_ == SEND_FIRST && rows_ <= STORE_ROWS ? LAST_WAIT : action_ - 1;
    }
  }
  // Does all actions that are left, so that `put` may be called again.
  __device__ void complete() {
    while (action_ != DONE) proceed();
  }
  // [/proceed]
  // Call it after the last tile.
  __device__ void finish() {
    complete();
    if (thread() == 0) gg::ptx::bulk_wait_group_read<0>();  // shared memory must be there until then
  }

 private:
  __device__ static int thread() { return int(threadIdx.x) % 128; }

  // Waits until all that was stored from shared memory has been read.
  __device__ void wait_until_read() {
    if (thread() == 0) gg::ptx::bulk_wait_group_read<0>();
    gg::ptx::bar_sync(barrier_, 128);
  }

  // [write]
  // Where 16 bytes of a row are, a chunk: TMA's swizzle of 64 bytes moves chunk c of row r to c xor r/2 % 4.
  // D's map (launch.cuh) must have the same swizzle. No assertion compares the two.
  __device__ static int swizzled(int row, int chunk) { return row * D_BYTES + (chunk ^ row / 2 % 4) * 16; }

  // Writes 32 rows of this warp's 8 columns to shared memory: chunk w is warp w's, by the order of
  // B's map (launch.cuh). As wgmma left the sums, reg[i] is an 8x8 matrix: rows i * 8 and up. A
  // stmatrix takes four of them, and lane l gives the address of row l % 8 of matrix l / 8.
  __device__ void write_box(int box, const uint32_t (&reg)[4]) {
    static_assert(STEP == 32);  // one stmatrix
    const int lane = thread() % 32, chunk = thread() / 32;
    gg::ptx::stmatrix_x4_trans(addr_ + box * STEP * D_BYTES + swizzled(lane, chunk), reg);
  }
  // [/write]

  // [send]
  // Stores `rows` rows of D from the beginning of shared memory. The first one is the tile's row `first`.
  // Threads store what fills no box: 4 of them the D_BYTES / 16 = 4 chunks of a row, 128 of them 32 rows.
  __device__ void send(int first, int rows) {
    const int row0 = row0_ + first, boxes = rows / STEP, chunk = thread() % 4;
    gg::ptx::fence_proxy_async();
    gg::ptx::bar_sync(barrier_, 128);  // all rows are there, for TMA too
    if (thread() == 0) {
#pragma unroll 1
      for (int box = 0; box < boxes; ++box) {
        gg::ptx::tma_store_2d(&d_map_, col0_, row0 + box * STEP, addr_ + box * STEP * D_BYTES);
      }
      gg::ptx::bulk_commit_group();
    }
#pragma unroll 1
    for (int row = boxes * STEP + thread() / 4; row < rows; row += 32) {
      if (col0_ + chunk * 8 < n_) {
        *reinterpret_cast<uint4*>(d_ + int64_t(row0 + row) * n_ + col0_ + chunk * 8) =
            *reinterpret_cast<const uint4*>(shared_ + swizzled(row, chunk));
      }
    }
  }
  // [/send]

  // Actions count down to DONE. A tile of at most STORE_ROWS rows skips the two of held rows. Where each
  // branch of `proceed` set the next one instead, ptxas spilled.
  static constexpr int SEND_FIRST = 4, WRITE_HELD = 3, SEND_HELD = 2, LAST_WAIT = 1, DONE = 0;

  const CUtensorMap& d_map_;
  bf16* d_;
  int n_, barrier_;
  const unsigned char* shared_;
  const uint32_t addr_ = gg::ptx::keep(gg::ptx::shared_addr(shared_));
  // Rows from STORE_ROWS on. In registers: it is only indexed by constants, in unrolled loops.
  uint32_t held_[C::HOLDS_ROWS ? (BM - STORE_ROWS) / 8 : 1];
  int row0_ = 0, rows_ = 0, col0_ = 0;  // of the tile that leaves
  int action_ = DONE;                   // its next action
  bool has_sent_ = false;
};

}  // namespace chapter
