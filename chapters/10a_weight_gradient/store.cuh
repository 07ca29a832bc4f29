// SPDX-License-Identifier: MIT
//
// A consumer's sums to D: those of f32 by TMA from boxes in shared memory, others from registers. While
// it stores, the other consumer multiplies.

#pragma once

#include "common/kernel/ptx/cvt.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/tma.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "config.cuh"

namespace chapter {

// As wgmma leaves them, a thread has four sums of each 8 columns, one after the other in `sums`: two
// neighbours in a row, then two in the row 8 further down. Four lanes, a quad, have all 8 columns.

// f32: stores BOX rows of D_g from `row0` on and BN columns from `col0` on, as far as D_g [k,n] has them,
// or adds to them. Who: a whole consumer. Each warp has boxes and copy groups of its own, so warps need not
// meet. Its sums are 16 rows, of which a box has the first or the last 8.
// TMA leaves out columns past n. Rows past k are the next group's, so a box of these is not stored.
// `group * k + row` fits an int, for main.cu's most_b_rows refuses a D of more than INT32_MAX rows.
// Each call begins with the warp's first box, and its waits count the copies of the call before too:
// config.cuh asserts what makes that right. Copy groups are a thread's. So all copies and waits here,
// and the wait at the end of multiply_tiles, are made by the lane that `elect` chooses, always the same.
// Each element of D is added to once in a launch, so the order of the tiles does not change the sum.
// [boxes]
template <class C>
__device__ void store_boxes(const CUtensorMap& d_map, const Memory& memory, const float (&sums)[BN / 2],
                            int group, int row0, int col0, int k, bool accumulate) {
  const int warp = gg::ptx::uniform(int(threadIdx.x) / 32), lane = int(threadIdx.x) % 32;
  unsigned char* const boxes = memory.d_boxes + warp * C::BOXES_D * D_BOX_BYTES;
  // The lane's first sums in a box: row lane / 4, and chunk lane % 4 / 2 of 16 bytes, which the swizzle
  // exchanges by the row. Without is_odd rows 2i and 2i + 1 would hit the same banks. Bits 4 to 6 of `at`
  // are the chunk's number, and before the swizzle the lane's chunk is 0 or 1, so an xor adds 2j to it.
  const int in_box = lane / 4, is_odd = in_box % 2;
  const int at = in_box * ROW_BYTES + (lane % 4 / 2 ^ in_box ^ is_odd * 4) * 16 + lane % 2 * 8;
#pragma unroll
  for (int i = 0; i < 2 * BN / D_COLUMNS; ++i) {
    const int half = i / (BN / D_COLUMNS), part = i % (BN / D_COLUMNS);
    unsigned char* const box = boxes + i % C::BOXES_D * D_BOX_BYTES;
    if (gg::ptx::elect()) gg::ptx::bulk_wait_group_read<C::BOXES_D - 1>();
    __syncwarp();  // TMA has read what was in this box
#pragma unroll
    for (int j = 0; j < 4; ++j) {  // 8 columns each, odd rows in the order 2, 3, 0, 1
      const float* const even = sums + (part * 4 + j) * 4 + half * 2;
      const float* const odd = sums + (part * 4 + (j ^ 2)) * 4 + half * 2;
      const float2 both = {is_odd ? odd[0] : even[0], is_odd ? odd[1] : even[1]};
      *reinterpret_cast<float2*>(box + (at ^ j * 32)) = both;
    }
    gg::ptx::fence_proxy_async();
    __syncwarp();  // the box is complete, for TMA too
    if (gg::ptx::elect()) {
      const int row = row0 + warp % 4 * 16 + half * D_ROWS, col = col0 + part * D_COLUMNS;
      const uint32_t box_addr = gg::ptx::shared_addr(box);
      if (row < k) {
        if (accumulate) {
          gg::ptx::tma_reduce_add_2d(&d_map, col, group * k + row, box_addr);
        } else {
          gg::ptx::tma_store_2d(&d_map, col, group * k + row, box_addr);
        }
      }
      gg::ptx::bulk_commit_group();  // also of nothing: the wait above counts groups
    }
  }
}
// [/boxes]

// Lane i of a quad has words 0 to 3, and gets word i of each lane: the quad's 4 x 4 words are transposed.
// Who: a whole warp.
// [transpose]
__device__ inline void transpose_quad(uint32_t (&words)[4], int lane) {
#pragma unroll
  for (int bit = 2; bit > 0; bit /= 2) {
#pragma unroll
    for (int low = 0; low < 4; ++low) {
      if (low & bit) continue;
      const bool is_high = lane & bit;  // keeps its high word, and sends the low one
      const uint32_t got = __shfl_xor_sync(~0u, is_high ? words[low] : words[low | bit], bit);
      words[low] = is_high ? got : words[low];
      words[low | bit] = is_high ? words[low | bit] : got;
    }
  }
}
// [/transpose]

// 16 bits: a quad's 8 sums are half a sector. Of four times 8 columns each lane takes 8, which are 16 bytes.
template <class T>
__device__ inline void store_row(T* d_row, const float (&sums)[BN / 2], int half, int col0, int n, int lane,
                                 bool accumulate) {
#pragma unroll
  for (int i = 0; i < BN / 32; ++i) {
    uint32_t words[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int sum = (i * 4 + j) * 4 + half * 2, col = col0 + (i * 4 + j) * 8 + lane % 4 * 2;
      float x = sums[sum], y = sums[sum + 1];
      if (accumulate && col < n) {
        x += gg::to_float(d_row[col]);
        y += gg::to_float(d_row[col + 1]);
      }
      words[j] = gg::ptx::cvt_rn_x2<T>(x, y);
    }
    transpose_quad(words, lane);
    const int col = col0 + i * 32 + lane % 4 * 8;
    if (col < n) *reinterpret_cast<uint4*>(d_row + col) = {words[0], words[1], words[2], words[3]};
  }
}

// 16 bits: stores 64 rows of D_g from `row0` on and BN columns from `col0` on, as far as D_g [k,n]
// has them, or adds to them, from registers. `d`: D_g. Who: a whole consumer.
// [store]
template <class D>
__device__ void store(D* d, const float (&sums)[BN / 2], int row0, int col0, int n, int k, bool accumulate) {
  const int thread = int(threadIdx.x) % 128, lane = thread % 32;
#pragma unroll
  for (int half = 0; half < 2; ++half) {  // a warp has 16 rows, a lane one of the first 8 and one of the last
    const int row = row0 + thread / 32 * 16 + half * 8 + lane / 4;
    // Lanes of rows past the last one have no columns, and make the same shuffles.
    store_row(d + int64_t(row) * n, sums, half, col0, row < k ? n : 0, lane, accumulate);
  }
}
// [/store]

}  // namespace chapter
