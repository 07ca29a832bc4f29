// SPDX-License-Identifier: MIT
//
// Y = X W^T for each 16 neighbours of a row, and D is Y as bf16. X lies in shared memory, in boxes
// of 32 rows and 32 columns, as Outbox put it there. A warp transforms a box: D replaces X.

#pragma once

#include "common/kernel/epilogue.cuh"
#include "common/kernel/epilogue_glu.cuh"
#include "common/kernel/ptx/cvt.cuh"
#include "common/kernel/ptx/ldmatrix.cuh"
#include "common/kernel/ptx/mma.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/stmatrix.cuh"
#include "config.cuh"

namespace chapter {

constexpr int W_SIZE = gg::epilogue::HADAMARD_SIZE;  // rows and columns of W, and of a quadrant of a box
static_assert(STEP == 2 * W_SIZE && D_BYTES == 2 * W_SIZE * sizeof(bf16));  // a box is 2x2 quadrants

// A whole warp has one and makes each call.
class Transform {
 public:
  // w: [16,16]; null: the butterfly.
  __device__ explicit Transform(const bf16* w) : has_w_(w) {
    if (!w) return;
    // [w]
    const bf16* const first = w + lane() / 4 * W_SIZE + lane() % 4 * 2;
#pragma unroll
    for (int i = 0; i < 4; ++i) {  // mma's operand A: by i % 2 8 rows further on, by i / 2 8 columns
      w_.reg[i] = *reinterpret_cast<const uint32_t*>(first + i % 2 * 8 * W_SIZE + i / 2 * 8);
    }
    // [/w]
  }

  // Makes D of X in a box. Returns the bits of the largest |Y| that this lane has in the first
  // `rows` rows: as integers, bits of magnitudes have the order of the numbers. Y that is NaN is
  // left out, and `butterfly` leaves out its 15 neighbours too. (A NaN in X makes all 16 NaN anyhow.
  // Infinities in X, or sums beyond f32, may leave others of the 16 as numbers.)
  // After it, before D is read: fence_proxy_async for TMA, and __syncwarp.
  __device__ uint32_t apply(unsigned char* box, int rows) const {
    return has_w_ ? multiply(gg::ptx::shared_addr(box), rows) : butterfly(box, rows);
  }

 private:
  __device__ static int lane() { return int(threadIdx.x) % 32; }

  // By rounds of sums and differences: a lane has 16 columns of a row. For Hadamard's W alone. From
  // row `rows` on X stays as it is.
  // [butterfly]
  __device__ static uint32_t butterfly(unsigned char* box, int rows) {
    uint32_t largest_bits = 0;
#pragma unroll 1
    for (int i = lane(); i < rows * 2; i += 32) {  // columns i % 2 * 16 and up of row i / 2
      uint4* chunks[2];
      uint32_t words[W_SIZE / 2];  // two columns in each: first X, then D
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        chunks[c] = reinterpret_cast<uint4*>(box + swizzled(i / 2, i % 2 * 2 + c));
        const uint4 x = *chunks[c];
        words[c * 4] = x.x, words[c * 4 + 1] = x.y, words[c * 4 + 2] = x.z, words[c * 4 + 3] = x.w;
      }
      float y[W_SIZE];
      gg::epilogue::hadamard_butterfly(words, y);
#pragma unroll
      for (int j = 0; j < W_SIZE / 2; ++j) words[j] = gg::ptx::cvt_rn_x2<bf16>(y[j * 2], y[j * 2 + 1]);
#pragma unroll
      for (int c = 0; c < 2; ++c)
        *chunks[c] = {words[c * 4], words[c * 4 + 1], words[c * 4 + 2], words[c * 4 + 3]};
      // largest_magnitude: bits of a NaN if one of the 16 is NaN, and amax_with leaves out all 16.
      largest_bits = gg::epilogue::amax_with(largest_bits, gg::epilogue::largest_magnitude(y));
    }
    return largest_bits;
  }
  // [/butterfly]

  // By the tensor cores, as Y^T = W X^T: a row of X, as it lies there, is a column of operand B.
  // Lanes have Y^T as wgmma left them the sums, so it is stored as `put` stored X.
  // [multiply]
  __device__ uint32_t multiply(uint32_t box_addr, int rows) const {
    float largest = 0;  // |Y|
#pragma unroll
    for (int quadrant = 0; quadrant < 4; ++quadrant) {
      // The quadrant begins at row0 and chunk0 of the box. Lane l gives the address of row l % 8 of
      // matrix l / 8: two chunks of 8 rows, then of the next 8 rows.
      const int row0 = quadrant % 2 * W_SIZE, chunk0 = quadrant / 2 * 2;
      const int row = row0 + lane() / 16 * 8 + lane() % 8, chunk = chunk0 + lane() / 8 % 2;
      const uint32_t row_addr = box_addr + swizzled(row, chunk);
      gg::ptx::FragmentB<bf16> x;
      gg::ptx::ldmatrix_x4(x.reg, row_addr);
      uint32_t words[4];
#pragma unroll
      for (int half = 0; half < 2; ++half) {  // 8 rows of the quadrant, 8 columns of operand B
        float y[4] = {};  // of Y: two rows of column lane / 4, and of the column 8 further on
        gg::ptx::mma_m16n8k16(y, w_, x, half);
        words[2 * half] = gg::ptx::cvt_rn_x2<bf16>(y[0], y[1]);
        words[2 * half + 1] = gg::ptx::cvt_rn_x2<bf16>(y[2], y[3]);
        const int r = row0 + half * 8 + lane() % 4 * 2;
#pragma unroll
        for (int e = 0; e < 2; ++e) {  // max.f32 leaves NaN out
          if (r + e < rows) largest = fmaxf(largest, fmaxf(fabsf(y[e]), fabsf(y[2 + e])));
        }
      }
      gg::ptx::stmatrix_x4_trans(row_addr, words);
    }
    return gg::epilogue::bits_of(largest);
  }
  // [/multiply]

  bool has_w_;
  gg::ptx::FragmentA<bf16> w_ = {};
};

}  // namespace chapter
