// SPDX-License-Identifier: MIT
//
// The gated linear unit of a tile, on its sums in registers. A token is a row of A and of D. A column of
// the product is a row of B, and in shared memory a stage row. An output column is one of D.
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

struct Operands {      // of the epilogue, in global memory
  const float* alpha;  // [G]
  const float* prob;   // [rows]
  const void* bias;    // [G,N] of bias_format: f32, bf16 or f16; null: there is none
  gg::Format bias_format;
  bool geglu;  // or swiglu
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

// A thread's own of them: those of its gate column and its up column in each PAIR. `factors` is a
// struct Factors as above, of any size.
template <int PAIRS>
struct ColumnFactors {
  float alpha, gate_bias[PAIRS], up_bias[PAIRS];

  template <class Factors>
  __device__ ColumnFactors(const Factors& factors, int thread) : alpha(factors.alpha) {
#pragma unroll
    for (int pair = 0; pair < PAIRS; ++pair) {
      const int gate =
          pair * PAIR + thread / 32 * 8 + thread % 32 / 4;  // by the order of B's map (launch.cuh)
      gate_bias[pair] = factors.bias[gate];
      up_bias[pair] = factors.bias[gate + PAIR / 2];
    }
  }
};

// Who: a whole warp. The outputs of 32 rows of D in this thread's column of a PAIR: words[j] has those of
// rows 8j + lane % 4 * 2 and the next one, whose probs are prob[2j] and prob[2j + 1].
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
