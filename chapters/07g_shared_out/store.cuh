// SPDX-License-Identifier: MIT
//
// How a warpgroup's sums, 64 columns of a tile of D, get to memory. stmatrix turns them on the
// way to shared memory. TMA copies boxes of 32 rows from there. Rows that are no whole box go by hand: a box
// would reach into the next group's rows.

#pragma once

#include "common/ptx/barrier.cuh"
#include "common/ptx/cvt.cuh"
#include "common/ptx/shared.cuh"
#include "common/ptx/stmatrix.cuh"
#include "common/ptx/tma.cuh"
#include "common/ptx/warp.cuh"
#include "config.cuh"

namespace chapter {

// For a whole warpgroup. A tile of up to HALF rows leaves at once. Where tiles may have more, the first half
// waits in shared memory and the other one in registers, packed in half as many.
template <class D, int BM>
class Store {
  static constexpr bool TALL = BM > HALF;

 public:
  // `shared`: HALF rows of 128 bytes, or BM if that is less, at a multiple of 1024. `barrier`: a named
  // barrier of this warpgroup's own.
  __device__ Store(const CUtensorMap* d_map, D* d, int n, unsigned char* shared, int barrier)
      : d_map_(d_map), d_(d), n_(n), barrier_(barrier), shared_(shared) {}

  // The sums of a tile's rows, rounded up to a multiple of 32.
  template <int SUMS>
  __device__ void put(const float (&sums)[SUMS], const Tile& tile, int col0) {
    if (!TALL && stored_) make_room();  // there is, the first time
    stored_ = true;
#pragma unroll
    for (int box = 0; box * 16 < SUMS; ++box) {
      uint32_t reg[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        reg[i] = gg::ptx::cvt_rn_x2<D>(sums[box * 16 + i * 2], sums[box * 16 + i * 2 + 1]);
      }
      if (box < HALF / STEP) {
        turn(box, reg);
      } else {
#pragma unroll
        for (int i = 0; i < 8; ++i) packed_[(box - HALF / STEP) * 8 + i] = reg[i];
      }
    }
    row0_ = tile.row0, rows_ = tile.rows, col0_ = col0;
    if constexpr (TALL) {
      left_ = 4;
    } else {
      send(0, rows_);
    }
  }

  // Does one of the four things that a stored tile still wants, if any is left, while the tensor cores have
  // the next tile. All at once would take longer than a slice's products.
  __device__ void step() {
    if (left_ > 0) advance<4, 1>();
  }
  // Does what the steps have left, of which at least one was made. Then `put` may come again.
  __device__ void settle() {
    while (left_ > 0) advance<3, 1>();
  }
  __device__ void finish() {
    while (left_ > 1) advance<4, 2>();
    if (thread() == 0) gg::ptx::bulk_wait_group_read<0>();  // shared memory must be there until then
  }

 private:
  __device__ static int thread() { return int(threadIdx.x) % 128; }

  __device__ void make_room() {
    if (thread() == 0) gg::ptx::bulk_wait_group_read<0>();
    gg::ptx::bar_sync(barrier_, 128);  // what was stored from here before has been read
  }

  template <int MOST, int LEAST>  // so much is left: the code of the rest is not there
  __device__ void advance() {
    if constexpr (TALL) {
      if (MOST == 4 && left_ == 4) {
        send(0, min(rows_, HALF));
        if (rows_ <= HALF) left_ = 2;  // there is no second half
      } else if (left_ == 3) {
        make_room();
#pragma unroll
        for (int box = 0; box < (BM - HALF) / STEP; ++box) {
          if (HALF + box * STEP < rows_) turn(box, reinterpret_cast<uint32_t(&)[8]>(packed_[box * 8]));
        }
      } else if (LEAST == 2 || left_ == 2) {
        send(HALF, rows_ - HALF);
      } else {
        make_room();  // for the next tile's first half
      }
      --left_;
    }
  }

  // 32 rows of this warp's 16 columns, as wgmma left them: registers 0-3 are rows 0-15, 8 rows by 8 columns
  // each, 4-7 rows 16-31. They land where TMA's swizzle of 128 bytes wants them.
  __device__ void turn(int box, const uint32_t (&reg)[8]) {
    const int lane = thread() % 32, row = lane / 16 * 8 + lane % 8, unit = thread() / 32 * 2 + lane / 8 % 2;
    const uint32_t row_addr = addr_ + (box * STEP + row) * ROW_BYTES + (unit ^ row % 8) * 16;
    gg::ptx::stmatrix_x4_trans(row_addr, {reg[0], reg[1], reg[2], reg[3]});
    gg::ptx::stmatrix_x4_trans(row_addr + 16 * ROW_BYTES, {reg[4], reg[5], reg[6], reg[7]});
  }

  __device__ void send(int first, int rows) {  // of the tile; from the beginning of shared memory
    const int row0 = row0_ + first, boxes = rows / STEP, unit = thread() % 8;  // unit: 16 bytes of a row
    gg::ptx::fence_proxy_async();
    gg::ptx::bar_sync(barrier_, 128);  // all rows are there, for TMA too
    if (thread() == 0) {
#pragma unroll 1
      for (int box = 0; box < boxes; ++box) {
        gg::ptx::tma_store_2d(d_map_, col0_, row0 + box * STEP, addr_ + box * STEP * ROW_BYTES);
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

  const CUtensorMap* d_map_;
  D* d_;
  int n_, barrier_;
  const unsigned char* shared_;
  const uint32_t addr_ = gg::ptx::keep(gg::ptx::shared_addr(shared_));
  uint32_t packed_[TALL ? (BM - HALF) / 4 : 1];  // two rows of a column in a register
  int row0_ = 0, rows_ = 0, col0_ = 0, left_ = 0, stored_ = false;
};

}  // namespace chapter
