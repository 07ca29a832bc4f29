// SPDX-License-Identifier: MIT
//
// The products of a layer, by three chapters' kernels. All have the namespace `chapter`, and of
// inline functions with one name and the same parameters the linker keeps one, in silence. So in
// product.cu and so on a macro gives the namespace another name: one chapter's launch.cuh, and nothing
// else, is included between its #define and #undef. These are three files, as in one `#pragma once`
// may skip the second chapter's claim.cuh: it has the bytes of the first one's.

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
