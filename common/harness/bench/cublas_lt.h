// SPDX-License-Identifier: MIT
//
// The kernels that cublasLt's heuristics propose for a batch of equal products: several. cuBLAS's
// own call picks one without trying it.

#pragma once

#include <library_types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "common/harness/bench/contest.h"

namespace gg {

// Column-major, as cuBLAS has it: A [m,k], B [k,n], each transposed if its op is, D [m,n].
struct StridedBatch {
  const void *a, *b;
  void* d;
  int op_a, m, n, k, batch;
  int64_t lda, ldb, ldd, stride_a, stride_b, stride_d;  // in elements
  cudaDataType_t type, d_type;                          // of A and B; of D
  int op_b = 0;
  float beta = 0;  // 1: added to what D holds
  // The cublasLtMatmulMatrixScale_t of A and B, for blocks of elements along k; 0: there are none.
  int scale_mode = 0;
  const void *a_scales = nullptr, *b_scales = nullptr;
};

class CublasLt {
 public:
  // Throws gg::Error where there is no cublasLt 13, and where it lacks a function.
  CublasLt();

  // Its proposals for a batch, each a way that computes in this workspace. `handle` is one of
  // cuBLAS's, which cublasLt takes for one of its own. Both, and this object, outlive the ways.
  // None where it has none.
  std::vector<peers::Offer> offers(void* handle, const StridedBatch& batch, void* workspace,
                                   size_t workspace_bytes) const;

 private:
  struct Functions;
  class Product;
  std::shared_ptr<const Functions> functions_;
};

}  // namespace gg
