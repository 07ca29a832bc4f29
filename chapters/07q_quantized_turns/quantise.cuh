// SPDX-License-Identifier: MIT
//
// A tile's sums in registers become D and D_col in FP8, with their scales, and the group's largest
// magnitude. A scale block is 32 neighbours that share a scale. One of a column is in four lanes of
// a warp. One of a row is in eight lanes each of two warps: each warp finds a warp code, that of
// its 16 columns, and the larger one is the row's. In names, a code is that of a scale (UE8M0), an
// element a number of D or D_col in FP8. `even` and `odd` are a lane's two neighbouring columns.

#pragma once

#include "common/kernel/epilogue.cuh"
#include "common/kernel/ptx/barrier.cuh"
#include "common/kernel/ptx/floating.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "config.cuh"
#include "store.cuh"

namespace chapter {

struct Operands {      // of the epilogue, and where its results go
  const float* alpha;  // [G]
  const float* prob;   // [rows], at a multiple of 8 bytes
  const void* bias;    // [G,N] of bias_format: f32, bf16 or f16; null: there is none
  gg::Format bias_format;
  const float* norm_const;  // a factor of all scales
  gg::Format d_format;      // E4M3 or E5M2, of D and D_col
  float* amax;              // [G], of |v|; the caller fills in -infinity, which a group without rows keeps
  uint8_t* sfd_row;         // scale codes of D: atoms of 128 rows by 4 * 32 columns
  uint8_t* sfd_col;         // scale codes of D_col: atoms of 128 columns by 4 * 32 rows
  bool discrete_col_sfd;    // SFD_col has the atoms of a group together
  int64_t rows;             // of D, D_col and prob: all groups', and any after the last group's
};

constexpr int SCALE_BLOCK = 32;  // neighbours that share a scale
constexpr int ATOM = 128;        // columns of D that an atom has, of SFD_row and of SFD_col
static_assert(ATOM == gg::ScaleLayout::kAtomBlocks * SCALE_BLOCK && ATOM == gg::ScaleLayout::kAtomRows);
// The stores of codes repeat ScaleLayout: the codes of a row of SFD_row, or a column of SFD_col, are
// four bytes in a word, and that of the row or column 64 further is two words on.
static_assert(gg::ScaleLayout{ATOM, 8}.offset(0, 3) == 3 && gg::ScaleLayout{ATOM, 8}.offset(64, 0) == 8 &&
              gg::ScaleLayout{ATOM, 8}.offset(0, 4) == gg::ScaleLayout::kAtomBytes);
// A scale block of a row is in two warps, and one of a column is the rows of a box.
static_assert(2 * WARP_COLUMNS == SCALE_BLOCK && STEP == SCALE_BLOCK);

// Who: a whole consumer, for a tile of 128 columns, in two halves. A lane has the sums of two
// neighbours of its warp's 16 columns of each half, 2 * (lane / 4) and the next one. Of each box,
// 32 rows, it has eight: 8j + 2 * (lane % 4) + e, in the order of `sum_of`.
template <class C>
class Quantiser {
 public:
  // Loads alpha, norm_const, biases and the probs of box 0 (`apply` loads the others), so call it
  // early. Ends with a bar_sync on which `apply` and, in multiply.cuh, a wrong guess rely: it stays
  // before the tile's first look at `full`. `thread`: this one's number in the consumer. `barrier`:
  // the consumer's named barrier, BoxStore's too. All of the consumer's threads meet there.
  __device__ Quantiser(const Operands& operands, const gg::Offsets& offsets, const Tile& tile, int n,
                       WarpCodes<C::BM>& warp_codes, int thread, int barrier)
      : operands_(operands),
        tile_(tile),
        n_(n),
        thread_(thread),
        warp_codes_(warp_codes),
        alpha_(operands.alpha[tile.group]),
        norm_(*operands.norm_const) {
    load_probs(0);
    if (operands.bias) {
#pragma unroll
      for (int half = 0; half < C::HALVES; ++half) {
        const int64_t column = int64_t(tile.group) * n + min(warp_column(half) + lane() / 4 * 2, n - 2);
        even_bias_[half] = bias_at(column);
        odd_bias_[half] = bias_at(column + 1);
      }
    }
    // Columns of D are ScaleLayout's rows here. SFD_col is one layout of all rows of D, or one of
    // each group's rows, one layout after the other. Groups are multiples of 128 rows, so the
    // layouts of the groups before have as many bytes as one layout of their `begin` rows.
    const int begin = operands.discrete_col_sfd ? offsets[tile.group] : 0;
    const int64_t rows = operands.discrete_col_sfd ? offsets[tile.group + 1] - begin : operands.rows;
    const gg::ScaleLayout before = {n, begin / SCALE_BLOCK};
    const gg::ScaleLayout layout = {n, gg::scale_blocks(rows, SCALE_BLOCK)};
    first_scale_block_ = (tile.row0 - begin) / SCALE_BLOCK;
    sfd_col_codes_ = operands.sfd_col + before.bytes() + layout.offset(warp_column(0) + lane() / 2, 0);
    // [ready]
    // After the bar_sync `apply` may write outputs and warp codes: TMA has read all outputs that
    // this consumer has sent, and no thread still reads warp codes of its last tile.
    BoxStore<C>::wait_until_read();
    gg::ptx::bar_sync(barrier, 128);
    // [/ready]
  }

  // Quantises all rows of the tile: as many as SUMS is for, since tile.rows is a multiple of STEP.
  // With other rows it would overwrite those after the tile: main.cu's m_multiple rules them out.
  // warp_codes_ is written before the bar_sync in the first `send`, and read between that and the one
  // in the second `send`. All loops are unrolled, so `box` and `half` are constants, and sums and
  // probs_ are registers. Values replace the sums that they are made of.
  // [apply]
  template <int SUMS>
  __device__ __forceinline__ void apply(float (&left)[SUMS], float (&right)[SUMS], BoxStore<C>& store) {
    static_assert(SUMS % 16 == 0 && SUMS <= C::BM / 2);  // whole boxes, 16 sums in each half
    constexpr int BOXES = SUMS / 16;
    const auto sums_of = [&](int half, int box) -> float(&)[16] {
      return reinterpret_cast<float(&)[16]>((half == 0 ? left : right)[box * 16]);
    };
    uint32_t amax_bits = 0;
#pragma unroll
    for (int box = 0; box < BOXES; ++box) {
      if (box + 1 < BOXES) load_probs(box + 1);  // in time for the next rows
#pragma unroll
      for (int half = 0; half < C::HALVES; ++half) {
        auto& v = sums_of(half, box);
        make_values(v, probs_[box % 2], half);
        // Writes warp codes, too. amax leaves out a row's 16 columns of this warp where one is NaN.
        amax_bits = gg::epilogue::amax_with(amax_bits, trade_row_maxima(v, box, half));
        quantise_columns(v, box, half, store);
      }
    }
    amax_bits = __reduce_max_sync(~0u, amax_bits);
    // As signed integers, magnitudes have the order of their numbers, and -infinity is below
    // all of them.
    if (gg::ptx::elect()) atomicMax(reinterpret_cast<int*>(operands_.amax) + tile_.group, int(amax_bits));
    store.send(D_COL, tile_);  // after its bar_sync the warp codes of all warps are there, too
#pragma unroll
    for (int box = 0; box < BOXES; ++box) {
#pragma unroll
      for (int half = 0; half < C::HALVES; ++half) quantise_rows(sums_of(half, box), box, half, store);
    }
    store_sfd_row<BOXES * STEP>();
    store.send(D, tile_);
  }
  // [/apply]

 private:
  // Returns which of a lane's 16 sums of a box is that of row 8j + 2 * (lane % 4) + e, in its even
  // or odd column. By wgmma sums 4j + e are of row lane / 4 of a warp's 16 of B, and sums
  // 4j + 2 + e of the row 8 further: launch.cuh's map puts the next column there. These rely on it
  // too: even_bias_ and odd_bias_, sfd_col_codes_, elements_of.
  static constexpr int EVEN = 0, ODD = 1;
  __device__ static constexpr int sum_of(int j, int e, int odd) { return j * 4 + odd * 2 + e; }
  __device__ static constexpr bool is_odd(int sum) { return sum / 2 % 2; }
  __device__ static constexpr int j_of(int sum) { return sum / 4; }
  __device__ static constexpr int e_of(int sum) { return sum % 2; }
  __device__ int lane() const { return thread_ % 32; }
  __device__ int warp() const { return thread_ / 32; }
  // The first of the warp's columns in a half.
  __device__ int warp_column(int half) const { return tile_.col0 + half * HALF + warp() * WARP_COLUMNS; }
  // Whether an atom has this tile's columns: a pair's second block may have a tile beyond N. An atom
  // that has some of them has all, and from N on their codes are 0.
  static_assert(C::BN == ATOM);
  __device__ bool has_codes() const { return tile_.col0 < n_; }

  __device__ float bias_at(int64_t at) const {
    const uint32_t bits = gg::epilogue::load_bias(operands_.bias, operands_.bias_format, at);
    return gg::epilogue::bias_of(operands_.bias_format, bits);
  }
  // prob of this lane's rows of a box.
  __device__ void load_probs(int box) {
    const float* first = operands_.prob + tile_.row0 + box * STEP + lane() % 4 * 2;
#pragma unroll
    for (int j = 0; j < 4; ++j) probs_[box % 2][j] = *reinterpret_cast<const float2*>(first + j * 8);
  }

  // Makes values of sums. A warp's columns are all of D, or none is: N is a multiple of 16.
  __device__ void make_values(float (&v)[16], const float2 (&probs)[4], int half) const {
    const auto prob_of = [&](int i) { return e_of(i) ? probs[j_of(i)].y : probs[j_of(i)].x; };
    if (operands_.bias) {
#pragma unroll
      for (int i = 0; i < 16; ++i)
        v[i] =
            gg::epilogue::value_of(v[i], alpha_, prob_of(i), is_odd(i) ? odd_bias_[half] : even_bias_[half]);
    } else {
#pragma unroll
      for (int i = 0; i < 16; ++i) v[i] = gg::epilogue::value_of(v[i], alpha_, prob_of(i));
    }
    // From N on a bias, or NaN of A times 0, would count in maxima, and make codes other than 0.
    // Set after the values: where zeros were the first branch of the `if` above, ptxas 13.0 spilled
    // over 4 KB in 07o's tiles of 256 rows.
    if (warp_column(half) >= n_) {
#pragma unroll
      for (int i = 0; i < 16; ++i) v[i] = 0;
    }
  }

  // Finds the largest magnitude of each row of a box in this warp's 16 columns, and writes the code
  // that these alone would have to warp_codes_. Eight lanes have the same rows, those with the same
  // lane % 4: they trade, until each has one row, row_of_lane. Returns the magnitude of that row's
  // 16 columns, NaN if one is NaN.
  // [trade]
  __device__ uint32_t trade_row_maxima(const float (&v)[16], int box, int half) const {
    float kept[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {  // row 8 * (i / 2) + 2 * (lane % 4) + i % 2
      const float even_value = v[sum_of(i / 2, i % 2, EVEN)], odd_value = v[sum_of(i / 2, i % 2, ODD)];
      kept[i] = gg::ptx::max_nan(fabsf(even_value), fabsf(odd_value));
    }
#pragma unroll
    for (int rows_kept = 4; rows_kept > 0; rows_kept /= 2) {
      const bool keeps_upper = lane() & rows_kept * 4;  // the upper half of its rows, and gives the lower
#pragma unroll
      for (int i = 0; i < rows_kept; ++i) {
        const float own = keeps_upper ? kept[i + rows_kept] : kept[i];
        const float given = keeps_upper ? kept[i] : kept[i + rows_kept];
        kept[i] = gg::ptx::max_nan(own, __shfl_xor_sync(~0u, given, rows_kept * 4));
      }
    }
    const uint32_t largest_bits = gg::epilogue::magnitude(kept[0]);
    warp_codes_.of[box * STEP + row_of_lane()][half][warp()] = uint8_t(code_of(largest_bits));
    return largest_bits;
  }
  // [/trade]
  // row_of_lane returns the row of a box that this lane has after the trade, lane_of_row the lane
  // that has row 8j + 2 * (lane % 4) + e. Both follow from wgmma's order of sums, not from B's map.
  __device__ int row_of_lane() const { return lane() / 8 * 8 + lane() % 4 * 2 + lane() / 4 % 2; }
  __device__ int lane_of_row(int j, int e) const { return j * 8 + e * 4 + lane() % 4; }

  // `largest_bits`: of the largest magnitude of a scale block.
  __device__ uint32_t code_of(uint32_t largest_bits) const {
    return gg::epilogue::scale_code(largest_bits, gg::epilogue::reciprocal_for(operands_.d_format), norm_);
  }

  // The 32 rows of a box are a scale block of each column. Four lanes have the same two columns,
  // those with the same lane / 4. Lanes 2c and 2c + 1 find the code of the warp's column c, and
  // the even one stores it.
  // [columns]
  __device__ void quantise_columns(const float (&v)[16], int box, int half, BoxStore<C>& store) const {
    float even_largest = 0, odd_largest = 0;
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      float& so_far = is_odd(i) ? odd_largest : even_largest;
      so_far = gg::ptx::max_nan(so_far, fabsf(v[i]));
    }
    const bool keeps_odd = lane() & 2;  // and gives the even column
    const float own = keeps_odd ? odd_largest : even_largest, given = keeps_odd ? even_largest : odd_largest;
    float kept = gg::ptx::max_nan(own, __shfl_xor_sync(~0u, given, 2));
    kept = gg::ptx::max_nan(kept, __shfl_xor_sync(~0u, kept, 1));
    const uint32_t code = code_of(gg::epilogue::magnitude(kept));
    const float factor = gg::epilogue::factor_of_code(code, norm_);
    const float even_factor = __shfl_sync(~0u, factor, lane() & ~2),
                odd_factor = __shfl_sync(~0u, factor, lane() | 2);
    float scaled[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) scaled[i] = v[i] * (is_odd(i) ? odd_factor : even_factor);
    store.take(D_COL, box, half, elements_of(scaled).reg);
    if (has_codes() && lane() % 2 == 0) {
      const int scale_block = first_scale_block_ + box;
      // A byte: tiles begin at multiples of STEP, and a word has four scale blocks. sfd_col_codes_
      // is of half 0, and the lane's column of half 1 is HALF columns further: 8 bytes on.
      static_assert(gg::ScaleLayout{ATOM, 8}.offset(HALF, 0) == 8 && C::BN == ATOM);
      sfd_col_codes_[scale_block / 4 * gg::ScaleLayout::kAtomBytes + scale_block % 4 + half * 8] =
          uint8_t(code);
    }
  }
  // [/columns]

  // [rows]
  __device__ void quantise_rows(const float (&v)[16], int box, int half, BoxStore<C>& store) const {
    const uint32_t code = code_of_row(codes_of_warps(box * STEP + row_of_lane(), half), warp() / 2);
    const float factor = gg::epilogue::factor_of_code(code, norm_);
    float scaled[16];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float of_row = __shfl_sync(~0u, factor, lane_of_row(i / 2, i % 2));
      const int even_at = sum_of(i / 2, i % 2, EVEN), odd_at = sum_of(i / 2, i % 2, ODD);
      scaled[even_at] = v[even_at] * of_row;
      scaled[odd_at] = v[odd_at] * of_row;
    }
    store.take(D, box, half, elements_of(scaled).reg);
  }
  // [/rows]
  // Returns the codes that the four warps have left for a row in a half, that of warp w in byte w.
  __device__ uint32_t codes_of_warps(int row, int half) const {
    static_assert(sizeof(WarpCodes<C::BM>::of[0][0]) == sizeof(uint32_t));
    static_assert(sizeof(WarpCodes<C::BM>::of[0]) == C::HALVES * HALF / WARP_COLUMNS);  // all halves' warps
    return *reinterpret_cast<const uint32_t*>(warp_codes_.of[row][half]);
  }
  // The row's code for the columns of warps 0 and 1 (warp_pair 0), or 2 and 3 (1): the larger one
  // of two warps' codes. A larger magnitude never has a smaller code, and NaN has the last one.
  __device__ static uint32_t code_of_row(uint32_t of_warps, int warp_pair) {
    const uint32_t two = of_warps >> warp_pair * 16;
    return gg::epilogue::larger(two & 255, two >> 8 & 255);
  }

  struct Elements {
    uint32_t reg[4];
  };
  // The elements of a box, in the order of BoxStore::take: reg[j] has those of rows
  // 8j + 2 * (lane % 4) and the next one, of two columns each. The even column's is in the lower
  // byte of 16 bits, as D has it in memory.
  __device__ Elements elements_of(const float (&scaled)[16]) const {
    Elements elements;
    // [elements]
    const auto convert = [&]<gg::Format FORMAT>(std::integral_constant<gg::Format, FORMAT>) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {  // two columns of a row, then two of the next row
        const float four[] = {scaled[sum_of(j, 0, EVEN)], scaled[sum_of(j, 0, ODD)],
                              scaled[sum_of(j, 1, EVEN)], scaled[sum_of(j, 1, ODD)]};
        elements.reg[j] = gg::epilogue::word_of<FORMAT>(four);
      }
    };
    // [/elements]
    if (operands_.d_format == gg::Format::e5m2) {
      convert(std::integral_constant<gg::Format, gg::Format::e5m2>());
    } else {
      convert(std::integral_constant<gg::Format, gg::Format::e4m3>());
    }
    return elements;
  }

  // Stores the four codes of each row: a word of an atom.
  // [codes]
  template <int ROWS>
  __device__ void store_sfd_row() const {
    if (!has_codes()) return;
    const gg::ScaleLayout layout = {operands_.rows, gg::scale_blocks(n_, SCALE_BLOCK)};
    const int row = thread_;
    static_assert(ROWS <= 128);  // a thread for each
    if (row >= ROWS) return;
    uint32_t codes = 0;
#pragma unroll
    for (int half = 0; half < C::HALVES; ++half) {
      const uint32_t of_warps = codes_of_warps(row, half);
      codes |= (code_of_row(of_warps, 0) | code_of_row(of_warps, 1) << 8) << half * 16;
    }
    *reinterpret_cast<uint32_t*>(operands_.sfd_row +
                                 layout.offset(tile_.row0 + row, tile_.col0 / SCALE_BLOCK)) = codes;
  }
  // [/codes]

  const Operands& operands_;
  Tile tile_;
  int n_, thread_;
  WarpCodes<C::BM>& warp_codes_;
  float alpha_, norm_, even_bias_[C::HALVES] = {}, odd_bias_[C::HALVES] = {};
  float2 probs_[2][4];      // of this lane's rows, of two boxes
  int first_scale_block_;   // number of the tile's first scale block among those of a column of SFD_col
  uint8_t* sfd_col_codes_;  // of half 0: where scale block 0 of this lane's column has its code
};

}  // namespace chapter
