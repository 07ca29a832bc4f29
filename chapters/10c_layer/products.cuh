// SPDX-License-Identifier: MIT
//
// The products of a layer, by three chapters' kernels. All have their functions in a namespace
// `chapter`. If two chapters define an inline function of the same name and parameters, the linker
// keeps one of them and reports nothing. So product.cu, weight_gradient.cu and glu_gradient.cu
// rename that namespace by a macro; between #define and #undef each includes one chapter's
// launch.cuh and nothing else. One file for all could fail: the chapters' claim.cuh have the same
// bytes, and a compiler that compares bytes skips the second one for its `#pragma once`.

#pragma once

#include <cuda_runtime_api.h>

#include "common/kernel/types.cuh"

namespace chapter {

// The rows of all experts: those of expert g are offsets[g] .. offsets[g+1]-1.
struct Rows {
  const int32_t* offsets;  // [experts+1], on the device
  int experts, count;
  gg::Offsets as_offsets() const { return {.data = offsets, .wide = false}; }
};

// Chapter 07l: D [rows,N] = A [rows,K] W^T for weights W [experts,N,K] (transposed), or D = A W for
// weights W [experts,K,N] (as_they_are). With n and k exchanged, a call of this function or of those
// below compiles, and fails the check: its layer has hidden 72, inner 96.
enum class Weights { transposed, as_they_are };
void product(const Rows& rows, const bf16* a, const bf16* w, Weights how, bf16* d, int n, int k,
             cudaStream_t stream);

// Chapter 10a: D [experts,K,N] = A^T B over an expert's rows of A [rows,K] and B [rows,N].
// The sum runs over rows: k is no sum's length here.
void weight_gradient(const Rows& rows, const bf16* a, const bf16* b, float* d, int n, int k,
                     cudaStream_t stream);

// Chapter 10b: dunit = dy [rows,K] W2 [experts,K,N] is the gradient of unit = GLU(c) prob. It makes
// dc [rows,2N], dprob [rows], and dbias [experts,2N], the gradient of a bias of c. 10b calls dy A, W2
// B, c C, dc D, unit x and dunit y.
struct GluTensors {
  const bf16 *dy, *w2, *c;
  const float *alpha, *prob;  // [experts], [rows]
  bf16* dc;
  float *dprob, *dbias;
  void* workspace;
};
void glu_gradient(const Rows& rows, const GluTensors& tensors, int n, int k, cudaStream_t stream);
size_t workspace_bytes(const Rows& rows, int n);

}  // namespace chapter
