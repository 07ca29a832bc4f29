// SPDX-License-Identifier: MIT
// Chapter 08i: what it supports and how it is launched.
#include "common/harness/harness.cuh"
#include "launch.cuh"

using gg::BlockScaled, gg::Format, gg::e2m1, gg::e4m3, gg::e5m2, gg::ue4m3, gg::ue8m0;

int main(int argc, char** argv) {
  const gg::Chapter info = {
      .m_multiple = chapter::PAD_ROWS,
      .pads_groups = true,
      .multiple_reason = "groups are padded to the tiles of pairs of blocks",
      .sets = {"smoke", "edges", "skewed", "prefill", "decode", "step", "skew", "many", "random", "peers"},
      .options = {"format", "tile"},
      .tiles = {{256, 256, 2}},
      .b_layouts = {gg::BLayout::nk},
      .epilogue = {.op = gg::Operator::quant,
                   // those that Output::store has an `if` for: of others it would send old bytes
                   .d_types = {Format::bf16, Format::f16, Format::f32, Format::e4m3, Format::e5m2},
                   .bias_types = {Format::bf16, Format::f16, Format::f32},
                   .sfd_row = true},
      .discrete_weights = true,
      .dynamic_schedule = true,
  };
  auto launch = []<class T, int V, class S>(BlockScaled<T, V, S>, const gg::Problem& p, cudaStream_t stream) {
    const gg::EpilogueTensors& e = p.epilogue();
    const chapter::Operands operands = {.alpha = e.alpha,
                                        .prob = e.prob,
                                        .bias = e.bias,
                                        .bias_format = e.bias_format,
                                        .amax = e.amax,
                                        .d = p.d<void>(),
                                        .d_format = p.formats().d,
                                        .sfd_row = e.sfd_row,
                                        .norm_const = e.norm_const};
    const chapter::Weights<T> weights = {.b = p.b<T>(),
                                         .sfb = p.scaled().sfb,
                                         .b_ptrs = p.discrete().b_ptrs<T>(),
                                         .sfb_ptrs = p.discrete().sfb_ptrs};
    chapter::launch<S, V>(p.a<T>(), p.scaled().sfa, weights, operands, p.offsets().ends(), p.rows(),
                          p.groups(), p.n(), p.k(), p.tile(), p.dynamic_schedule(), stream);
  };
  return gg::run<BlockScaled<e2m1, 16, ue4m3>, BlockScaled<e2m1, 32, ue8m0>, BlockScaled<e2m1, 16, ue8m0>,
                 BlockScaled<e4m3, 32, ue8m0>, BlockScaled<e5m2, 32, ue8m0>>(argc, argv, info, launch);
}
