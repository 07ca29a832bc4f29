// SPDX-License-Identifier: MIT
//
// Chapter 07n's launch, from the folder that CMake names.

#include "common/kernel/types.cuh"
#include "ways.h"
#define chapter chapter_07n  // all chapters have a namespace of this name
#include "launch.cuh"

// w: null for the butterfly.
static void launch(const gg::Problem& p, const bf16* w, cudaStream_t stream) {
  const chapter_07n::Operands operands = {.alpha = p.epilogue().alpha,
                                          .prob = p.epilogue().prob,
                                          .bias = nullptr,
                                          .bias_format = gg::Format::bf16,
                                          .geglu = false,
                                          .w = w,
                                          .amax = p.epilogue().amax};
  chapter_07n::launch(p.a<bf16>(), p.b<bf16>(), p.d<bf16>(), operands, p.offsets(), p.rows(),
                      {p.m_total(), p.groups(), p.n(), p.k(), p.rows_each()}, {}, true, stream);
}

void launch_07n(const gg::Problem& p, bf16*, cudaStream_t stream) {
  launch(p, p.epilogue().hadamard, stream);
}
void launch_07n_butterfly(const gg::Problem& p, bf16*, cudaStream_t stream) { launch(p, nullptr, stream); }
