// SPDX-License-Identifier: MIT
//
// The products of a layer, by three chapters' kernels. Each chapter's launch.cuh is compiled in a
// file of its own, product.cu and so on, where a macro gives its namespace another name: no include
// may move across the macro. In one file `#pragma once` would skip the second chapter's claim.cuh, as
// its bytes are those of the first one's, and its functions would be missing.

#pragma once

#include <cuda_runtime_api.h>

#include "common/kernel/types.cuh"

namespace chapter {

// The rows of all experts: those of expert g are offsets[g] .. offsets[g+1].
struct Rows {
  const int32_t* offsets;  // [experts+1], on the device
  int experts, count;
  gg::Offsets as_offsets() const { return {.data = offsets, .wide = false}; }
};

// Chapter 07l: D [rows,N] = A [rows,K] W^T for weights W [experts,N,K] (transposed), or D = A W for
// weights W [experts,K,N] (as_they_are).
enum class Weights { transposed, as_they_are };
void product(const Rows& rows, const bf16* a, const bf16* w, Weights how, bf16* d, int n, int k,
             cudaStream_t stream);

// Chapter 10a: D [experts,K,N] = A^T B over an expert's rows of A [rows,K] and B [rows,N].
void weight_gradient(const Rows& rows, const bf16* a, const bf16* b, float* d, int n, int k,
                     cudaStream_t stream);

// Chapter 10b: dunit = dy [rows,K] W2 [experts,K,N] is the loss by unit = GLU(c) prob. It makes dc
// [rows,2N], dprob [rows], and dbias [experts,2N], the loss by a bias of c. 10b calls unit x, dunit y.
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
