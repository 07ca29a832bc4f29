// SPDX-License-Identifier: MIT
//
// Chapter 10a's product.

#define chapter chapter_10a
#include "chapters/10a_weight_gradient/launch.cuh"
#undef chapter

#include "products.cuh"

void chapter::weight_gradient(const Rows& rows, const bf16* a, const bf16* b, float* d, int n, int k,
                              cudaStream_t stream) {
  const bool accumulate = false;
  chapter_10a::launch(a, b, d, rows.as_offsets(), rows.count, rows.experts, n, k, accumulate, stream);
}
