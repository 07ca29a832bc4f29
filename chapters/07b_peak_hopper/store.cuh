// SPDX-License-Identifier: MIT
//
// Chapter 07b: how a warpgroup's sums, 64 columns of a tile of D, get to memory. The tensor cores made them
// transposed: a thread has two neighbours of a column. stmatrix turns 8x8 of them on the way to shared
// memory, TMA copies boxes of 32 rows from there, and rows that are no whole box go by hand: a box would
// reach into the next group's rows.

#pragma once

#include <algorithm>
#include <type_traits>

#include "common/ptx/barrier.cuh"
#include "common/ptx/shared.cuh"
#include "common/ptx/stmatrix.cuh"
#include "common/ptx/tma.cuh"
#include "common/ptx/warp.cuh"
#include "common/types.cuh"
#include "schedule.cuh"

namespace chapter {

constexpr int CHUNK = 32;  // rows of a box of D
constexpr int HALF = 128;  // rows that a warpgroup's part of shared memory holds

template <class D>
__device__ uint32_t pack(float low, float high) {
  uint32_t both;
  if constexpr (std::is_same_v<D, bf16>) {
    const auto pair = __floats2bfloat162_rn(low, high);
    memcpy(&both, &pair, 4);
  } else {
    const auto pair = __floats2half2_rn(low, high);
    memcpy(&both, &pair, 4);
  }
  return both;
}

// For a whole warpgroup. D 16 bits wide.
template <class D, int BM>
class Store {
  static constexpr bool TALL = BM > HALF;

 public:
  // `shared`: HALF rows of 128 bytes, or BM if that is less, at a multiple of 1024. `barrier`: of its own.
  // `policy`: of D, in the L2.
  __device__ Store(const CUtensorMap* d_map, D* d, int n, unsigned char* shared, int barrier, uint64_t policy)
      : d_map_(d_map),
        d_(d),
        n_(n),
        shared_(shared),
        addr_(gg::ptx::keep(gg::ptx::shared_addr(shared))),
        barrier_(barrier),
        policy_(policy) {}

  // The sums of a tile's rows, with some more to a multiple of 16. A tile of up to 128 rows leaves at once.
  // Of a taller one the first half is in shared memory then, the other one in registers, packed in half as
  // many; it leaves by `step` or `flush`. Before the next one: `settle`.
  template <int SUMS>
  __device__ void first(const float (&sums)[SUMS], const Tile& tile, int col0) {
    if (!TALL && stored_) make_room();  // there is, the first time
    stored_ = true;
#pragma unroll
    for (int chunk = 0; chunk * 16 < SUMS; ++chunk) {
      uint32_t reg[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int sum = chunk * 16 + i * 2;
        reg[i] = sum < SUMS ? pack<D>(sums[sum], sums[sum + 1]) : 0;
      }
      if (chunk < HALF / CHUNK) {
        put(chunk, reg);
      } else {
#pragma unroll
        for (int i = 0; i < 8; ++i) packed_[(chunk - HALF / CHUNK) * 8 + i] = reg[i];
      }
    }
    row0_ = tile.row0, rows_ = tile.rows, col0_ = col0;
    if constexpr (TALL) {
      left_ = 4;
    } else {
      send(0, rows_);
    }
  }

  // One of the four things that are left to do for a tall tile, if any is: meant for the time in which the
  // tensor cores have the next one. All at once would take longer than a slice's products.
  __device__ void step() {
    if (left_ > 0) advance<4, 1>();
  }
  // What steps have left of that; there was one at least.
  __device__ void settle() {
    while (left_ > 0) advance<3, 1>();
  }
  // To memory at once.
  __device__ void flush() {
    while (left_ > 1) advance<4, 2>();
  }
  __device__ void finish() {
    flush();
    if (thread() == 0) gg::ptx::bulk_wait_group_read<0>();  // shared memory must be there until then
  }

 private:
  __device__ static int thread() { return int(threadIdx.x) % 128; }
  __device__ static int lane() { return int(threadIdx.x) % 32; }
  __device__ static int warp() { return thread() / 32; }

  __device__ void make_room() {
    if (thread() == 0) gg::ptx::bulk_wait_group_read<0>();
    gg::ptx::bar_sync(barrier_, 128);  // what was stored from here before has been read
  }

  // Where MOST to LEAST are left: the code of the others is not there.
  template <int MOST, int LEAST>
  __device__ void advance() {
    if constexpr (TALL) {
      if (MOST == 4 && left_ == 4) {
        send(0, min(rows_, HALF));
        if (rows_ <= HALF) left_ = 2;  // there is no second half
      } else if (left_ == 3) {
        make_room();
#pragma unroll
        for (int chunk = 0; chunk < (BM - HALF) / CHUNK; ++chunk) {
          if (HALF + chunk * CHUNK < rows_) put(chunk, reinterpret_cast<uint32_t(&)[8]>(packed_[chunk * 8]));
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
  // each, 4-7 rows 16-31.
  __device__ void put(int chunk, const uint32_t (&reg)[8]) {
    const int row = lane() / 16 * 8 + lane() % 8, unit = warp() * 2 + lane() / 8 % 2;
    const uint32_t row_addr = addr_ + (chunk * CHUNK + row) * ROW_BYTES + (unit ^ row % 8) * 16;
    gg::ptx::stmatrix_x4_trans(row_addr, {reg[0], reg[1], reg[2], reg[3]});
    gg::ptx::stmatrix_x4_trans(row_addr + 16 * ROW_BYTES, {reg[4], reg[5], reg[6], reg[7]});
  }

  __device__ void send(int first, int rows) {  // of the tile; from the beginning of shared memory
    const int row0 = row0_ + first;
    const int boxes = rows / CHUNK;
    gg::ptx::fence_proxy_async();
    gg::ptx::bar_sync(barrier_, 128);  // all rows are there, for TMA too
    if (thread() == 0) {
#pragma unroll 1
      for (int box = 0; box < boxes; ++box) {
        gg::ptx::tma_store_2d(d_map_, col0_, row0 + box * CHUNK, addr_ + box * CHUNK * ROW_BYTES, policy_);
      }
      gg::ptx::bulk_commit_group();
    }
    const int unit = thread() % 8;  // 16 bytes of a row
#pragma unroll 1
    for (int row = boxes * CHUNK + thread() / 8; row < rows; row += 16) {
      if (col0_ + unit * 8 < n_) {
        *reinterpret_cast<uint4*>(d_ + int64_t(row0 + row) * n_ + col0_ + unit * 8) =
            *reinterpret_cast<const uint4*>(shared_ + row * ROW_BYTES + (unit ^ row % 8) * 16);
      }
    }
  }

  const CUtensorMap* d_map_;
  D* d_;
  int n_;
  const unsigned char* shared_;
  uint32_t addr_;
  int barrier_;
  uint64_t policy_;
  uint32_t packed_[TALL ? (BM - HALF) / 4 : 1];  // two rows of a column in a register
  int row0_ = 0, rows_ = 0, col0_ = 0, left_ = 0;
  bool stored_ = false;
};

// D of 32 bits: eight neighbours of a row are 32 bytes, a whole sector, so threads store their sums as they
// are.
template <int BM>
class Store<float, BM> {
 public:
  __device__ Store(const CUtensorMap*, float* d, int n, unsigned char*, int, uint64_t) : d_(d), n_(n) {}

  template <int SUMS>
  __device__ void first(const float (&sums)[SUMS], const Tile& tile, int col0) {
    const int lane = int(threadIdx.x) % 32, row0 = lane % 4 * 2;
    const int col = col0 + int(threadIdx.x) % 128 / 32 * 16 + lane / 4;
    float* const to = d_ + int64_t(tile.row0 + row0) * n_ + col;
    const int rows = tile.rows - row0, columns = n_ - col;
#pragma unroll
    for (int i = 0; i < SUMS; ++i) {
      const int row = i / 4 * 8 + i % 2, column = i / 2 % 2 * 8;
      if (row < rows && column < columns) to[int64_t(row) * n_ + column] = sums[i];
    }
  }
  __device__ void step() {}
  __device__ void settle() {}
  __device__ void flush() {}
  __device__ void finish() {}

 private:
  float* d_;
  int n_;
};

}  // namespace chapter
