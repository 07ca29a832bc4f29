// SPDX-License-Identifier: MIT
//
// Scales sums, adds a bias, stores C, makes X of gates and ups. Keeps X until the warp has read all
// its sums; then X is sent and comes back as Y, or the butterfly makes Y at once. Stores Y as D.

#pragma once

#include "common/kernel/epilogue.cuh"
#include "common/kernel/epilogue_glu.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "output.cuh"
#include "schedule.cuh"
#include "transform.cuh"

namespace chapter {

struct Operands {      // of the epilogue, and where its results go
  const float* alpha;  // [G]
  const float* prob;   // [rows]
  const void* bias;    // [G,N] of bias_format: f32, bf16 or f16; null: there is none
  Format bias_format;
  // Rows of padding count too: with zeros in their A and prob they do not raise amax.
  float* amax;  // [G]; starts as -infinity, which an expert without rows keeps
  void* c;      // [rows,N] of c_format: bf16 or f16
  Format c_format;
  void* d;  // [rows,N/2] of d_format: bf16 or f16
  Format d_format;
  bool geglu;     // or swiglu
  const bf16* w;  // [16,16], for the tensor cores; null: the butterfly makes Hadamard's Y
  __device__ bool butterfly() const { return !w; }
};

// A storing thread's columns of a row of a tile: those of its half.
class Epilogue {
 public:
  // `first_col`: the `col` of the first `apply`, whose biases are loaded here.
  // `x_place`: for X and Y, in this warp's lanes. Only `finish` writes there: sums may lie there.
  __device__ Epilogue(const Maps& maps, const Operands& operands, Output& output, Exchange& exchange,
                      gg::ptx::TmemAddr x_place, const Tile& tile, int row, int n, int first_col)
      : maps_(maps),
        operands_(operands),
        output_(output),
        exchange_(exchange),
        x_place_(x_place),
        alpha_(operands.alpha[tile.group]),
        prob_(operands.prob[row]),
        group_(tile.group),
        row_(row),
        n_(n) {
    fetch_bias(first_col);
  }

  // Who: a whole warp. Each lane has the sums of its row's gates from column `col` of C on, a multiple of
  //   2 * PART, and of the ups after them. `next_col` must be the next call's `col`, else that call adds
  //   wrong biases: they are loaded here. Nothing checks it. In the last call any number, also below 0.
  // [apply]
  __device__ void apply(const uint32_t (&gate_sums)[PART], const uint32_t (&up_sums)[PART], int col,
                        int next_col) {
    float gate[PART], up[PART];
    scale(gate, gate_sums, gate_bias_);
    scale(up, up_sums, up_bias_);
    fetch_bias(next_col);  // overwrites the biases that both calls of `scale` have used
    output_.store(operands_.c_format, &maps_.c, gate, row0(), col);
    output_.store(operands_.c_format, &maps_.c, up, row0(), col + PART);
    float x[PART];
    // From f32, not from what C has been rounded to. A loop for each activation: a choice inside one loop
    // would leave a branch for each output, and the compiler could not interleave outputs.
    if (operands_.geglu) {
#pragma unroll
      for (int i = 0; i < PART; ++i) x[i] = gg::epilogue::geglu(gate[i], up[i], prob_);
    } else {
#pragma unroll
      for (int i = 0; i < PART; ++i) x[i] = gg::epilogue::swiglu(gate[i], up[i], prob_);
    }
    // [keep]
    older_ = newer_;  // nothing, then read 0
    newer_.col = col;
#pragma unroll
    for (int i = 0; i < PART / 2; ++i) newer_.x[i] = gg::epilogue::word_of<Format::bf16>(x + 2 * i);
    if (operands_.butterfly()) {  // x becomes Y, and D is stored at once. Otherwise `finish` does both.
      for (int i = 0; i < PART; i += W_SIZE) gg::epilogue::hadamard_butterfly(newer_.x + i / 2, x + i);
      store(x, col);
    }
    // [/keep]
  }
  // [/apply]

  // Who: a whole warp, after the last of a tile's two, one or no reads. It has loaded all sums that
  //   it needs, so X may overwrite its lanes; Y may when all eight warps of the half have sent X.
  // [finish]
  __device__ void finish() {
    if (!operands_.butterfly()) {
      transform(older_);  // read 0, if there were two
      transform(newer_);  // the last read, if there was one
    }
    const uint32_t largest = __reduce_max_sync(~0u, largest_);
    // As signed integers, magnitudes have the order of their numbers, and -infinity is below all of them.
    if (gg::ptx::elect()) atomicMax(reinterpret_cast<int*>(operands_.amax) + group_, int(largest));
  }
  // [/finish]

 private:
  struct Kept {
    uint32_t x[PART / 2];  // X of a part, two bf16 in a word
    int col = -1;          // of C, where its gates begin; -1: there is no such part
  };

  // Does: makes D of a part that was kept. After: its Y has been received, so the columns at x_place_
  //   are free for the next X.
  // [exchange]
  __device__ void transform(const Kept& kept) {
    if (kept.col < 0) return;
    float y[PART];
    exchange_.send_x(x_place_, kept.x);
    exchange_.receive_y(x_place_, y);
    store(y, kept.col);
  }
  // [/exchange]

  // Y of the part whose gates begin in column `col` of C.
  __device__ void store(const float (&y)[PART], int col) {
    largest_ = gg::epilogue::amax_with(largest_, gg::epilogue::largest_magnitude(y));
    output_.store(operands_.d_format, &maps_.d, y, row0(), col / 2);
  }

  __device__ int row0() const { return row_ - int(threadIdx.x) % 32; }  // of the warp

  // Who: a whole warp, since lane i has the bias of v[i], as `bias_code`, and passes it to all.
  // Does: v = alpha * sum, or with a bias alpha * sum + bias.
  __device__ void scale(float (&v)[PART], const uint32_t (&sums)[PART], uint32_t bias_code) {
    if (operands_.bias) {
      const float bias = gg::epilogue::bias_of(operands_.bias_format, bias_code);
#pragma unroll
      for (int i = 0; i < PART; ++i)
        v[i] = gg::epilogue::scaled(__uint_as_float(sums[i]), alpha_, __shfl_sync(~0u, bias, i));
    } else {
#pragma unroll
      for (int i = 0; i < PART; ++i) v[i] = gg::epilogue::scaled(__uint_as_float(sums[i]), alpha_);
    }
  }

  // Who: a whole warp. Before: both calls of `scale` for a read have used its biases, if there was one.
  // Does: starts to load two biases in lane i: of the gate in column `col` + i of C, and of its up,
  //   PART columns further. `col`: where the gates of the next read begin. Without a next read it
  //   may be any number: clamped to C's columns, it loads biases that nothing uses.
  __device__ void fetch_bias(int col) {
    const int64_t at = int64_t(group_) * n_ + max(0, min(col, n_ - 2 * PART)) + int(threadIdx.x) % 32;
    if (!operands_.bias) return;
    gate_bias_ = gg::epilogue::load_bias(operands_.bias, operands_.bias_format, at);
    up_bias_ = gg::epilogue::load_bias(operands_.bias, operands_.bias_format, at + PART);
  }

  const Maps& maps_;  // no copy: TMA reads the kernel's parameter, at its address
  const Operands& operands_;
  Output& output_;
  Exchange& exchange_;
  gg::ptx::TmemAddr x_place_;
  float alpha_, prob_;
  int group_, row_, n_;
  // X of the last two reads. An array that the read indexes would be in local memory.
  static_assert(READS <= 2);  // X of a third one would push out that of the first
  Kept older_, newer_;
  uint32_t gate_bias_ = 0, up_bias_ = 0;  // of this lane's next gate and up, as the tensor has them
  uint32_t largest_ = 0;                  // bits of the largest magnitude of this thread's outputs so far
};

}  // namespace chapter
