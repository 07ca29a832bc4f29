// SPDX-License-Identifier: MIT
//
// A training step: its launches, in order.

#pragma once

#include "common/kernel/launch.h"
#include "common/kernel/layer.h"
#include "kernel.cuh"
#include "products.cuh"

namespace chapter {

using Sizes = gg::LayerSizes;
using Tensors = gg::LayerTensors;
using Launches = std::vector<gg::LayerLaunch>;

template <class... Parameters, class... Arguments>
void launch(int64_t blocks, cudaStream_t stream, void (*kernel)(Parameters...), Arguments... arguments) {
  gg::launch_kernel({.grid = dim3(unsigned(blocks)),
                     .threads = THREADS,
                     .shared_bytes = 0,
                     .stream = stream,
                     .dependent = true},
                    kernel, arguments...);
}
inline int64_t blocks_of(int64_t threads) { return (threads + THREADS - 1) / THREADS; }
inline auto* chunks(bf16* p) { return reinterpret_cast<uint4*>(p); }
inline auto* chunks(const bf16* p) { return reinterpret_cast<const uint4*>(p); }

// The kernels of kernel.cuh, for a layer.
inline void launch_gather(const Sizes& s, const Tensors& t, cudaStream_t stream) {
  launch(s.rows(), stream, gather, chunks(t.tokens), t.token_of, chunks(t.x), s.hidden / CHUNK);
}
inline void launch_glu(const Sizes& s, const Tensors& t, cudaStream_t stream) {
  const int64_t threads = int64_t(s.rows()) * (s.inner / CHUNK);
  launch(blocks_of(threads), stream, glu, chunks(t.c), t.prob, chunks(t.unit), threads, s.inner / CHUNK);
}
inline void launch_compare(const Sizes& s, const Tensors& t, float scale, cudaStream_t stream) {
  launch(s.tokens, stream, compare, chunks(t.y), chunks(t.target), t.row_of, s.top_k, scale, chunks(t.dy),
         t.loss, s.hidden / CHUNK);
}
inline void launch_combine(const Sizes& s, const Tensors& t, cudaStream_t stream) {
  launch(s.tokens, stream, combine, chunks(t.dx), t.row_of, s.top_k, chunks(t.dtokens), s.hidden / CHUNK);
}
inline void launch_update(const float* gradient, float rate, float* weights, bf16* rounded, int64_t numbers,
                          cudaStream_t stream) {
  const int64_t threads = numbers / UPDATED;
  launch(blocks_of(threads), stream, descend, reinterpret_cast<const float4*>(gradient), rate,
         reinterpret_cast<float4*>(weights), reinterpret_cast<uint2*>(rounded), threads);
}

// Bytes of tensors of bf16, and the floating-point operations of a product of rows, hidden and inner.
struct Costs {
  double x, unit, w1, w2, tokens, flops;
  explicit Costs(const Sizes& s)
      : x(2.0 * s.rows() * s.hidden),
        unit(2.0 * s.rows() * s.inner),
        w1(2.0 * double(s.w1())),
        w2(2.0 * double(s.w2())),
        tokens(2.0 * s.tokens * s.hidden),
        flops(2.0 * s.rows() * s.hidden * s.inner) {}
};

inline Launches forward(const Sizes& s, const Tensors& t, float scale) {
  const Rows rows = {t.offsets, s.experts, s.rows()};
  const int hidden = s.hidden, inner = s.inner;
  const Costs of(s);
  return {
      {"gather x", of.tokens + of.x, 0, [=](cudaStream_t stream) { launch_gather(s, t, stream); }},
      {"c = x W1^T", of.x + of.w1 + 2 * of.unit, 2 * of.flops,
       [=](cudaStream_t stream) {
         product(rows, t.x, t.w1, Weights::transposed, t.c, 2 * inner, hidden, stream);
       }},
      {"unit = GLU(c) prob", 3 * of.unit, 0, [=](cudaStream_t stream) { launch_glu(s, t, stream); }},
      {"y = unit W2^T", of.unit + of.w2 + of.x, of.flops,
       [=](cudaStream_t stream) {
         product(rows, t.unit, t.w2, Weights::transposed, t.y, hidden, inner, stream);
       }},
      {"loss, dy", 2 * of.x + of.tokens, 0,
       [=](cudaStream_t stream) { launch_compare(s, t, scale, stream); }},
  };
}

// [backward]
inline Launches backward(const Sizes& s, const Tensors& t) {
  const Rows rows = {t.offsets, s.experts, s.rows()};
  const int hidden = s.hidden, inner = s.inner;
  const Costs of(s);
  const GluGradient of_glu = {.dy = t.dy,
                              .w2 = t.w2,
                              .c = t.c,
                              .alpha = t.ones,
                              .prob = t.prob,
                              .dc = t.dc,
                              .dprob = t.dprob,
                              .dbias = t.dbias,
                              .workspace = t.workspace};
  return {
      {"dW2 = dy^T unit", of.x + of.unit + 2 * of.w2, of.flops,
       [=](cudaStream_t stream) { weight_gradient(rows, t.dy, t.unit, t.dw2, inner, hidden, stream); }},
      {"dc, dprob, dbias", of.x + of.w2 + 4 * of.unit, of.flops,
       [=](cudaStream_t stream) { glu_gradient(rows, of_glu, inner, hidden, stream); }, 2},
      {"dW1 = dc^T x", 2 * of.unit + of.x + 2 * of.w1, 2 * of.flops,
       [=](cudaStream_t stream) { weight_gradient(rows, t.dc, t.x, t.dw1, hidden, 2 * inner, stream); }},
      {"dx = dc W1", 2 * of.unit + of.w1 + of.x, 2 * of.flops,
       [=](cudaStream_t stream) {
         product(rows, t.dc, t.w1, Weights::as_they_are, t.dx, hidden, 2 * inner, stream);
       }},
      {"dtokens", of.x + of.tokens, 0, [=](cudaStream_t stream) { launch_combine(s, t, stream); }},
  };
}
// [/backward]

// Reads a gradient and weights of f32, writes the weights of f32 and of bf16.
inline Launches update(const Sizes& s, const Tensors& t, float rate1, float rate2) {
  const Costs of(s);
  return {{"update W1", 7 * of.w1, 0,
           [=](cudaStream_t stream) { launch_update(t.dw1, rate1, t.f32_w1, t.w1, s.w1(), stream); }},
          {"update W2", 7 * of.w2, 0,
           [=](cudaStream_t stream) { launch_update(t.dw2, rate2, t.f32_w2, t.w2, s.w2(), stream); }}};
}

inline size_t workspace_bytes(const Sizes& s) {
  return workspace_bytes(Rows{nullptr, s.experts, s.rows()}, s.inner);
}

}  // namespace chapter
