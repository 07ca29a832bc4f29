// SPDX-License-Identifier: MIT
//
// Gated linear units and the Hadamard transform, on registers: what one thread makes of the sums of
// its row. On the host the same functions, with exact in place of approximate instructions, so that
// tests can call them. NaN and infinities go through by the rules of f32 arithmetic. Nothing here
// needs more than sm_80.
//
// In the GEMM's N columns, gates and ups stand in turn, 32 of each: gate i and up 32 + i of 64
// columns make output column i of 32. The formulas are those of cudnn-frontend's operator "Grouped
// GEMM + GLU + Hadamard". tests/epilogues.md lists its features and their tests.

#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "common/kernel/types.cuh"
#ifdef __CUDACC__
#include "common/kernel/ptx/floating.cuh"
#endif

namespace gg::epilogue {

// The sum c that the activation takes, before it is rounded to C: fl(alpha * sum), or with a bias
// fma(alpha, sum, bias). No prob.
GG_HD inline float scaled(float sum, float alpha) { return alpha * sum; }
GG_HD inline float scaled(float sum, float alpha, float bias) { return fmaf(alpha, sum, bias); }

// ---- columns ----

constexpr int GLU_COLUMNS = 32;  // gates, ups or outputs that follow each other

// The columns of the gate and of the up whose output is in column j.
GG_HD inline int gate_column(int j) { return j / GLU_COLUMNS * 2 * GLU_COLUMNS + j % GLU_COLUMNS; }
GG_HD inline int up_column(int j) { return gate_column(j) + GLU_COLUMNS; }

// ---- activations ----

GG_HD inline float exp2_approx(float x) {
#ifdef __CUDA_ARCH__
  return ptx::ex2_approx_ftz(x);
#else
  return std::exp2(x);
#endif
}
// 1 / x of x from 1 on. Results below 2^-126 become zero.
GG_HD inline float reciprocal_approx(float x) {
#ifdef __CUDA_ARCH__
  return ptx::rcp_approx_ftz(x);
#else
  return 1 / x < 0x1p-126f ? 0 : 1 / x;
#endif
}

// The logistic function sigma(t) = 1 / (1 + e^-t), with e^-t = 2^(-t log2 e). Its relative error is
// at most (1 - sigma)(|t| 2^-22 + 2^-21) + 2^-21, where sigma is no less than 2^-126. Exactly 1 for
// t >= 20; 0 where 1 + e^-t is more than 2^126, which is so for t < -87.4. NaN stays NaN.
GG_HD inline float sigma(float t) {
  constexpr float LOG2_E = 1.4426950408889634f;
  return reciprocal_approx(1 + exp2_approx(-LOG2_E * t));
}

// The output x = ((gate sigma(gate)) up) prob, each product rounded by itself. No clamps.
GG_HD inline float swiglu(float gate, float up, float prob) { return gate * sigma(gate) * up * prob; }

// The clamps are gate' = min(gate, 7) and up' = max(min(up, 7), -7); NaN stays NaN. A gate has no
// lower clamp. The output is x = ((gate' sigma(1.702 gate')) (up' + 1)) prob, each product and the
// sum rounded by itself.
GG_HD inline float geglu(float gate, float up, float prob) {
  constexpr float LIMIT = 7, SLOPE = 1.702f;
  gate = gate > LIMIT ? LIMIT : gate;  // false for NaN
  up = up > LIMIT ? LIMIT : up < -LIMIT ? -LIMIT : up;
  return gate * sigma(SLOPE * gate) * (up + 1) * prob;
}

// ---- gradients ----

// Gradients that the backward pass through an activation gives, of one gate and one up.
struct GluGradient {
  float gate, up;  // of the gate, and of the up
  float prob;      // this output's part of that of prob
};

// The gradients of gate, up and prob, y being that of x = a u prob; a = gate sigma(gate), u = up.
// In f32, each product rounded by itself, but for the slope, which is one product and a sum that
// may be rounded together:
//     h = y prob        gate: (h u) slope        up: h a        prob: y (a u)
//     slope = s + a (1 - s), the derivative of a, with s = sigma(gate)
// An infinite gate gives NaN for the gate, as a NaN does: the slope has 0 times infinity.
GG_HD inline GluGradient swiglu_gradient(float gate, float up, float y, float prob) {
  const float s = sigma(gate), a = gate * s, h = y * prob;
  return {h * up * fmaf(a, 1 - s, s), h * a, y * (a * up)};
}

// The gradients of geglu: the same with gate' and up' in place of the two, s = sigma(1.702 gate'),
// u = up' + 1 and slope = s + (1.702 a)(1 - s). Beyond a clamp the loss does not depend on the
// number clamped: the gate's gradient is 0 for a gate above 7, the up's for an up above 7 or below
// -7, whatever else is NaN.
GG_HD inline GluGradient geglu_gradient(float gate, float up, float y, float prob) {
  constexpr float LIMIT = 7, SLOPE = 1.702f;
  const bool gate_clamped = gate > LIMIT, up_clamped = up > LIMIT || up < -LIMIT;  // false for NaN
  gate = gate_clamped ? LIMIT : gate;
  up = up > LIMIT ? LIMIT : up < -LIMIT ? -LIMIT : up;
  const float s = sigma(SLOPE * gate), a = gate * s, u = up + 1, h = y * prob;
  return {gate_clamped ? 0 : h * u * fmaf(SLOPE * a, 1 - s, s), up_clamped ? 0 : h * a, y * (a * u)};
}

// ---- the Hadamard transform ----

constexpr int HADAMARD_SIZE = 16;

// Row j, column i of the Hadamard matrix in natural order (Sylvester's): +1 or -1. It is symmetric,
// and its square is 16 times the identity.
GG_HD inline float hadamard(int j, int i) {
  int common = i & j;
  common ^= common >> 2;
  return (common ^ common >> 1) & 1 ? -1.0f : 1.0f;
}

// The transform Y[j] = sum over i of H[j][i] X[i], for 16 registers, by four rounds of sums and
// differences: 64 additions in place of 240. No normalisation. Exact for X of bf16 whose exponents,
// 0 left out, lie within 12 of each other, and below 2^124. NaN in X makes all of Y NaN; infinities
// of X meet in Y[j] with the signs of row j. From 2^125 on a sum of 2, 4 or 8 X may itself leave
// the range of f32: it is infinite then, also where all of Y[j] is a number, and NaN where it meets
// the other infinity, be it of X or of such a sum.
GG_HD inline void hadamard_butterfly(float (&x)[HADAMARD_SIZE]) {
  for (int bit = 0; bit < 4; ++bit) {
    for (int i = 0; i < HADAMARD_SIZE; ++i) {
      const int step = 1 << bit;
      if ((i & step) != 0) continue;
      const float a = x[i], b = x[i + step];
      x[i] = a + b;
      x[i + step] = a - b;
    }
  }
}

// The same for 16 X of bf16 in 8 words, the first of each two in bits 0 to 15, into 16 Y.
GG_HD inline void hadamard_butterfly(const uint32_t* x, float* y) {
  // A struct, for nvcc 13.0 lets an array of 16 floats share its place with 16 sums of wgmma
  // elsewhere in a kernel. The bits below would make that place one of integers. Then the sums are
  // moved from one type to the other while wgmma still writes them.
  struct {
    float of[HADAMARD_SIZE];
  } v;
  for (int i = 0; i < HADAMARD_SIZE; ++i) {  // a bf16 is the upper half of an f32
    const uint32_t bits = i % 2 == 0 ? x[i / 2] << 16 : x[i / 2] & 0xFFFF0000;
    memcpy(&v.of[i], &bits, sizeof bits);
  }
  hadamard_butterfly(v.of);
  for (int i = 0; i < HADAMARD_SIZE; ++i) y[i] = v.of[i];
}

}  // namespace gg::epilogue
