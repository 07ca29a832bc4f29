// SPDX-License-Identifier: MIT
//
// Chapter 07q's launch, from the folder that CMake names.

#include "common/kernel/types.cuh"
#include "ways.h"
#define chapter chapter_07q  // all chapters have a namespace of this name
#include "launch.cuh"

void launch_07q(const gg::Problem& p, bf16*, cudaStream_t stream) {
  const gg::EpilogueTensors& e = p.epilogue();
  const chapter_07q::Operands operands = {.alpha = e.alpha,
                                          .prob = e.prob,
                                          .bias = nullptr,
                                          .bias_format = gg::Format::bf16,
                                          .norm_const = e.norm_const,
                                          .d_format = p.formats().d,
                                          .amax = e.amax,
                                          .sfd_row = e.sfd_row,
                                          .sfd_col = e.sfd_col,
                                          .discrete_col_sfd = false,
                                          .rows = p.rows()};
  chapter_07q::launch(p.a<bf16>(), p.b<bf16>(), p.d<void>(), e.d_col, operands, p.offsets(),
                      {p.m_total(), p.groups(), p.n(), p.k(), p.rows_each()}, {}, true, stream);
}
