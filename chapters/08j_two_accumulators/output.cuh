// SPDX-License-Identifier: MIT
//
// How a warp's part of D gets to memory: as a box of 32 rows by 32 columns in shared memory, by TMA.

#pragma once

#include "common/kernel/epilogue.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/tma.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "common/kernel/tensor_map.h"
#include "config.cuh"

namespace chapter {

using gg::Format;

// A storing warp has one for all its tiles: it knows which box is free, from one tile to the next.
class Output {
 public:
  static constexpr int BOX_ROWS = 32;  // one for each lane

  // `shared`: this warp's OUTPUT_BYTES, at a multiple of 1024. Boxes are sized for `format`. A call
  // of `store` with a wider one would write past its box: nothing here checks it.
  __device__ Output(unsigned char* shared, Format format)
      : shared_(shared), box_bytes_(BOX_ROWS * PART * gg::format_info(format).bits / 8) {}

  // Who: a whole warp, each lane with its row of a part. Does: starts the copy of the part to where `map` has
  //   rows from `row0` on and columns from `col` on; columns after the tensor's last one are left out.
  // After: the next box may be written. A format without a line below would send what the box held before.
  // [store]
  __device__ void store(Format format, const CUtensorMap* map, const float (&v)[PART], int row0, int col) {
    unsigned char* box = shared_ + box_off_;
    if (format == Format::f32) write<Format::f32>(box, v);
    if (format == Format::bf16) write<Format::bf16>(box, v);
    if (format == Format::f16) write<Format::f16>(box, v);
    if (format == Format::e4m3) write<Format::e4m3>(box, v);
    if (format == Format::e5m2) write<Format::e5m2>(box, v);
    gg::ptx::fence_proxy_async();
    __syncwarp();  // all rows are there, for TMA too
    box_off_ = box_off_ + box_bytes_ == OUTPUT_BYTES ? 0 : box_off_ + box_bytes_;
    if (gg::ptx::elect()) {
      gg::ptx::tma_store_2d(map, col, row0, gg::ptx::shared_addr(box));
      gg::ptx::bulk_commit_group();
      if (2 * box_bytes_ > OUTPUT_BYTES) {  // one box fits: wait until this copy has read it
        gg::ptx::bulk_wait_group_read<0>();
      } else {  // two or more: wait until all copies but this one have read theirs
        gg::ptx::bulk_wait_group_read<1>();
      }
    }
    __syncwarp();  // the next box has been read: every lane may write it
  }
  // [/store]

  // Who: a whole warp, after its last box. Shared memory must be there until TMA has read it. The wait is
  //   for copies of its own lane: `elect` chooses the same one as in `store`.
  __device__ void finish() {
    if (gg::ptx::elect()) gg::ptx::bulk_wait_group_read<0>();
  }

 private:
  // Rounds this lane's row and writes it to the box, each chunk to where TMA's swizzle has it. TMA
  // swizzles by address, `write` by offset in the box: as each box begins a pattern, they agree.
  // [write]
  template <Format D>
  __device__ static void write(unsigned char* box, const float (&v)[PART]) {
    constexpr int IN_WORD = gg::epilogue::VALUES_IN_WORD<D>, CHUNKS = PART / IN_WORD / 4;  // of a row
    static_assert(OUTPUT_BYTES % (BOX_ROWS * CHUNKS * 16) == 0);  // whole boxes: `store` relies on it
    static_assert(BOX_ROWS == 32);  // one for each lane; four patterns of 8: each box begins one
    // TMA xors a chunk's number with bits 7 and up of the row's offset, lane * CHUNKS * 16.
    const int lane = int(threadIdx.x) % 32, swizzle = lane * CHUNKS / 8 % CHUNKS;
    auto* row = reinterpret_cast<uint4*>(box) + lane * CHUNKS;
#pragma unroll
    for (int chunk = 0; chunk < CHUNKS; ++chunk) {
      uint32_t words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) words[i] = gg::epilogue::word_of<D>(v + (chunk * 4 + i) * IN_WORD);
      row[chunk ^ swizzle] = {words[0], words[1], words[2], words[3]};
    }
  }
  // [/write]

  unsigned char* shared_;
  int box_bytes_;
  int box_off_ = 0;  // of the next one
};

// The map of an output [rows,columns]. Its swizzle, as long as a row of a box, is that of `write`.
inline CUtensorMap output_map(Format format, void* data, int64_t rows, int64_t columns) {
  const int bytes = gg::format_info(format).bits / 8;
  static_assert(PART * 4 == 128);  // rows of boxes have 128, 64 or 32 bytes, as their swizzles below
  return gg::make_tensor_map({.type = bytes == 4   ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32
                                      : bytes == 2 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16  // or any 16 bits
                                                   : CU_TENSOR_MAP_DATA_TYPE_UINT8,
                              .data = data,
                              .dims = {columns, rows},
                              .stride_bytes = {columns * bytes},
                              .box = {PART, Output::BOX_ROWS},
                              .swizzle = bytes == 4   ? CU_TENSOR_MAP_SWIZZLE_128B
                                         : bytes == 2 ? CU_TENSOR_MAP_SWIZZLE_64B
                                                      : CU_TENSOR_MAP_SWIZZLE_32B});
}

}  // namespace chapter
