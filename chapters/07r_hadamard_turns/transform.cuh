// SPDX-License-Identifier: MIT
//
// Y = X W^T for each 16 neighbours of a row of X, in the registers of a warp that has these 16 columns. As
// Y^T = W X^T it is a product of mma, whose result lies as wgmma's sums do: so Y takes the place of X.

#pragma once

#include "common/kernel/epilogue.cuh"
#include "common/kernel/epilogue_glu.cuh"
#include "common/kernel/ptx/cvt.cuh"
#include "common/kernel/ptx/mma.cuh"
#include "config.cuh"

namespace chapter {

constexpr int W_SIZE = gg::epilogue::HADAMARD_SIZE;  // rows and columns of W
static_assert(W_SIZE == 16);                         // a warp's two halves of 8 columns: B's map

// Who: a whole warp makes each call. An object lives for one tile's epilogue, so that W takes no
// register during the main loop. The compiler cannot load W earlier: its addresses depend on
// `lane`, and Self (multiply.cuh) hides from the compiler that `lane` is the same in all tiles.
class Transform {
 public:
  // w: [16,16]. `lane`: this one's number in the warp.
  __device__ Transform(const bf16* w, int lane) : lane_(lane) {
    // [w]
    const bf16* const first = w + lane / 4 * W_SIZE + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < 4; ++i) {  // mma's operand A: by i % 2 8 rows further on, by i / 2 8 columns
      w_.reg[i] = *reinterpret_cast<const uint32_t*>(first + i % 2 * 8 * W_SIZE + i / 2 * 8);
    }
    // [/w]
  }

  // words[h][j]: of this lane's column 8h + lane / 4 of the warp's 16, rows 8j + lane % 4 * 2 of a
  // box and the next one. X before, D after. `rows`: how many rows the tile has from the box's first
  // one on, or 0 where the columns are not D's. Y of other rows and columns does not count for amax.
  // [apply]
  __device__ void apply(uint32_t (&words)[2][4], int rows) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      // Operand B is X^T, 16 columns of X by 8 rows. There a lane has two columns of row lane / 4, in
      // `words` it has two rows of column lane / 4. So both 8x8 matrices are transposed. mma's 0 says
      // that operand B is reg[0] and reg[1] of x: nobody reads the other two.
      gg::ptx::FragmentB<bf16> x;
      x.reg[0] = gg::ptx::movmatrix_trans(words[0][j]);
      x.reg[1] = gg::ptx::movmatrix_trans(words[1][j]);
      float y[4] = {};  // two rows of column lane / 4, and of the column 8 further on
      gg::ptx::mma_m16n8k16(y, w_, x, 0);
      words[0][j] = gg::ptx::cvt_rn_x2<bf16>(y[0], y[1]);
      words[1][j] = gg::ptx::cvt_rn_x2<bf16>(y[2], y[3]);
#pragma unroll
      for (int e = 0; e < 2; ++e) {  // max.f32 leaves NaN out
        if (j * 8 + lane_ % 4 * 2 + e < rows) largest_ = fmaxf(largest_, fmaxf(fabsf(y[e]), fabsf(y[2 + e])));
      }
    }
  }
  // [/apply]

  // After the tile's last box: raises `amax`, that of the tile's group, to this warp's largest |Y|.
  __device__ void store_amax(float* amax) const {
    const uint32_t largest = __reduce_max_sync(~0u, gg::epilogue::bits_of(largest_));
    // As signed integers, magnitudes have the order of their numbers, and -infinity is below all of them.
    if (lane_ == 0) atomicMax(reinterpret_cast<int*>(amax), int(largest));
  }

 private:
  int lane_;
  float largest_ = 0;
  gg::ptx::FragmentA<bf16> w_;
};

}  // namespace chapter
