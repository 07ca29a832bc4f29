// SPDX-License-Identifier: MIT
//
// Sums in registers are scaled, a bias is added, the largest is found, D is converted.

#pragma once

#include "common/kernel/epilogue.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "output.cuh"
#include "schedule.cuh"

namespace chapter {

// Each lane has the bias of one column of a part, and amax leaves out 32 values where one is NaN.
static_assert(PART == 32);
static_assert(BN % PART == 0);  // store.cuh: no part ends beyond its accumulator

struct Operands {      // of the epilogue, and where its results go
  const float* alpha;  // [G]
  const float* prob;   // [rows]
  const void* bias;    // [G,N] of bias_format: f32, bf16 or f16; null: there is none
  Format bias_format;
  // Rows of padding count too: with zeros in their A and prob they do not raise amax.
  float* amax;  // [G]; starts as -infinity, which an expert without rows keeps
  void* d;      // [rows,N] of d_format: f32, bf16, f16, E4M3 or E5M2
  Format d_format;
};

// A storing thread's columns of a tile's row. It refers to the kernel's `Operands`, without a copy.
class Epilogue {
 public:
  __device__ Epilogue(const Operands& operands, const Tile& tile, int row, int n)
      : operands_(operands),
        alpha_(operands.alpha[tile.group]),
        prob_(operands.prob[row]),
        group_(tile.group),
        row_(row),
        n_(n) {
    fetch_bias(tile.col0);
  }

  // Who: a whole warp. Each lane has the sums of a part of its row, from column `col` of D on. Before: the
  //   parts to the left, in order, once each: next_bias_ is that of exactly this part.
  __device__ void apply(const uint32_t (&sums)[PART], int col) {
    const int cols = min(PART, n_ - col);  // so many columns of the part are D's: 1 or more
    float v[PART];
    // [value]
    if (operands_.bias) {
      const float bias = gg::epilogue::bias_of(operands_.bias_format, next_bias_);  // of this lane's column
      fetch_bias(col + PART);  // overwrites next_bias_, for the next part; after the last one it is unused
#pragma unroll
      for (int c = 0; c < PART; ++c)
        v[c] = gg::epilogue::value_of(__uint_as_float(sums[c]), alpha_, prob_, __shfl_sync(~0u, bias, c));
    } else {
#pragma unroll
      for (int c = 0; c < PART; ++c) v[c] = gg::epilogue::value_of(__uint_as_float(sums[c]), alpha_, prob_);
    }
    // [/value]
    // Columns from N on must not change amax. B is 0 there, but the bias is column N - 1's. And 0
    // times an infinity of A, or times NaN in SFB's padding, is NaN: the whole part would be left out.
    if (cols < PART) {
#pragma unroll
      for (int c = 0; c < PART; ++c) v[c] = c < cols ? v[c] : 0;
    }
    // [largest]
    const uint32_t largest = gg::epilogue::largest_magnitude(v);
    largest_ = gg::epilogue::amax_with(largest_, largest);
    // [/largest]
    store_part(operands_.d_format, operands_.d, int64_t(row_) * n_ + col, v, cols);
  }

  // Who: a whole warp, after its last part of the tile. Does: raises amax to its lanes' largest.
  __device__ void finish() {
    const uint32_t largest = __reduce_max_sync(~0u, largest_);
    // As signed integers, magnitudes have the order of their numbers, and -infinity is below all of them.
    if (gg::ptx::elect()) atomicMax(reinterpret_cast<int*>(operands_.amax) + group_, int(largest));
  }

 private:
  // Who: a whole warp. Does: starts to load the bias of the 32 columns from `col` on, one in each lane, which
  //   the next `bias_of` converts. From N on there is none to load: column N - 1's stands in.
  __device__ void fetch_bias(int col) {
    const int64_t at = int64_t(group_) * n_ + min(col + int(threadIdx.x) % 32, n_ - 1);
    if (operands_.bias) next_bias_ = gg::epilogue::load_bias(operands_.bias, operands_.bias_format, at);
  }

  const Operands& operands_;
  float alpha_, prob_;
  int group_, row_, n_;
  uint32_t next_bias_ = 0;  // as loaded, of this lane's column of the part that `apply` gets next
  uint32_t largest_ = 0;    // magnitude of this thread's values so far, as bits: no NaN
};

}  // namespace chapter
