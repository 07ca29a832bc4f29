// SPDX-License-Identifier: MIT
//
// Chapter 07l's launch, from the folder that CMake names.

#include "common/kernel/types.cuh"
#include "ways.h"
#define chapter chapter_07l  // all chapters have a namespace of this name
#include "launch.cuh"

void launch_07l(const gg::Problem& p, bf16* product, cudaStream_t stream) {
  chapter_07l::launch(p.a<bf16>(), p.b<bf16>(), product, p.offsets(), p.rows(),
                      {p.m_total(), p.groups(), p.n(), p.k(), p.rows_each()}, p.b_layout() == gg::BLayout::nk,
                      {}, true, stream);
}
