// SPDX-License-Identifier: MIT
// Chapter 07m: what it supports and how it is launched.
#include "common/harness/harness.cuh"
#include "launch.cuh"

int main(int argc, char** argv) {
  using enum gg::Activation;
  using gg::Format;
  const gg::Chapter info = {
      .k_multiple = 8,
      .n_multiple = 64,
      .multiple_reason = "TMA wants rows of whole 16 bytes, and 32 gates lie beside 32 ups",
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
      .epilogue = {.op = gg::Operator::glu,
                   .d_types = {Format::bf16},
                   .bias_types = {Format::bf16, Format::f16, Format::f32},
                   .amax = false,
                   .activations = {swiglu, geglu}},
  };
  return gg::run<gg::Same<bf16>>(
      argc, argv, info, [](gg::Same<bf16>, const gg::Problem& p, cudaStream_t stream) {
        const gg::EpilogueTensors& e = p.epilogue();
        const chapter::Operands operands = {.alpha = e.alpha,
                                            .prob = e.prob,
                                            .bias = e.bias,
                                            .bias_format = e.bias_format,
                                            .geglu = e.activation == geglu};
        chapter::launch(p.a<bf16>(), p.b<bf16>(), p.d<bf16>(), operands, p.offsets(), p.rows(),
                        {p.m_total(), p.groups(), p.n(), p.k(), p.rows_each()}, p.tile(), !p.is_off("pdl"),
                        stream);
      });
}
