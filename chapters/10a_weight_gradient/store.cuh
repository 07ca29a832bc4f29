// SPDX-License-Identifier: MIT
//
// A consumer's sums to D, from registers. While it stores, the other consumer multiplies.

#pragma once

#include "common/kernel/ptx/cvt.cuh"
#include "config.cuh"

namespace chapter {

// As wgmma leaves them, a thread has two neighbouring sums of each 8 columns, of two rows, and four lanes, a
// quad, have all 8.
// f32: a quad's 8 sums are 32 bytes, a whole sector of the memory: stored as they are.
__device__ inline void store_row(float* d_row, const float (&sums)[BN / 2], int half, int col0, int n,
                                 int lane, bool accumulate) {
#pragma unroll
  for (int i = 0; i < BN / 8; ++i) {
    const int col = col0 + i * 8 + lane % 4 * 2;
    if (col >= n) continue;
    float2* const to = reinterpret_cast<float2*>(d_row + col);
    const float2 before = accumulate ? *to : float2{};
    *to = {before.x + sums[i * 4 + half * 2], before.y + sums[i * 4 + half * 2 + 1]};
  }
}

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

// Stores BOX rows of D_g from `row0` on and BN columns from `col0` on, as far as D_g [k,n] has them.
// Who: a whole warpgroup.
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
