// SPDX-License-Identifier: MIT
//
// Chapter 10b's product and epilogue.

#define chapter chapter_10b
#include "chapters/10b_glu_gradient/launch.cuh"
#undef chapter

#include "products.cuh"

void chapter::glu_gradient(const Rows& rows, const GluTensors& t, int n, int k, cudaStream_t stream) {
  const chapter_10b::Tensors tensors = {.a = t.dy,
                                        .b = t.w2,
                                        .c = t.c,
                                        .operands = {t.alpha, t.prob},
                                        .d = t.dc,
                                        .dprob = t.dprob,
                                        .dbias = t.dbias,
                                        .workspace = t.workspace};
  const bool geglu = false;
  chapter_10b::launch(tensors, rows.as_offsets(), {rows.count, rows.experts, n, k}, geglu, stream);
}

size_t chapter::workspace_bytes(const Rows& rows, int n) {
  return chapter_10b::Parts::bytes(rows.count, rows.experts, n);
}
