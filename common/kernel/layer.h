// SPDX-License-Identifier: MIT
//
// A layer of a mixture of experts: its sizes, its tensors, and a training step as a list of
// launches. The harness draws the data and judges, a chapter launches.

#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "common/kernel/types.cuh"

namespace gg {

// A router, which is not part of the layer, sends each token to `top_k` different experts. So there
// are tokens * top_k rows.
struct LayerSizes {
  int tokens, experts, top_k, hidden, inner;
  int rows() const { return tokens * top_k; }
  int64_t w1() const { return int64_t(experts) * 2 * inner * hidden; }  // numbers
  int64_t w2() const { return int64_t(experts) * hidden * inner; }
};

// In device memory, row-major. Rows are sorted by expert.
struct LayerTensors {
  // The router gives these.
  const int32_t* offsets;   // [experts+1]: expert g has rows offsets[g] .. offsets[g+1]-1
  const int32_t* token_of;  // [rows]
  const int32_t* row_of;    // [tokens, top_k]
  const float* prob;        // [rows]
  const float* ones;        // [experts], for kernels that scale by expert
  // The layer before gives `tokens`, and `target` is what this one's output should be.
  const bf16 *tokens, *target;  // [tokens, hidden]
  // Products take weights in bf16; the optimiser keeps them in f32 and rounds them.
  bf16 *w1, *w2;  // [experts, 2 inner, hidden], [experts, hidden, inner]
  float *f32_w1, *f32_w2;
  // The forward pass writes these; the backward pass reads those with a *.
  bf16* x;      // [rows, hidden] *   a row's token
  bf16* c;      // [rows, 2 inner] *  x W1^T: 32 gates, their 32 ups, the next gates ..
  bf16* unit;   // [rows, inner] *    GLU(c) prob
  bf16* y;      // [rows, hidden]     unit W2^T
  bf16* dy;     // [rows, hidden] *   the gradient of y
  float* loss;  // [tokens]           each token's part of the loss
  // The backward pass writes these: gradients.
  bf16* dc;              // [rows, 2 inner]
  bf16* dx;              // [rows, hidden]
  bf16* dtokens;         // [tokens, hidden]
  float *dw1, *dw2;      // as w1 and w2
  float *dprob, *dbias;  // [rows], and [experts, 2 inner]: by a bias of c, which is 0 here
  void* workspace;       // of LayerProgram::workspace_bytes
};

// [launch]
struct LayerLaunch {
  const char* name;
  double bytes;  // of the matrices that it reads or writes, each once
  double flops;  // of its product; 0 where there is none
  std::function<void(cudaStream_t)> run;
  int kernels = 1;  // that `run` launches
};
// [/launch]

// The launches of a step, in order. The loss is scale / 2 times the sum of all squares of errors.
struct LayerProgram {
  std::vector<LayerLaunch> (*forward)(const LayerSizes& sizes, const LayerTensors& tensors, float scale);
  std::vector<LayerLaunch> (*backward)(const LayerSizes& sizes, const LayerTensors& tensors);
  // Weights less `rate` times their gradients: of W1, of W2. The harness draws weights by it: from
  // weights of 0, at a negative rate.
  std::vector<LayerLaunch> (*update)(const LayerSizes& sizes, const LayerTensors& tensors, float rate1,
                                     float rate2);
  size_t (*workspace_bytes)(const LayerSizes& sizes);
};

}  // namespace gg
