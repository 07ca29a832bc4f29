// SPDX-License-Identifier: MIT
//
// The gated linear unit of a tile, on its sums in registers. A token is a row of A and of D. A column of
// the product is a row of B, and in shared memory a stage row. An output column is one of X and of D.
// B's map (launch.cuh) puts a gate 8 stage rows before its up, so that wgmma leaves the sums of both to
// the same thread: no sum is exchanged, and none was rounded before.

#pragma once

#include "common/kernel/epilogue.cuh"
#include "common/kernel/epilogue_glu.cuh"
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
  const bf16* w;  // [16,16]; null: the butterfly
  float* amax;    // [G], of |Y|; the caller fills in -infinity, which a group without rows keeps
};

// [factors]
// A thread's factors and biases in a tile.
struct Factors {
  float alpha, gate_bias = -0.0f, up_bias = -0.0f;  // -0: no bias. x + -0 is x, a zero with its sign too
  const float* prob;                                // of the tile's tokens
  int rows;                                         // how many tokens the tile has
  float first_prob;  // prob_of(0), which reads prob and rows: declare these before it

  // Who: a whole consumer. col0: its first column of B. From n on its columns are another
  // group's or zeros, and their outputs are not stored: `min` only keeps the reading of a bias
  // inside the tensor.
  __device__ Factors(const Operands& operands, const Tile& tile, int col0, int n)
      : alpha(operands.alpha[tile.group]),
        prob(operands.prob + tile.row0),
        rows(tile.rows),
        first_prob(prob_of(0)) {
    if (!operands.bias) return;
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32 % 4;
    // The element of the bias of this thread's gate column, by the order of B's map (launch.cuh).
    const int64_t gate = int64_t(tile.group) * n + min(col0, n - PAIR) + warp * 8 + lane / 4;
    const auto bias_at = [&](int64_t at) {
      const uint32_t code = gg::epilogue::load_bias(operands.bias, operands.bias_format, at);
      return gg::epilogue::bias_of(operands.bias_format, code);
    };
    gate_bias = bias_at(gate);
    up_bias = bias_at(gate + PAIR / 2);
  }
  // The prob of the tile's token first + lane; past the last token that of the last one.
  __device__ float prob_of(int first) const { return prob[min(first + int(threadIdx.x) % 32, rows - 1)]; }
};
// [/factors]

// Who: a whole warp. The outputs of 32 tokens, prob being that of token `lane`: words[j] has those of
// tokens 8j + lane % 4 * 2 and the next one, in this thread's output column. sums and words point
// into arrays of `activate`. These stay in registers, as calls are inlined and indices are constants.
// [glu]
template <class Activation>
__device__ __forceinline__ void activate_rows(Activation activation, const float* sums,
                                              const Factors& factors, float prob, uint32_t* words) {
  const int lane = int(threadIdx.x) % 32;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    float x[2];
#pragma unroll
    for (int e = 0; e < 2; ++e) {  // of token 8j + lane % 4 * 2 + e
      const float gate = gg::epilogue::scaled(sums[j * 4 + e], factors.alpha, factors.gate_bias);
      // The same token, 8 stage rows further: there B's map has put the up, and wgmma's layout has
      // the sum two registers further.
      const float up = gg::epilogue::scaled(sums[j * 4 + 2 + e], factors.alpha, factors.up_bias);
      x[e] = activation(gate, up, __shfl_sync(~0u, prob, j * 8 + lane % 4 * 2 + e));
    }
    words[j] = gg::ptx::cvt_rn_x2<bf16>(x[0], x[1]);
  }
}
// [/glu]

// [activate]
// Activates all tokens of the tile, 32 at a time, those of a box of D. `geglu` is tested once for
// each 32. With a test for each output ptxas did not interleave two outputs' instructions. With one
// test before the loop it interleaved those of all tokens, needed too many registers and spilled.
template <int SUMS>
__device__ __forceinline__ void activate(const float (&sums)[SUMS], const Factors& factors, bool geglu,
                                         uint32_t (&words)[SUMS / 4]) {
  static_assert(STEP == 32);  // tokens of a box, one for each lane: 16 sums of a thread, in 4 words
  float prob = factors.first_prob;
#pragma unroll
  for (int box = 0; box < SUMS / 16; ++box) {
    const float next = box + 1 < SUMS / 16 ? factors.prob_of(box * 32 + 32) : 0;  // in time for the next ones
    if (geglu) {
      activate_rows(gg::epilogue::geglu, sums + box * 16, factors, prob, words + box * 4);
    } else {
      activate_rows(gg::epilogue::swiglu, sums + box * 16, factors, prob, words + box * 4);
    }
    prob = next;
  }
}
// [/activate]

}  // namespace chapter
