// SPDX-License-Identifier: MIT
//
// Sums in registers are scaled, a bias is added, the largest is found, D is quantised.

#pragma once

#include "common/kernel/epilogue.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "output.cuh"
#include "schedule.cuh"

namespace chapter {

// Each lane has the bias of one column of a part, amax leaves out 32 values where one is NaN, and 32
// share a scale.
static_assert(PART == 32);
static_assert(BN % PART == 0);  // store.cuh: no part ends beyond its accumulator
// A thread stores the codes of so many columns of its row as one word of 4 bytes; tiles have whole words.
constexpr int WORD_COLUMNS = ATOM_BLOCKS * PART;
static_assert(ATOM_BLOCKS == 4 && BN % WORD_COLUMNS == 0);
// The order of words in SFD_row is the one in which the next product's kernel loads SFA.
static_assert(gg::ScaleLayout::kAtomRows == ATOM_ROWS && gg::ScaleLayout::kAtomBlocks == ATOM_BLOCKS);

struct Operands {      // of the epilogue, and where its results go
  const float* alpha;  // [G]
  const float* prob;   // [rows]
  const void* bias;    // [G,N] of bias_format: f32, bf16 or f16; null: there is none
  Format bias_format;
  // Rows of padding count too: with zeros in their A and prob they do not raise amax.
  float* amax;  // [G]; starts as -infinity, which an expert without rows keeps
  void* d;      // [rows,N] of d_format: f32, bf16, f16, E4M3 or E5M2
  Format d_format;
  // [rows/128][N/128][512], rounded up, as SFA: a scale's code for PART columns of each row. It is stored in
  // words: aligned to 4 bytes. D must be E4M3 or E5M2, and no kernel or `launch` checks it. Null: no scales.
  uint8_t* sfd_row;
  const float* norm_const;  // [1], above 0: a factor of all scales; read only if there is sfd_row
};

// A storing thread's columns of a tile's row. It refers to the kernel's `Operands`, without a copy.
class Epilogue {
 public:
  // `first_col`: of D, of the part that comes first.
  __device__ Epilogue(const Maps& maps, const Operands& operands, Output& output, const Tile& tile, int row,
                      int n, int first_col)
      : maps_(maps),
        operands_(operands),
        output_(output),
        alpha_(operands.alpha[tile.group]),
        prob_(operands.prob[row]),
        group_(tile.group),
        row_(row),
        n_(n) {
    if (operands.sfd_row) norm_ = *operands.norm_const;
    fetch_bias(first_col);
  }

  // Who: a whole warp. Each lane has the sums of a part of its row, from column `col` of D on.
  //   `next_col`: the next call's `col`, whose bias is loaded here; after the last part any number,
  //   also a negative one. Before: the constructor or the call before was told this `col`, and a
  //   word's four parts come one after the other. Nothing checks it.
  __device__ void apply(const uint32_t (&sums)[PART], int col, int next_col) {
    const int cols = min(PART, n_ - col);  // so many columns of the part are D's; 0 or less: none
    float v[PART];
    // [value]
    if (operands_.bias) {
      const float bias = gg::epilogue::bias_of(operands_.bias_format, next_bias_);  // of this lane's column
      fetch_bias(next_col);  // overwrites next_bias_, for the next part; after the last one it is unused
#pragma unroll
      for (int c = 0; c < PART; ++c)
        v[c] = gg::epilogue::value_of(__uint_as_float(sums[c]), alpha_, prob_, __shfl_sync(~0u, bias, c));
    } else {
#pragma unroll
      for (int c = 0; c < PART; ++c) v[c] = gg::epilogue::value_of(__uint_as_float(sums[c]), alpha_, prob_);
    }
    // [/value]
    // Columns from N on must not change amax or a scale. B is 0 there, but the bias is column N - 1's. And
    // 0 times an infinity of A, or times NaN in SFB's padding, is NaN.
    if (cols < PART) {
#pragma unroll
      for (int c = 0; c < PART; ++c) v[c] = c < cols ? v[c] : 0;
    }
    // [largest]
    const uint32_t largest = gg::epilogue::largest_magnitude(v);
    largest_ = gg::epilogue::amax_with(largest_, largest);
    // [/largest]
    if (operands_.sfd_row) quantise(v, largest, col);  // v becomes v * q, after amax has v
    // All lanes agree on `cols`. The box begins in lane 0's row. D's type is that of Output's constructor.
    if (cols > 0) output_.store(operands_.d_format, &maps_.d, v, row_ - int(threadIdx.x) % 32, col);
  }

  // Who: a whole warp, after its last part of the tile. Does: raises amax to its lanes' largest.
  __device__ void finish() {
    const uint32_t largest = __reduce_max_sync(~0u, largest_);
    // As signed integers, magnitudes have the order of their numbers, and -infinity is below all of them.
    if (gg::ptx::elect()) atomicMax(reinterpret_cast<int*>(operands_.amax) + group_, int(largest));
  }

 private:
  // Who: a whole warp. Does: starts to load the bias of the 32 columns from `col` on, one in each lane, which
  //   the next `bias_of` converts. Outside 0 to N - 1 there is none to load: the nearest column's stands in.
  __device__ void fetch_bias(int col) {
    const int64_t at = int64_t(group_) * n_ + max(0, min(col + int(threadIdx.x) % 32, n_ - 1));
    if (operands_.bias) next_bias_ = gg::epilogue::load_bias(operands_.bias, operands_.bias_format, at);
  }

  // Who: any thread. Does: multiplies a part by the factor of its scale and keeps the scale's code. With
  //   the last of a word's four parts it stores the word, so all four must come, beyond N too.
  __device__ void quantise(float (&v)[PART], uint32_t largest, int col) {
    // [quantise]
    const float reciprocal = gg::epilogue::reciprocal_for(operands_.d_format);
    const uint32_t code = gg::epilogue::scale_code(largest, reciprocal, norm_);
    const float factor = gg::epilogue::factor_of_code(code, norm_);
#pragma unroll
    for (int c = 0; c < PART; ++c) v[c] *= factor;
    // [/quantise]
    // [codes]
    const int scale_block = col / PART, byte = scale_block % 4;  // of the row; of the word
    codes_ |= code << 8 * byte;
    if (++parts_coded_ % 4) return;  // a word's four come one after the other: 0 1 2 3 or 2 3 0 1
    const gg::ScaleLayout layout = {0, gg::scale_blocks(n_, PART)};  // offset() does not use its rows, here 0
    *reinterpret_cast<uint32_t*>(operands_.sfd_row + layout.offset(row_, scale_block - byte)) = codes_;
    codes_ = 0;
    // [/codes]
  }

  const Maps& maps_;  // no copy: TMA reads the kernel's parameter, at its address
  const Operands& operands_;
  Output& output_;
  float alpha_, prob_, norm_ = 0;
  int group_, row_, n_;
  int parts_coded_ = 0;     // so far
  uint32_t codes_ = 0;      // of the word's parts so far, the rest 0; 0 when a word begins
  uint32_t next_bias_ = 0;  // as loaded, of this lane's column of the part that `apply` gets next
  uint32_t largest_ = 0;    // magnitude of this thread's values so far, as bits: no NaN
};

}  // namespace chapter
