// SPDX-License-Identifier: MIT
//
// Chapter 07r's launch, from the folder that CMake names.

#include "common/kernel/types.cuh"
#include "ways.h"
#define chapter chapter_07r  // all chapters have a namespace of this name
#include "launch.cuh"

void launch_07r(const gg::Problem& p, bf16*, cudaStream_t stream) {
  const chapter_07r::Operands operands = {.alpha = p.epilogue().alpha,
                                          .prob = p.epilogue().prob,
                                          .bias = nullptr,
                                          .bias_format = gg::Format::bf16,
                                          .geglu = false,
                                          .w = p.epilogue().hadamard,
                                          .amax = p.epilogue().amax};
  chapter_07r::launch(p.a<bf16>(), p.b<bf16>(), p.d<bf16>(), operands, p.offsets(), p.rows(),
                      {p.m_total(), p.groups(), p.n(), p.k(), p.rows_each()}, {}, true, stream);
}
