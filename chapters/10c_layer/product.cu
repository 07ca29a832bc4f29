// SPDX-License-Identifier: MIT
//
// Chapter 07l's product.

#define chapter chapter_07l
#include "chapters/07l_peak_hopper/launch.cuh"
#undef chapter

#include "products.cuh"

void chapter::product(const Rows& rows, const bf16* a, const bf16* w, Weights how, bf16* d, int n, int k,
                      cudaStream_t stream) {
  const chapter_07l::Sizes sizes = {.m_total = rows.count,
                                    .groups = rows.experts,
                                    .n = n,
                                    .k = k,
                                    .rows_each = 0};  // unknown: the router decides
  const gg::ClusterTileShape as_estimated = {};
  const bool k_is_contiguous = how == Weights::transposed, may_begin_early = true;
  chapter_07l::launch(a, w, d, rows.as_offsets(), rows.count, sizes, k_is_contiguous, as_estimated,
                      may_begin_early, stream);
}
