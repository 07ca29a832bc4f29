// SPDX-License-Identifier: MIT
// Chapter 07o: what it supports and how it is launched.
#include "common/harness/harness.cuh"
#include "launch.cuh"

int main(int argc, char** argv) {
  using gg::Format;
  const gg::Chapter info = {
      .k_multiple = 8,
      .n_multiple = 16,  // WARP_COLUMNS: a warp's columns are all of D or none (make_values, B's map)
      .m_multiple = 128,
      .pads_groups = true,
      .multiple_reason = "TMA wants rows of whole 16 bytes, and an atom of scales has 128 rows of one group",
      .sets = {"smoke", "edges", "long", "skewed", "prefill", "decode", "step", "skew", "many", "random",
               "peers", "moe", "few_tiles"},
      .options = {"offsets", "tile", "tune"},
      // BM, BN and a worker's blocks of each configuration in choose.cuh. --tile without --cluster is
      // the first of its size.
      .tiles =
          {{256, 128, 2}, {256, 128}, {128, 128}, {64, 128}, {128, 64}, {64, 64, 4}, {64, 64, 2}, {64, 64}},
      .chooses_tile = true,
      .ideas = {{"pdl", "a launch begins while the one before ends"}},
      .b_layouts = {gg::BLayout::nk},
      .epilogue = {.op = gg::Operator::quant,
                   .d_types = {Format::e4m3, Format::e5m2},
                   .bias_types = {Format::bf16, Format::f16, Format::f32},
                   .sfd_row = true,
                   .sfd_col = true,
                   .norm_const = 1},
  };
  return gg::run<gg::Operands<bf16, bf16, void>>(
      argc, argv, info, [](gg::Operands<bf16, bf16, void>, const gg::Problem& p, cudaStream_t stream) {
        const gg::EpilogueTensors& e = p.epilogue();
        const chapter::Operands operands = {.alpha = e.alpha,
                                            .prob = e.prob,
                                            .bias = e.bias,
                                            .bias_format = e.bias_format,
                                            .norm_const = e.norm_const,
                                            .d_format = p.formats().d,
                                            .amax = e.amax,
                                            .sfd_row = e.sfd_row,
                                            .sfd_col = e.sfd_col,
                                            .discrete_col_sfd = e.discrete_col_sfd,
                                            .rows = p.rows()};
        chapter::launch(p.a<bf16>(), p.b<bf16>(), p.d<void>(), e.d_col, operands, p.offsets(),
                        {p.m_total(), p.groups(), p.n(), p.k(), p.rows_each()}, p.tile(), !p.is_off("pdl"),
                        stream);
      });
}
