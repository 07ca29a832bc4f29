// SPDX-License-Identifier: MIT
//
// The gated linear unit of a tile, on its sums in registers. A token is a row of A and of D. A column of
// the product is a row of B, and in shared memory a stage row. An output column is one of X and of D.
// B's map (launch.cuh) puts a gate 8 stage rows before its up, so that wgmma leaves the sums of both to
// the same thread: no sum is exchanged, and none was rounded before.

#pragma once

#include "common/kernel/epilogue.cuh"
#include "common/kernel/epilogue_glu.cuh"
#include "common/kernel/ptx/barrier.cuh"
#include "common/kernel/ptx/cvt.cuh"
#include "config.cuh"

namespace chapter {

static_assert(PAIR == 2 * gg::epilogue::GLU_COLUMNS);  // as gate_column and up_column count

struct Operands {      // of the epilogue, and a result of it: amax. In global memory
  const float* alpha;  // [G]
  const float* prob;   // [rows]
  const void* bias;    // [G,N] of bias_format: f32, bf16 or f16; null: there is none
  gg::Format bias_format;
  bool geglu;     // or swiglu
  const bf16* w;  // [16,16]
  float* amax;    // [G], of |Y|; the caller fills in -infinity, which a group without rows keeps
};

// [factors]
// The factors of a consumer's tile, and where it is. They are in shared memory: in registers they would not
// fit beside the sums of a tile of 192 rows.
template <int ROWS, int COLUMNS>
struct Factors {
  float prob[ROWS];     // of the tile's rows
  float bias[COLUMNS];  // of its columns of B
  float alpha;
  int row0, rows, col0;  // as in Tile

  // Who: a whole consumer, `thread` being a thread's number in it, before it multiplies the tile: it has
  // registers then, and time, for as a rule the other one multiplies. After `barrier`, a named barrier
  // of this consumer, all its threads may read the factors. Before: all have read those of the tile
  // before for the last time, and have met since, at the bar_sync after write_box in BoxStore::put of
  // that tile's last box.
  // The `min` of prob is for foreign rows, that of the bias for columns from n on, which are another
  // group's or zeros. Both only keep the read inside its tensor: their outputs are not stored.
  __device__ void read(const Operands& operands, const Tile& tile, int n, int thread, int barrier) {
#pragma unroll
    for (int row = thread; row < ROWS; row += 128) {
      prob[row] = operands.prob[tile.row0 + min(row, tile.rows - 1)];
    }
    static_assert(COLUMNS == 128);  // a thread has one
    float of_column = -0.0f;        // which changes no sum, not the sign of a zero either
    if (operands.bias) {
      const int column = min(tile.col0 + thread, n - PAIR + thread % PAIR);
      const int64_t at = int64_t(tile.group) * n + column;
      of_column = gg::epilogue::bias_of(operands.bias_format,
                                        gg::epilogue::load_bias(operands.bias, operands.bias_format, at));
    }
    bias[thread] = of_column;
    if (thread == 0) {
      alpha = operands.alpha[tile.group];
      row0 = tile.row0;
      rows = tile.rows;
      col0 = tile.col0;
    }
    gg::ptx::bar_sync(barrier, 128);
  }
};
// [/factors]

// Returns the first of the 8 gates whose sums `warp` of a consumer has in `half`, as a column of the
// tile's 128 of B. Their ups are PAIR / 2 further. B's map (launch.cuh) must be in this order.
__host__ __device__ constexpr int first_gate(int warp, int half) {
  return warp / 2 * PAIR + warp % 2 * 16 + half * 8;
}

// Warp w's gates make columns 16w to 16w + 15 of D, half 0 the first 8 of them. So transform.cuh takes
// words[0] and words[1] for 16 neighbours, write_box (store.cuh) has chunks 2w and 2w + 1 for warp
// w, and `is_inside` (multiply.cuh) begins at column 16w.
constexpr bool makes_16_neighbours() {
  for (int eighth = 0; eighth < 8; ++eighth) {  // of the tile's 64 columns of D: a chunk, a warp's half
    const int gate = first_gate(eighth / 2, eighth % 2);
    if (gate % PAIR >= PAIR / 2 || gate / PAIR * (PAIR / 2) + gate % PAIR != eighth * 8) return false;
  }
  return true;
}
static_assert(makes_16_neighbours());

// A thread's own factors: those of the gate and the up of each of its two columns of D, one in each
// half, 8 apart. `factors` is a struct Factors as above, of any size.
struct ColumnFactors {
  float alpha, gate_bias[2], up_bias[2];

  template <class Factors>
  __device__ ColumnFactors(const Factors& factors, int thread) : alpha(factors.alpha) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int gate = first_gate(thread / 32, half) + thread % 32 / 4;
      gate_bias[half] = factors.bias[gate];
      up_bias[half] = factors.bias[gate + PAIR / 2];
    }
  }
};

// Who: a whole warp. The outputs of 32 rows of X in one of this thread's two columns: words[j] has
// those of rows 8j + lane % 4 * 2 and the next one, whose probs are prob[2j] and prob[2j + 1].
// [glu]
template <class Activation>
__device__ __forceinline__ void activate_rows(Activation activation, const float* sums, float alpha,
                                              float gate_bias, float up_bias, const float (&prob)[8],
                                              uint32_t (&words)[4]) {
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    float x[2];
#pragma unroll
    for (int e = 0; e < 2; ++e) {  // of token 8j + lane % 4 * 2 + e
      const float gate = gg::epilogue::scaled(sums[j * 4 + e], alpha, gate_bias);
      // The same token, 8 stage rows further: there B's map has put the up, and wgmma's layout has
      // the sum two registers further.
      const float up = gg::epilogue::scaled(sums[j * 4 + 2 + e], alpha, up_bias);
      x[e] = activation(gate, up, prob[j * 2 + e]);
    }
    words[j] = gg::ptx::cvt_rn_x2<bf16>(x[0], x[1]);
  }
}
// [/glu]

}  // namespace chapter
