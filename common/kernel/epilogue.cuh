// SPDX-License-Identifier: MIT
//
// The arithmetic of an epilogue that scales, adds a bias and quantises: pure functions of
// values that a thread has in registers. They are the same on the host, where tests compare
// them with a model in double, and on any device of compute capability 8.9 or later. The
// formulas are those of cudnn-frontend's operator "Grouped GEMM + Quant". tests/epilogues.md
// lists its features and their tests. UE8M0 and the elements are as in common/kernel/formats.h,
// blocks as in common/kernel/block_scales.h.
//
// Letters: v, a value of D in f32 before its conversion; a block, 32 values that share a scale; S,
// the value of that scale; norm, a factor of the whole tensor, so that v is about D * S / norm.

#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "common/kernel/block_scales.h"
#include "common/kernel/formats.h"
#include "common/kernel/types.cuh"
#ifdef __CUDACC__
#include "common/kernel/ptx/cvt.cuh"
#include "common/kernel/ptx/floating.cuh"
#endif

namespace gg::epilogue {

constexpr uint32_t INFINITY_BITS = 0x7F800000;  // of f32; a larger magnitude is NaN

GG_HD inline float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
GG_HD inline uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

// ---- v ----

// Without a bias: v = fl(fl(alpha * sum) * prob).
GG_HD inline float value_of(float sum, float alpha, float prob) { return alpha * sum * prob; }

// With one: v = fma(alpha, sum, fl(prob * bias)). prob gates the bias alone, not the product.
GG_HD inline float value_of(float sum, float alpha, float prob, float bias) {
  return fmaf(alpha, sum, prob * bias);
}

// A bias as its tensor has it, and as f32, exactly. `format`: f32, f16 or bf16. In two steps, so
// that a kernel can load long before it needs the value.
GG_HD inline uint32_t load_bias(const void* bias, Format format, int64_t index) {
  if (format == Format::f32) return static_cast<const uint32_t*>(bias)[index];
  return static_cast<const uint16_t*>(bias)[index];
}
GG_HD inline float bias_of(Format format, uint32_t code) {
  if (format == Format::bf16) return float_of(code << 16);
  if (format == Format::f32) return float_of(code);
  return to_float(__ushort_as_half(uint16_t(code)));
}

// ---- maxima ----

// A magnitude as its bits. As integers they have the order of the numbers, infinity above them and
// NaN above that: an integer maximum keeps a NaN, and so does max.NaN.f32; max.f32 would drop it.
GG_HD inline uint32_t magnitude(float v) { return bits_of(v) & 0x7FFFFFFF; }
GG_HD inline uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }

#ifdef __CUDACC__
// The bits of the largest magnitude among them, those of a NaN if there is one. Two chains, since
// each maximum waits for the one before it in its chain.
template <int COUNT>
__device__ inline uint32_t largest_magnitude(const float (&v)[COUNT]) {
  float even = 0, odd = 0;
#pragma unroll
  for (int i = 0; i < COUNT; i += 2) {
    even = ptx::max_nan(even, fabsf(v[i]));
    odd = ptx::max_nan(odd, fabsf(v[i + 1]));
  }
  return bits_of(ptx::max_nan(even, odd));
}
#endif

// amax is the largest magnitude of a group's v. `part`: the largest of 32 or 16
// neighbours of a row, which are left out all together where one of them is NaN.
GG_HD inline uint32_t amax_with(uint32_t so_far, uint32_t part) {
  return part > INFINITY_BITS ? so_far : larger(so_far, part);
}

// ---- scales ----

// 1 / the magnitude that the largest element of a block is scaled to: 1/448 for E4M3,
// 1/128 for E5M2.
GG_HD inline float reciprocal_for(Format d) { return d == Format::e5m2 ? E5M2_RECIPROCAL : E4M3_RECIPROCAL; }

// f32 to UE8M0, code c standing for 2^(c - 127): the least power of two that is no less. Zero and
// what lies below 2^-127 become code 0, infinity and what lies above 2^127 code 254, NaN 255. `x`
// is not negative.
GG_HD inline uint32_t ue8m0_above(float x) {
#ifdef __CUDA_ARCH_FEAT_SM100_ALL
  return ptx::cvt_rp_ue8m0x2(x, 0);
#else
  const uint32_t bits = magnitude(x);
  if (bits > INFINITY_BITS) return 255;
  if (bits <= 0x00400000) return 0;                 // 2^-127, a subnormal
  const uint32_t code = (bits + 0x007FFFFF) >> 23;  // the exponent, one more if a fraction is set
  return code < 254 ? code : 254;
#endif
}

// The code of a block's scale: raw = fl(fl(block * reciprocal) * norm), rounded up. `block`: the
// bits of the largest magnitude, NaN if there is one.
GG_HD inline uint32_t scale_code(uint32_t block, float reciprocal, float norm) {
  return ue8m0_above(float_of(block) * reciprocal * norm);
}

// rcp(S) as rcp.approx.ftz has it, exact for a power of two: its exponent with the other sign.
// Subnormals are zero on both sides, so that code 0 gives infinity and code 254 zero.
GG_HD inline float reciprocal_of_code(uint32_t code) {
  const uint32_t bits = code == 0 ? INFINITY_BITS : (254 - code) << 23;
  return float_of(code == 255 ? 0x7FFFFFFF : bits);
}

// q = min(fl(norm * rcp(S)), the largest f32), which each v of the block is multiplied
// with. NaN stays.
GG_HD inline float factor_of_code(uint32_t code, float norm) {
  constexpr uint32_t LARGEST_BITS = INFINITY_BITS - 1;
  const float factor = norm * reciprocal_of_code(code);
  return factor > float_of(LARGEST_BITS) ? float_of(LARGEST_BITS) : factor;
}

// ---- D ----

// A word of D from as many values as it holds, the first one in the lowest bits: 1 of f32, 2 of
// bf16 or f16, 4 of E4M3 or E5M2. To the nearest, halfway to the even one. FP8 saturates, infinity
// too, and NaN is 0x7F.
template <Format D>
constexpr int VALUES_IN_WORD = 32 / format_info(D).bits;
template <Format D>
GG_HD inline uint32_t word_of(const float* v) {
  if constexpr (D == Format::f32) return bits_of(v[0]);
#ifdef __CUDA_ARCH__
  if constexpr (D == Format::bf16) return ptx::cvt_rn_x2<bf16>(v[0], v[1]);
  if constexpr (D == Format::f16) return ptx::cvt_rn_x2<f16>(v[0], v[1]);
  if constexpr (D == Format::e4m3) return ptx::cvt_e4m3x2(v[0], v[1]) | ptx::cvt_e4m3x2(v[2], v[3]) << 16;
  if constexpr (D == Format::e5m2) return ptx::cvt_e5m2x2(v[0], v[1]) | ptx::cvt_e5m2x2(v[2], v[3]) << 16;
#else
  uint32_t word = 0;
  for (int i = 0; i < VALUES_IN_WORD<D>; ++i) word |= encode(D, double(v[i])) << (format_info(D).bits * i);
  return word;
#endif
}

}  // namespace gg::epilogue
