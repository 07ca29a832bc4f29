// SPDX-License-Identifier: MIT
//
// Sums in registers are scaled, a bias is added, the largest is found, D is quantised
// by rows and by columns.

#pragma once

#include "common/kernel/epilogue.cuh"
#include "common/kernel/ptx/floating.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "output.cuh"
#include "schedule.cuh"

namespace chapter {

// A part is a scale block of each row, and has a lane for each of its columns.
static_assert(PART == 32);
// A thread stores the codes of so many columns of its row as one word of 4 bytes; tiles have whole words.
constexpr int WORD_COLUMNS = ATOM_BLOCKS * PART;
static_assert(ATOM_BLOCKS == 4 && BN % WORD_COLUMNS == 0);
// Rows of a warp, one in each lane, and of a box: a scale block of each column.
constexpr int WARP_ROWS = 32;
static_assert(WARP_ROWS == Output::BOX_ROWS);
// SFD_col: a block's rows are the four scale blocks of an atom, so a group's rows fill whole atoms.
// store.cuh goes on to the end of a word, where an atom's columns end, too: all bytes of an atom are stored.
static_assert(WORD_COLUMNS == ATOM_ROWS);
static_assert(BLOCK_ROWS == ATOM_BLOCKS * WARP_ROWS && PAD_ROWS % BLOCK_ROWS == 0);
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
  // sfd_row, norm_const, d_col, sfd_col come together, or all but norm_const are null: `launch` checks.
  uint8_t* sfd_row;         // a scale's code for PART columns of each row, in whole atoms as SFA
  const float* norm_const;  // [1], above 0: a factor of all scales; read only if there is sfd_row
  void* d_col;              // D once more, with scales of its columns for each 32 rows
  uint8_t* sfd_col;         // those scales: in atoms of 128 columns by four scale blocks
  bool discrete_col_sfd;    // those of a group lie together, as if there were no other group
  int64_t rows;             // of D, those after the last group too: `launch`'s rows
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
        tile_(tile),
        row_(row),
        n_(n) {
    if (operands.sfd_row) norm_ = *operands.norm_const;  // d_col wants it too: never there without sfd_row
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
    // [order]
    const int row0 = row_ - int(threadIdx.x) % WARP_ROWS;       // of the warp
    if (operands_.d_col) quantise_columns(v, row0, col, cols);  // needs v as it is, stores D_col, codes
    if (operands_.sfd_row) quantise_rows(v, largest, col);      // multiplies v for D, stores codes
    if (cols > 0) output_.store(operands_.d_format, &maps_.d, v, row0, col);  // D, with scales or without
    // [/order]
  }

  // Who: a whole warp, after its last part of the tile. Does: raises amax to its lanes' largest.
  __device__ void finish() {
    const uint32_t largest = __reduce_max_sync(~0u, largest_);
    // As signed integers, magnitudes have the order of their numbers, and -infinity is below all of them.
    if (gg::ptx::elect()) atomicMax(reinterpret_cast<int*>(operands_.amax) + tile_.group, int(largest));
  }

 private:
  // Who: a whole warp. Does: starts to load the bias of the 32 columns from `col` on, one in each lane, which
  //   the next `bias_of` converts. Outside 0 to N - 1 there is none to load: the nearest column's stands in.
  __device__ void fetch_bias(int col) {
    const int64_t at = int64_t(tile_.group) * n_ + max(0, min(col + int(threadIdx.x) % 32, n_ - 1));
    if (operands_.bias) next_bias_ = gg::epilogue::load_bias(operands_.bias, operands_.bias_format, at);
  }

  // Who: a whole warp, each lane with a part of its row. Returns: in lane c the bits of the largest magnitude
  //   of column c, those of a NaN if there is one.
  // [trade]
  __device__ static uint32_t largest_of_columns(const float (&v)[PART]) {
    float kept[PART];
#pragma unroll
    for (int c = 0; c < PART; ++c) kept[c] = v[c];
#pragma unroll
    for (int bit = PART / 2; bit > 0; bit /= 2) {
      const bool upper = int(threadIdx.x) & bit;  // keeps the upper half of its columns, gives the lower
#pragma unroll
      for (int c = 0; c < bit; ++c) {
        const float own = upper ? kept[c + bit] : kept[c], given = upper ? kept[c] : kept[c + bit];
        kept[c] = gg::ptx::max_nan(fabsf(own), fabsf(__shfl_xor_sync(~0u, given, bit)));
      }
    }
    return gg::epilogue::magnitude(kept[0]);
  }
  // [/trade]

  // Who: a whole warp; no lane may skip a shuffle. Does: stores the part as a box of D_col, and its 32
  //   codes, lane c that of column c. In columns from N on v must be 0: their codes are stored too, as
  //   they fill an atom. `v` is left as it is, for D. D_col has D's format: `output_` has boxes of one size.
  __device__ void quantise_columns(const float (&v)[PART], int row0, int col, int cols) {
    const int lane = int(threadIdx.x) % 32;
    // [columns]
    const uint32_t column_largest = largest_of_columns(v);  // of column c in lane c
    const float reciprocal = gg::epilogue::reciprocal_for(operands_.d_format);
    const uint32_t code = gg::epilogue::scale_code(column_largest, reciprocal, norm_);
    const float factor = gg::epilogue::factor_of_code(code, norm_);
    float scaled[PART];
#pragma unroll
    for (int c = 0; c < PART; ++c) scaled[c] = v[c] * __shfl_sync(~0u, factor, c);
    if (cols > 0) output_.store(operands_.d_format, &maps_.d_col, scaled, row0, col);
    // [/columns]
    // A row of these layouts is a column of D, and its scale blocks are WARP_ROWS rows of D each. The
    // warp's rows begin at a multiple of WARP_ROWS, so `row_ / WARP_ROWS` is the same in all lanes.
    // [place]
    const bool per_group = operands_.discrete_col_sfd;  // the group's scales are a tensor of their own
    // Layouts of scales. Earlier groups have whole atoms, as groups are multiples of PAD_ROWS: `plan`.
    const gg::ScaleLayout of_all = {n_, gg::scale_blocks(operands_.rows, WARP_ROWS)},
                          of_group = {n_, tile_.group_rows / WARP_ROWS},
                          of_earlier = {n_, tile_.group_begin / WARP_ROWS};
    const int64_t offset =
        per_group ? of_earlier.bytes() + of_group.offset(col + lane, (row_ - tile_.group_begin) / WARP_ROWS)
                  : of_all.offset(col + lane, row_ / WARP_ROWS);
    operands_.sfd_col[offset] = uint8_t(code);  // by no other thread: the scale block is in this warp
    // [/place]
  }

  // Scales this lane's row of a part, a scale block, in place, to what D's format holds: `apply` stores it.
  // The codes of four parts lie together: their word is stored here, with the last of them.
  __device__ void quantise_rows(float (&v)[PART], uint32_t largest, int col) {
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

  // A thread may have 168 registers: each scheduler has 16,384, for up to 3 of the 11 warps. Few are left,
  // and the source does not show what makes ptxas spill some: GG_MACHINE_CODE=ON makes a spill an error.
  const Maps& maps_;  // no copy: TMA reads the kernel's parameter, at its address
  const Operands& operands_;
  Output& output_;
  float alpha_, prob_, norm_ = 0;
  Tile tile_;
  int row_, n_;
  int parts_coded_ = 0;     // so far
  uint32_t codes_ = 0;      // of the word's parts so far, the rest 0; 0 when a word begins
  uint32_t next_bias_ = 0;  // as loaded, of this lane's column of the part that `apply` gets next
  uint32_t largest_ = 0;    // magnitude of this thread's values so far, as bits: no NaN
};

}  // namespace chapter
