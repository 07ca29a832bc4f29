// SPDX-License-Identifier: MIT
//
// Chapter 09c: what the storing warps do with sums: scale, add a bias, store C, activate, transform, look for
// the largest, store D.

#pragma once

#include "common/epilogue.cuh"
#include "common/epilogue_glu.cuh"
#include "common/ptx/warp.cuh"
#include "transform.cuh"

namespace chapter {

using gg::Format;

struct Epilogue {             // operands besides the sums, and where results go
  const float *alpha, *prob;  // [G], [rows]
  const void* bias;           // [G,N] of bias_format: f32, bf16 or f16; null: there is none
  Format bias_format;
  float* amax;  // [G]; starts as -infinity
  void* c;      // [rows,N] of c_format: bf16 or f16
  void* d;      // [rows,N/2] of d_format: bf16 or f16
  Format c_format, d_format;
  bool geglu;     // or swiglu
  const bf16* w;  // [16,16], for the tensor cores; null: the butterfly
};

// Who: any thread. Does: stores a part, 16 bytes at a time. `first`: an element of C or D.
template <Format D>
__device__ inline void store_part(void* d, int64_t first, const float (&v)[PART]) {
  constexpr int IN_WORD = gg::epilogue::VALUES_IN_WORD<D>, WORDS = PART / IN_WORD;
  uint32_t words[WORDS];
#pragma unroll
  for (int i = 0; i < WORDS; ++i) words[i] = gg::epilogue::word_of<D>(v + i * IN_WORD);
  auto* to = reinterpret_cast<uint4*>(static_cast<uint32_t*>(d) + first / IN_WORD);
#pragma unroll
  for (int i = 0; i < WORDS; i += 4) to[i / 4] = {words[i], words[i + 1], words[i + 2], words[i + 3]};
}
__device__ inline void store_part(Format format, void* d, int64_t first, const float (&v)[PART]) {
  if (format == Format::bf16) store_part<Format::bf16>(d, first, v);
  if (format == Format::f16) store_part<Format::f16>(d, first, v);
}

// A storing thread's row of a tile.
class Row {
 public:
  // `col`: of C, where the tile begins.
  __device__ Row(const Epilogue& epilogue, int g, int row, int col, int n)
      : epilogue_(epilogue), alpha_(epilogue.alpha[g]), prob_(epilogue.prob[row]), g_(g), row_(row), n_(n) {
    fetch_bias(col);
  }

  // Who: a whole warp. Each lane has the sums of its row's gates from column `col` of C on, and of the ups
  // behind them.
  // [take]
  __device__ void take(const uint32_t (&gate_sums)[PART], const uint32_t (&up_sums)[PART], int col,
                       Handoffs& handoffs) {
    float gate[PART], up[PART];
    scale(gate, gate_sums, gate_bias_);
    scale(up, up_sums, up_bias_);
    fetch_bias(col + 2 * PART);  // for the next part; behind the last one nobody uses it
    const int64_t at = int64_t(row_) * n_ + col;
    store_part(epilogue_.c_format, epilogue_.c, at, gate);
    store_part(epilogue_.c_format, epilogue_.c, at + PART, up);
    float x[PART];
    // From f32, not from what C has been rounded to. A loop for each: a choice inside one would leave a
    // branch behind each element, and no two of them would be computed at a time.
    if (epilogue_.geglu) {
#pragma unroll
      for (int i = 0; i < PART; ++i) x[i] = gg::epilogue::geglu(gate[i], up[i], prob_);
    } else {
#pragma unroll
      for (int i = 0; i < PART; ++i) x[i] = gg::epilogue::swiglu(gate[i], up[i], prob_);
    }
    uint32_t words[PART / 2];  // X
#pragma unroll
    for (int i = 0; i < PART / 2; ++i) words[i] = gg::epilogue::word_of<Format::bf16>(x + 2 * i);
    if (epilogue_.w) {
      handoffs.hand(words);
      collect(handoffs);  // the part before, while the tensor cores transform this one
      waiting_ = col;
    } else {
      for (int i = 0; i < PART; i += W_SIZE) gg::epilogue::hadamard_butterfly(words + i / 2, x + i);
      put(x, col);
    }
  }
  // [/take]

  // Who: a whole warp, behind the row's last part.
  __device__ void finish(Handoffs& handoffs) {
    collect(handoffs);
    // No magnitude is negative, and -infinity is below all as an integer too.
    const uint32_t largest = __reduce_max_sync(~0u, largest_);
    if (gg::ptx::elect()) atomicMax(reinterpret_cast<int*>(epilogue_.amax) + g_, int(largest));
  }

 private:
  __device__ void collect(Handoffs& handoffs) {
    if (waiting_ < 0) return;
    float y[PART];
    handoffs.collect(y);
    put(y, waiting_);
  }
  // Y of the part whose gates begin in column `col` of C.
  __device__ void put(const float (&y)[PART], int col) {
    look(y);
    store_part(epilogue_.d_format, epilogue_.d, (int64_t(row_) * n_ + col) / 2, y);
  }

  // v = alpha * sum, or alpha * sum + bias, whose code each lane has for one column.
  __device__ void scale(float (&v)[PART], const uint32_t (&sums)[PART], uint32_t bias_code) {
    if (epilogue_.bias) {
      const float bias = gg::epilogue::bias_of(epilogue_.bias_format, bias_code);
#pragma unroll
      for (int i = 0; i < PART; ++i)
        v[i] = gg::epilogue::scaled(__uint_as_float(sums[i]), alpha_, __shfl_sync(~0u, bias, i));
    } else {
#pragma unroll
      for (int i = 0; i < PART; ++i) v[i] = gg::epilogue::scaled(__uint_as_float(sums[i]), alpha_);
    }
  }

  // Who: a whole warp. Starts to load the bias of the gates and ups from column `col` of C on. It has a part
  // to arrive in.
  __device__ void fetch_bias(int col) {
    const int64_t at = int64_t(g_) * n_ + min(col, n_ - 2 * PART) + int(threadIdx.x) % 32;
    if (!epilogue_.bias) return;
    gate_bias_ = gg::epilogue::load_bias(epilogue_.bias, epilogue_.bias_format, at);
    up_bias_ = gg::epilogue::load_bias(epilogue_.bias, epilogue_.bias_format, at + PART);
  }

  __device__ void look(const float (&v)[PART]) {
    largest_ = gg::epilogue::amax_with(largest_, gg::epilogue::largest_magnitude(v));
  }

  const Epilogue& epilogue_;
  float alpha_, prob_;
  int g_, row_, n_;
  int waiting_ = -1;  // column of C of the part that has been handed over and not collected; -1: none
  uint32_t gate_bias_ = 0, up_bias_ = 0;  // of this lane's columns of the next part, as the tensor has them
  uint32_t largest_ = 0;                  // magnitude of the row's values
};

}  // namespace chapter
