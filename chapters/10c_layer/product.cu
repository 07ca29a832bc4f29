// SPDX-License-Identifier: MIT
//
// Chapter 07l's product.

#define chapter chapter_07l
#include "chapters/07l_peak_hopper/launch.cuh"
#undef chapter

#include "products.cuh"

void chapter::product(const Rows& rows, const bf16* a, const bf16* w, Weights how, bf16* d, int n, int k,
                      cudaStream_t stream) {
  chapter_07l::launch(a, w, d, rows.as_offsets(), rows.count, {rows.count, rows.experts, n, k, 0},
                      how == Weights::transposed, {}, true, stream);
}
