// SPDX-License-Identifier: MIT
// Chapter 08d: what it supports and how it is launched.
#include "common/harness/harness.cuh"
#include "launch.cuh"

int main(int argc, char** argv) {
  const gg::Chapter info = {
      .k_multiple = 16,  // for rows of E2M1 the harness makes it 32
      .n_multiple = 8,
      .m_multiple = chapter::PAD_ROWS,
      .pads_groups = true,
      .multiple_reason = "TMA wants rows of whole 16 bytes, and groups are padded for pairs of blocks",
      .sets = {"smoke", "edges", "skewed", "prefill", "decode", "step", "skew", "many", "random", "peers"},
      .options = {"format", "tile"},
      .tiles = {{256, 256, 2}},
      .b_layouts = {gg::BLayout::nk},
  };
  using gg::BlockScaled, gg::Problem, gg::e2m1, gg::e4m3, gg::e5m2, gg::ue4m3, gg::ue8m0;
  auto launch = []<class T, int V, class S, class D>(BlockScaled<T, V, S, D>, const Problem& p, auto stream) {
    // Scales are bytes here, so S and V are given; T and D are the types of A and D.
    chapter::launch<S, V>(p.a<T>(), p.b<T>(), p.scaled().sfa, p.scaled().sfb, p.d<D>(), p.offsets().ends(),
                          p.rows(), p.groups(), p.n(), p.k(), p.tile(), stream);
  };
  return gg::run<BlockScaled<e2m1, 16, ue4m3, bf16>, BlockScaled<e2m1, 32, ue8m0, bf16>,
                 BlockScaled<e2m1, 16, ue8m0, bf16>, BlockScaled<e4m3, 32, ue8m0, bf16>,
                 BlockScaled<e5m2, 32, ue8m0, bf16>>(argc, argv, info, launch);
}
