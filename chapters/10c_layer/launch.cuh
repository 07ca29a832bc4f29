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
inline auto* as_chunks(bf16* p) { return reinterpret_cast<uint4*>(p); }
inline auto* as_chunks(const bf16* p) { return reinterpret_cast<const uint4*>(p); }

// The kernels of kernel.cuh, for a layer.
inline void launch_gather(const Sizes& s, const Tensors& t, cudaStream_t stream) {
  launch(s.rows(), stream, gather, as_chunks(t.tokens), t.token_of, as_chunks(t.x), s.hidden / CHUNK);
}
inline void launch_glu(const Sizes& s, const Tensors& t, cudaStream_t stream) {
  const int64_t threads = int64_t(s.rows()) * (s.inner / CHUNK);
  launch(blocks_of(threads), stream, glu, as_chunks(t.c), t.prob, as_chunks(t.unit), threads,
         s.inner / CHUNK);
}
inline void launch_compare(const Sizes& s, const Tensors& t, float scale, cudaStream_t stream) {
  launch(s.tokens, stream, compare, as_chunks(t.y), as_chunks(t.target), t.row_of, s.top_k, scale,
         as_chunks(t.dy), t.loss, s.hidden / CHUNK);
}
inline void launch_combine(const Sizes& s, const Tensors& t, cudaStream_t stream) {
  launch(s.tokens, stream, combine, as_chunks(t.dx), t.row_of, s.top_k, as_chunks(t.dtokens),
         s.hidden / CHUNK);
}
inline void launch_update(const float* gradient, float rate, float* weights, bf16* rounded, int64_t numbers,
                          cudaStream_t stream) {
  const int64_t threads = numbers / UPDATED;  // numbers are whole rows, and so whole chunks
  launch(blocks_of(threads), stream, descend, reinterpret_cast<const float4*>(gradient), rate,
         reinterpret_cast<float4*>(weights), reinterpret_cast<uint2*>(rounded), threads);
}

// Bytes of each tensor in bf16, and the floating-point operations of a product of sizes rows, hidden
// and inner. The lists say by them what their entries move and compute, for printed rates alone.
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

// The harness runs a list from first to last, and knows no entry by its name or place. Its checks
// read the tensors after both passes. So an entry may be split, joined with another, or moved, as
// long as it comes after those that write what it reads, and every tensor is there at the end.
// plots/draw/layer.py alone looks up names, the update's two. `kernels` is added up for the table
// of times, and nothing checks it. In this list each entry reads what the one before it wrote.
inline Launches forward(const Sizes& s, const Tensors& t, float scale) {
  const Rows rows = {t.offsets, s.experts, s.rows()};
  const int hidden = s.hidden, inner = s.inner;
  const Costs cost(s);
  return {
      {"gather x", cost.tokens + cost.x, 0, [=](cudaStream_t stream) { launch_gather(s, t, stream); }},
      {"c = x W1^T", cost.x + cost.w1 + 2 * cost.unit, 2 * cost.flops,
       [=](cudaStream_t stream) {
         product(rows, t.x, t.w1, Weights::transposed, t.c, 2 * inner, hidden, stream);
       }},
      {"unit = GLU(c) prob", 3 * cost.unit, 0, [=](cudaStream_t stream) { launch_glu(s, t, stream); }},
      {"y = unit W2^T", cost.unit + cost.w2 + cost.x, cost.flops,
       [=](cudaStream_t stream) {
         product(rows, t.unit, t.w2, Weights::transposed, t.y, hidden, inner, stream);
       }},
      {"loss, dy", 2 * cost.x + cost.tokens, 0,
       [=](cudaStream_t stream) { launch_compare(s, t, scale, stream); }},
  };
}

// [backward]
inline Launches backward(const Sizes& s, const Tensors& t) {
  const Rows rows = {t.offsets, s.experts, s.rows()};
  const int hidden = s.hidden, inner = s.inner;
  const Costs cost(s);
  const GluTensors glu_tensors = {.dy = t.dy,
                                  .w2 = t.w2,
                                  .c = t.c,
                                  .alpha = t.ones,
                                  .prob = t.prob,
                                  .dc = t.dc,
                                  .dprob = t.dprob,
                                  .dbias = t.dbias,
                                  .workspace = t.workspace};
  // dc comes before dW1 and dx, which read it, and dx before dtokens. dW2 might stand anywhere.
  return {
      {"dW2 = dy^T unit", cost.x + cost.unit + 2 * cost.w2, cost.flops,
       [=](cudaStream_t stream) { weight_gradient(rows, t.dy, t.unit, t.dw2, inner, hidden, stream); }},
      {"dc, dprob, dbias", cost.x + cost.w2 + 4 * cost.unit, cost.flops,
       [=](cudaStream_t stream) { glu_gradient(rows, glu_tensors, inner, hidden, stream); }, 2},
      {"dW1 = dc^T x", 2 * cost.unit + cost.x + 2 * cost.w1, 2 * cost.flops,
       [=](cudaStream_t stream) { weight_gradient(rows, t.dc, t.x, t.dw1, hidden, 2 * inner, stream); }},
      {"dx = dc W1", 2 * cost.unit + cost.w1 + cost.x, 2 * cost.flops,
       [=](cudaStream_t stream) {
         product(rows, t.dc, t.w1, Weights::as_they_are, t.dx, hidden, 2 * inner, stream);
       }},
      {"dtokens", cost.x + cost.tokens, 0, [=](cudaStream_t stream) { launch_combine(s, t, stream); }},
  };
}
// [/backward]

// Two rates, as the harness draws the first weights by these launches too (layer.h), with another
// variance for W1 than for W2.
inline Launches update(const Sizes& s, const Tensors& t, float rate1, float rate2) {
  const Costs cost(s);
  // 14 bytes for each weight, 7 times the 2 of bf16: gradient and weight are read in f32, and the
  // weight is written in f32 and in bf16.
  return {{"update W1", 7 * cost.w1, 0,
           [=](cudaStream_t stream) { launch_update(t.dw1, rate1, t.f32_w1, t.w1, s.w1(), stream); }},
          {"update W2", 7 * cost.w2, 0,
           [=](cudaStream_t stream) { launch_update(t.dw2, rate2, t.f32_w2, t.w2, s.w2(), stream); }}};
}

inline size_t workspace_bytes(const Sizes& s) {
  return workspace_bytes(Rows{nullptr, s.experts, s.rows()}, s.inner);
}

}  // namespace chapter
