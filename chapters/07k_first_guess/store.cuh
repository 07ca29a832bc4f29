// SPDX-License-Identifier: MIT
//
// How a consumer's sums, 64 columns of a tile of D, get to memory. stmatrix transposes them on the way to
// shared memory. TMA stores boxes of 32 rows from there. Rows that fill no box are stored by threads, for a
// box would reach into the next group's rows.

#pragma once

#include "common/ptx/barrier.cuh"
#include "common/ptx/cvt.cuh"
#include "common/ptx/shared.cuh"
#include "common/ptx/stmatrix.cuh"
#include "common/ptx/tma.cuh"
#include "common/ptx/warp.cuh"
#include "config.cuh"

namespace chapter {

// Who: a whole warpgroup. Where tiles have at most HALF rows (BM), each leaves at once. Where they may have
// more, the first HALF rows wait in shared memory and the others in registers, as 16 bits: two rows of a
// column in each.
template <class C, class T>
class Store {
  static constexpr int BM = C::BM;
  static constexpr bool TALL = BM > HALF;

 public:
  // `shared`: C::STORE_BYTES at a multiple of 1024. `barrier`: a named barrier of this warpgroup's own.
  __device__ Store(const CUtensorMap& d_map, T* d, int n, unsigned char* shared, int barrier)
      : d_map_(d_map), d_(d), n_(n), barrier_(barrier), shared_(shared) {}

  // Takes the sums of a tile, whose rows are rounded up to a multiple of STEP. Before: `settle`.
  template <int SUMS>
  __device__ void put(const float (&sums)[SUMS], const Tile& tile, int col0) {
    if (!TALL && stored_) make_room();
    stored_ = true;
#pragma unroll
    for (int box = 0; box * 16 < SUMS; ++box) {
      uint32_t reg[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        reg[i] = gg::ptx::cvt_rn_x2<T>(sums[box * 16 + i * 2], sums[box * 16 + i * 2 + 1]);
      }
      if (box < HALF / STEP) {
        write_box(box, reg);
      } else {
#pragma unroll
        for (int i = 0; i < 8; ++i) second_half_[(box - HALF / STEP) * 8 + i] = reg[i];
      }
    }
    row0_ = tile.row0;
    rows_ = tile.rows;
    col0_ = col0;
    if constexpr (TALL) {
      left_ = SEND_FIRST;
    } else {
      send(0, rows_);
    }
  }

  // [step]
  // Makes one of the steps that a tall tile wants after `put`, while the tensor cores have the next tile: all
  // at once would take longer than a slice's products.
  __device__ void step() {
    if constexpr (TALL) {
      if (left_ == 0) return;
      if (left_ == SEND_FIRST) {
        send(0, min(rows_, HALF));
      } else if (left_ == WRITE_SECOND) {
        make_room();
#pragma unroll
        for (int box = 0; box < (BM - HALF) / STEP; ++box) {
          if (HALF + box * STEP < rows_)
            write_box(box, reinterpret_cast<uint32_t(&)[8]>(second_half_[box * 8]));
        }
      } else if (left_ == SEND_SECOND) {
        send(HALF, rows_ - HALF);
      } else {
        make_room();
      }
      left_ = left_ == SEND_FIRST && rows_ <= HALF ? MAKE_ROOM : left_ - 1;
    }
  }
  // Makes all steps that are left, so that `put` may come again.
  __device__ void settle() {
    while (left_ > 0) step();
  }
  // [/step]
  // Behind the last tile.
  __device__ void finish() {
    settle();
    if (thread() == 0) gg::ptx::bulk_wait_group_read<0>();  // shared memory must be there until then
  }

 private:
  __device__ static int thread() { return int(threadIdx.x) % 128; }

  // Waits until all that was stored from shared memory has been read.
  __device__ void make_room() {
    if (thread() == 0) gg::ptx::bulk_wait_group_read<0>();
    gg::ptx::bar_sync(barrier_, 128);
  }

  // Brings 32 rows of this warp's 16 columns to shared memory. As wgmma left them, registers 0-3 are rows
  // 0-15, 8 rows by 8 columns each, and 4-7 rows 16-31. They land where TMA's swizzle of 128 bytes has them.
  __device__ void write_box(int box, const uint32_t (&reg)[8]) {
    const int lane = thread() % 32, row = lane / 16 * 8 + lane % 8, unit = thread() / 32 * 2 + lane / 8 % 2;
    const uint32_t row_addr = addr_ + (box * STEP + row) * ROW_BYTES + (unit ^ row % 8) * 16;
    gg::ptx::stmatrix_x4_trans(row_addr, {reg[0], reg[1], reg[2], reg[3]});
    gg::ptx::stmatrix_x4_trans(row_addr + 16 * ROW_BYTES, {reg[4], reg[5], reg[6], reg[7]});
  }

  // Stores `rows` rows of D from the beginning of shared memory. The first one is the tile's row `first`.
  __device__ void send(int first, int rows) {
    const int row0 = row0_ + first, boxes = rows / STEP, unit = thread() % 8;  // unit: 16 bytes of a row
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
      if (col0_ + unit * 8 < n_) {
        *reinterpret_cast<uint4*>(d_ + int64_t(row0 + row) * n_ + col0_ + unit * 8) =
            *reinterpret_cast<const uint4*>(shared_ + row * ROW_BYTES + (unit ^ row % 8) * 16);
      }
    }
  }

  // A tall tile's steps, by how many are left.
  static constexpr int SEND_FIRST = 4, WRITE_SECOND = 3, SEND_SECOND = 2, MAKE_ROOM = 1;

  const CUtensorMap& d_map_;
  T* d_;
  int n_, barrier_;
  const unsigned char* shared_;
  const uint32_t addr_ = gg::ptx::keep(gg::ptx::shared_addr(shared_));
  uint32_t second_half_[TALL ? (BM - HALF) / 4 : 1];
  int row0_ = 0, rows_ = 0, col0_ = 0;  // of the tile that leaves
  int left_ = 0;                        // steps that it still wants
  bool stored_ = false;
};

}  // namespace chapter
