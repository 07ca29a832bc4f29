// SPDX-License-Identifier: MIT
//
// Chapter 09a: what the storing warps do with sums: scale, add a bias, look for the largest, quantise, twice.

#pragma once

#include "common/epilogue.cuh"
#include "common/ptx/warp.cuh"
#include "schedule.cuh"

namespace chapter {

using gg::Format;

struct Epilogue {             // operands besides the sums, and where results go
  const float *alpha, *prob;  // [G], [rows]
  const void* bias;           // [G,N] of bias_format: f32, bf16 or f16; null: there is none
  Format bias_format;
  float* amax;  // [G]; starts as -infinity
  void* d;      // [rows,N] of d_format: f32, bf16, f16, E4M3 or E5M2
  Format d_format;
  uint8_t* sfd_row;         // scales of D's rows for each PART columns, in atoms as A's; null: D has none
  const float* norm_const;  // a factor of them all
  void* d_col;              // D once more, with scales of its columns for each 32 rows; null without sfd_row
  uint8_t* sfd_col;         // those scales: in atoms of 128 columns
  bool discrete_col_sfd;    // those of a group lie together
  int64_t rows;             // of D, those behind the last group too
};

constexpr int PART = 32;  // columns of a tile that a thread has in registers at a time: a part of its row

// Who: any thread. Does: stores the first `cols` values of a part, 16 bytes at a time. `first`: an element of
// D.
template <Format D>
__device__ inline void store_part(void* d, int64_t first, const float (&v)[PART], int cols) {
  constexpr int IN_WORD = gg::epilogue::VALUES_IN_WORD<D>, WORDS = PART / IN_WORD;
  uint32_t words[WORDS];
#pragma unroll
  for (int i = 0; i < WORDS; ++i) words[i] = gg::epilogue::word_of<D>(v + i * IN_WORD);
  auto* to = reinterpret_cast<uint4*>(static_cast<uint32_t*>(d) + first / IN_WORD);
#pragma unroll
  for (int i = 0; i < WORDS; i += 4) {
    if (i * IN_WORD < cols) to[i / 4] = {words[i], words[i + 1], words[i + 2], words[i + 3]};
  }
}
__device__ inline void store_part(Format format, void* d, int64_t first, const float (&v)[PART], int cols) {
  if (format == Format::f32) store_part<Format::f32>(d, first, v, cols);
  if (format == Format::bf16) store_part<Format::bf16>(d, first, v, cols);
  if (format == Format::f16) store_part<Format::f16>(d, first, v, cols);
  if (format == Format::e4m3) store_part<Format::e4m3>(d, first, v, cols);
  if (format == Format::e5m2) store_part<Format::e5m2>(d, first, v, cols);
}

// A storing thread's row of a tile.
class Row {
 public:
  __device__ Row(const Epilogue& epilogue, const Place& at, int row, int n)
      : epilogue_(epilogue),
        alpha_(epilogue.alpha[at.g]),
        prob_(epilogue.prob[row]),
        at_(at),
        row_(row),
        n_(n) {
    if (epilogue.sfd_row) norm_ = *epilogue.norm_const;
    fetch_bias(at.col0);
  }

  // Who: a whole warp. Each lane has the sums of a part of its row, from column `col` of D on.
  __device__ void take(const uint32_t (&sums)[PART], int col) {
    const int cols = min(PART, n_ - col);  // 0 or less: only its scale is missing, which is code 0
    float v[PART];
    // [value]
    if (epilogue_.bias) {
      const float bias = gg::epilogue::bias_of(epilogue_.bias_format, bias_);  // of one column, for all lanes
      fetch_bias(col + PART);  // for the next part; behind the last one nobody uses it
#pragma unroll
      for (int c = 0; c < PART; ++c)
        v[c] = gg::epilogue::value_of(__uint_as_float(sums[c]), alpha_, prob_, __shfl_sync(~0u, bias, c));
    } else {
#pragma unroll
      for (int c = 0; c < PART; ++c) v[c] = gg::epilogue::value_of(__uint_as_float(sums[c]), alpha_, prob_);
    }
    // [/value]
    if (cols < PART) {  // behind column N there is nothing
#pragma unroll
      for (int c = 0; c < PART; ++c) v[c] = c < cols ? v[c] : 0;
    }
    const uint32_t largest = gg::epilogue::largest_magnitude(v);
    largest_ = gg::epilogue::amax_with(largest_, largest);
    const int64_t first = int64_t(row_) * n_ + col;
    if (epilogue_.d_col) quantise_columns(v, first, col, cols);
    if (epilogue_.sfd_row) quantise(v, largest, col);
    store_part(epilogue_.d_format, epilogue_.d, first, v, cols);
  }

  // Who: a whole warp, behind the row's last part.
  __device__ void finish() {
    // No magnitude is negative, and -infinity is below all as an integer too.
    const uint32_t largest = __reduce_max_sync(~0u, largest_);
    if (gg::ptx::elect()) atomicMax(reinterpret_cast<int*>(epilogue_.amax) + at_.g, int(largest));
  }

 private:
  // Who: a whole warp. Starts to load the bias of the 32 columns from `col` on, one a lane. It has a part to
  // arrive in.
  __device__ void fetch_bias(int col) {
    const int64_t at = int64_t(at_.g) * n_ + min(col + int(threadIdx.x) % 32, n_ - 1);
    if (epilogue_.bias) bias_ = gg::epilogue::load_bias(epilogue_.bias, epilogue_.bias_format, at);
  }

  // Who: a whole warp. Its 32 rows are a block of each column of the part: lane c has the scale of column c.
  __device__ void quantise_columns(const float (&v)[PART], int64_t first, int col, int cols) {
    const int lane = int(threadIdx.x) % 32;
    // [columns]
    uint32_t largest = 0;
#pragma unroll
    for (int c = 0; c < PART; ++c) {
      const uint32_t of_column = __reduce_max_sync(~0u, gg::epilogue::magnitude(v[c]));
      if (lane == c) largest = of_column;
    }
    const float reciprocal = gg::epilogue::reciprocal_for(epilogue_.d_format);
    const uint32_t code = gg::epilogue::scale_code(largest, reciprocal, norm_);
    const float factor = gg::epilogue::factor_of_code(code, norm_);
    float scaled[PART];
#pragma unroll
    for (int c = 0; c < PART; ++c) scaled[c] = v[c] * __shfl_sync(~0u, factor, c);
    // [/columns]
    store_part(epilogue_.d_format, epilogue_.d_col, first, scaled, cols);
    // [place]
    const bool own = epilogue_.discrete_col_sfd;  // the group's scales are a tensor of their own
    const gg::ScaleLayout all = {n_, gg::scale_blocks(epilogue_.rows, 32)}, of_group = {n_, at_.rows / 32},
                          before = {n_, at_.begin / 32};
    const int64_t offset = own ? before.bytes() + of_group.offset(col + lane, (row_ - at_.begin) / 32)
                               : all.offset(col + lane, row_ / 32);
    epilogue_.sfd_col[offset] = uint8_t(code);
    // [/place]
  }

  // Scales a part to what its format holds. Four parts' codes lie together: the word is stored with the last.
  __device__ void quantise(float (&v)[PART], uint32_t largest, int col) {
    // [quantise]
    const float reciprocal = gg::epilogue::reciprocal_for(epilogue_.d_format);
    const uint32_t code = gg::epilogue::scale_code(largest, reciprocal, norm_);
    const float factor = gg::epilogue::factor_of_code(code, norm_);
#pragma unroll
    for (int c = 0; c < PART; ++c) v[c] *= factor;
    // [/quantise]
    // [codes]
    const int block = col / PART, in_word = block % 4;
    codes_ |= code << 8 * in_word;
    if (in_word < 3) return;
    const gg::ScaleLayout layout = {0, gg::scale_blocks(n_, PART)};  // of how many rows, offsets do not ask
    *reinterpret_cast<uint32_t*>(epilogue_.sfd_row + layout.offset(row_, block - in_word)) = codes_;
    codes_ = 0;
    // [/codes]
  }

  const Epilogue& epilogue_;
  float alpha_, prob_, norm_ = 0;
  Place at_;
  int row_, n_;
  uint32_t codes_ = 0;    // of the scales of up to four parts
  uint32_t bias_ = 0;     // of this lane's column of the next part, as the tensor has it
  uint32_t largest_ = 0;  // magnitude of the row's values
};

}  // namespace chapter
