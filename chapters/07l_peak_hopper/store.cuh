// SPDX-License-Identifier: MIT
//
// How a consumer's sums, 64 columns of a tile of D, get to memory. stmatrix transposes them on the way to
// shared memory. TMA stores boxes of 32 rows from there. Rows that fill no box are stored by threads, for a
// box would reach into the next group's rows.

#pragma once

#include <type_traits>

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
// Where BM is at most STORE_ROWS, `put` sends each tile at once. Where tiles may have more rows
// (C::HOLDS_ROWS), `put` writes the first STORE_ROWS to shared memory and holds the others in
// registers, as 16 bits: two rows of a column in each. Then `proceed` sends every tile, also one
// that has no held rows, one action at a time.
template <class C, class T>
class BoxStore {
  static constexpr int BM = C::BM;
  static_assert(sizeof(T) == 2 && ROW_BYTES == 64 * sizeof(T));  // launch.cuh's boxes of D

 public:
  // `shared`: C::STORE_BYTES at a multiple of 1024. `barrier`: a named barrier of this warpgroup's own.
  __device__ BoxStore(const CUtensorMap& d_map, T* d, int n, unsigned char* shared, int barrier)
      : d_map_(d_map), d_(d), n_(n), barrier_(barrier), shared_(shared) {}

  // [put]
  // Takes the sums of a tile's rows, rounded up to a multiple of STEP. Only tile.rows rows are stored.
  // Before: `complete`.
  template <int SUMS>
  __device__ void put(const float (&sums)[SUMS], const Tile& tile, int col0) {
    if (!C::HOLDS_ROWS && stored_) make_room();  // a block's first tile need not wait
    stored_ = true;
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
      send(0, rows_);  // at once: to ask for an action in each slice would cost these tiles more
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
        make_room();
#pragma unroll
        for (int box = 0; box < (BM - STORE_ROWS) / STEP; ++box) {
          if (STORE_ROWS + box * STEP < rows_)  // `put` has filled these registers
            write_box(box, reinterpret_cast<uint32_t(&)[8]>(held_[box * 8]));
        }
      } else if (action_ == SEND_HELD) {
        send(STORE_ROWS, rows_ - STORE_ROWS);
      } else {  // MAKE_ROOM
        make_room();
      }
      action_ = action_ == SEND_FIRST && rows_ <= STORE_ROWS ? MAKE_ROOM : action_ - 1;
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

  // [room]
  // Waits until all that was stored from shared memory has been read.
  __device__ void make_room() {
    if (thread() == 0) gg::ptx::bulk_wait_group_read<0>();
    gg::ptx::bar_sync(barrier_, 128);
  }
  // [/room]

  // [write]
  // Where 16 bytes of a row are, a chunk: TMA's swizzle of 128 bytes moves chunk c of row r to c xor r % 8.
  __device__ static int swizzled(int row, int chunk) { return row * ROW_BYTES + (chunk ^ row % 8) * 16; }

  // Writes this warp's quarter of a box to shared memory: 32 rows of its 16 columns. As wgmma left
  // the sums, reg[i] is an 8x8 matrix: rows i / 2 * 8 and up, columns i % 2 * 8 and up. A stmatrix
  // takes four of them, and lane l gives the address of row l % 8 of matrix l / 8, whose 8 columns
  // are one chunk.
  __device__ void write_box(int box, const uint32_t (&reg)[8]) {
    static_assert(STEP == 32);  // two stmatrix of 16 rows
    const int lane = thread() % 32, row = lane / 16 * 8 + lane % 8, chunk = thread() / 32 * 2 + lane / 8 % 2;
    const uint32_t row_addr = addr_ + box * STEP * ROW_BYTES + swizzled(row, chunk);
    gg::ptx::stmatrix_x4_trans(row_addr, {reg[0], reg[1], reg[2], reg[3]});
    gg::ptx::stmatrix_x4_trans(row_addr + 16 * ROW_BYTES, {reg[4], reg[5], reg[6], reg[7]});
  }
  // [/write]

  // [send]
  // Stores `rows` rows of D from the beginning of shared memory: whole boxes by TMA, the others by
  // threads. The first one is the tile's row `first`. Thread 0 starts the copies, for make_room and
  // finish wait in thread 0: a copy group is known to its thread alone.
  __device__ void send(int first, int rows) {
    const int row0 = row0_ + first, boxes = rows / STEP, chunk = thread() % 8;
    gg::ptx::fence_proxy_async();
    gg::ptx::bar_sync(barrier_, 128);  // all rows are there, for TMA too
    if (thread() == 0) {
#pragma unroll 1
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

  // Actions count down to DONE. A tile of at most STORE_ROWS rows skips the two of held rows. One
  // assignment sets the next action: with one in each branch of `proceed` ptxas spilled registers,
  // which ends the build.
  static constexpr int SEND_FIRST = 4, WRITE_HELD = 3, SEND_HELD = 2, MAKE_ROOM = 1, DONE = 0;

  const CUtensorMap& d_map_;
  T* d_;
  int n_, barrier_;
  const unsigned char* shared_;
  const uint32_t addr_ = gg::ptx::keep(gg::ptx::shared_addr(shared_));
  // Rows from STORE_ROWS on. In registers: it is only indexed by constants, in unrolled loops. Not
  // initialised: `put` fills it up to the tile's width, and `proceed` reads no further.
  uint32_t held_[C::HOLDS_ROWS ? (BM - STORE_ROWS) / 4 : 1];
  int row0_ = 0, rows_ = 0, col0_ = 0;  // of the tile that leaves
  int action_ = DONE;                   // its next action
  bool stored_ = false;
};

// The same for D in f32, which no box would speed up: eight neighbours of a row are a sector already. Each
// thread stores its own sums, at once.
template <class C>
class DirectStore {
 public:
  __device__ DirectStore(const CUtensorMap&, float* d, int n, unsigned char*, int) : d_(d), n_(n) {}

  template <int SUMS>
  __device__ void put(const float (&sums)[SUMS], const Tile& tile, int col0) {
    const int thread = int(threadIdx.x) % 128;
    const int row0 = thread % 4 * 2, col = col0 + thread / 32 * 16 + thread % 32 / 4;
    float* const to = d_ + int64_t(tile.row0 + row0) * n_ + col;
#pragma unroll
    for (int i = 0; i < SUMS; ++i) {
      const int r = i / 4 * 8 + i % 2, c = i / 2 % 2 * 8;
      if (row0 + r < tile.rows && col + c < n_) to[int64_t(r) * n_ + c] = sums[i];
    }
  }
  __device__ void proceed() {}
  __device__ void complete() {}
  __device__ void finish() {}

 private:
  float* d_;
  int n_;
};

template <class C, class D>
using Store = std::conditional_t<sizeof(D) == 4, DirectStore<C>, BoxStore<C, D>>;

}  // namespace chapter
