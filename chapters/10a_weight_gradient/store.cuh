// SPDX-License-Identifier: MIT
//
// A consumer's sums to D, by TMA from boxes in shared memory. While it stores, the other consumer multiplies.

#pragma once

#include "common/kernel/ptx/cvt.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/tma.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "config.cuh"

namespace chapter {

// As wgmma leaves them, a thread has four sums of each 8 columns, one after the other in `sums`: two
// neighbours in a row, then two in the row 8 further down. Four lanes, a quad, have all 8 columns.

// Writes the lane's sums for a box of f32, which are in `sums` from `first` on: of row lane / 4 of the
// box, 2 neighbours of each 8 columns. Columns 8j to 8j + 7 are chunks 2j and 2j + 1 of 16 bytes, and
// the lane's pair is half of one. The swizzle puts chunk c of row r where chunk c ^ r would be. Odd
// rows take their 8 columns in the order 2, 3, 0, 1: else rows 2i and 2i + 1 would write to the same
// banks at the same time. (With j = 0 row 0 writes to chunks 0 and 1, row 1 to 5 and 4.) Bits 4 to 6
// of `at` are c ^ r for j = 0. For another j the chunk is c ^ r ^ 2j, therefore `at ^ j * 32`.
// [fill]
__device__ __forceinline__ void fill_f32(unsigned char* box, const float (&sums)[BN / 2], int first,
                                         int lane) {
  const int row = lane / 4, is_odd = row % 2;
  const int at = row * ROW_BYTES + (lane % 4 / 2 ^ row ^ is_odd * 4) * 16 + lane % 2 * 8;
#pragma unroll
  for (int j = 0; j < 4; ++j) {  // 8 columns each, odd rows in the order 2, 3, 0, 1
    const float* const even = sums + first + j * 4;
    const float* const odd = sums + first + (j ^ 2) * 4;
    const float2 both = {is_odd ? odd[0] : even[0], is_odd ? odd[1] : even[1]};
    *reinterpret_cast<float2*>(box + (at ^ j * 32)) = both;
  }
}

// The same of 16 bits, where 8 columns are a chunk: each quad writes a whole one.
template <class D>
__device__ __forceinline__ void fill_16_bits(unsigned char* box, const float (&sums)[BN / 2], int first,
                                             int lane) {
  const int row = lane / 4, at = row * ROW_BYTES + row * 16 + lane % 4 * 4;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const float* const both = sums + first + j * 4;
    *reinterpret_cast<uint32_t*>(box + (at ^ j * 16)) = gg::ptx::cvt_rn_x2<D>(both[0], both[1]);
  }
}
// [/fill]

// Adds D_g, as far as it has columns and rows, to the sums of SUM_ROWS rows from `row0` on and BN columns
// from `col0` on. `d`: D_g [k,n]. Who: a whole consumer.
// [add]
template <class D>
__device__ void add_to(float (&sums)[BN / 2], const D* d, int row0, int col0, int n, int k) {
  const int thread = int(threadIdx.x) % 128, lane = thread % 32;
  const int col = col0 + lane % 4 * 2, columns = n - col;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = row0 + thread / 32 * 16 + half * 8 + lane / 4;
    const D* const d_row = d + int64_t(row) * n + col;
#pragma unroll
    for (int j = 0; j < BN / 8; ++j) {  // a pair of neighbours in each 8 columns
      if (row >= k || j * 8 >= columns) break;
      sums[j * 4 + half * 2] += gg::to_float(d_row[j * 8]);
      sums[j * 4 + half * 2 + 1] += gg::to_float(d_row[j * 8 + 1]);
    }
  }
}
// [/add]

// Stores SUM_ROWS rows of D_g from `row0` on and BN columns from `col0` on, as far as D_g [k,n] has them,
// or adds to them if D is f32 and `accumulate`. Who: a whole consumer. Each warp has boxes and copy
// groups of its own, so warps need not meet. One wait, one fence and one copy group are for BOXES_D boxes
// side by side, from `first_box` on. A warp's sums are of 16 rows; a box has the first or the last 8.
// All loops are unrolled, so that `half`, `first_box` and `box`, and with them each index of `sums`, are
// constants. With an index that is known at run time alone the sums would be in local memory.
// TMA leaves out columns past n. Rows past k are the next group's, so a box of these is not stored.
// `group * k + row` fits an int, for main.cu's most_b_rows refuses a D of more than INT32_MAX rows.
// Copy groups are a thread's. So all copies and waits here, and the wait at the end of multiply_tiles, are
// made by the lane that `elect` chooses, always the same.
// Each element of D is added to once in a launch, so the order of the tiles does not change the sum.
// [boxes]
template <class C, class D>
__device__ void store_boxes(const CUtensorMap& d_map, const Memory& memory, const float (&sums)[BN / 2],
                            int group, int row0, int col0, int k, bool accumulate) {
  constexpr int COLUMNS = D_COLUMNS<D>, BOXES_WIDE = BN / COLUMNS;
  constexpr bool F32 = sizeof(D) == 4;
  const int warp = gg::ptx::uniform(int(threadIdx.x) / 32), lane = int(threadIdx.x) % 32;
  unsigned char* const boxes = memory.d_boxes + warp * C::BOXES_D * D_BOX_BYTES;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = row0 + warp % 4 * 16 + half * D_ROWS;  // of D_g, the boxes' first
#pragma unroll
    for (int first_box = 0; first_box < BOXES_WIDE; first_box += C::BOXES_D) {
      if (gg::ptx::elect()) gg::ptx::bulk_wait_group_read<0>();
      __syncwarp();  // TMA has read what was in the boxes
#pragma unroll
      for (int box = 0; box < C::BOXES_D; ++box) {
        const int first = (first_box + box) * COLUMNS / 2 + half * 2;  // of the lane's sums for this box
        if constexpr (F32) {
          fill_f32(boxes + box * D_BOX_BYTES, sums, first, lane);
        } else {
          fill_16_bits<D>(boxes + box * D_BOX_BYTES, sums, first, lane);
        }
      }
      gg::ptx::fence_proxy_async();
      __syncwarp();  // the boxes are complete, for TMA too
      if (gg::ptx::elect() && row < k) {
#pragma unroll
        for (int box = 0; box < C::BOXES_D; ++box) {
          const int col = col0 + (first_box + box) * COLUMNS;
          const uint32_t box_addr = gg::ptx::shared_addr(boxes + box * D_BOX_BYTES);
          if (F32 && accumulate) {
            gg::ptx::tma_reduce_add_2d(&d_map, col, group * k + row, box_addr);
          } else {
            gg::ptx::tma_store_2d(&d_map, col, group * k + row, box_addr);
          }
        }
        gg::ptx::bulk_commit_group();
      }
    }
  }
}
// [/boxes]

}  // namespace chapter
