// SPDX-License-Identifier: MIT
// Chapter 08c: what it supports and how it is launched.
#include "common/harness/harness.cuh"
#include "launch.cuh"

template <int V, class Scale>
using Fp4 = gg::BlockScaled<gg::e2m1, V, Scale, bf16>;

int main(int argc, char** argv) {
  const gg::Chapter info = {
      .k_multiple = 32,
      .n_multiple = 8,
      .m_multiple = chapter::PAD_ROWS,
      .pads_groups = true,
      .multiple_reason = "TMA wants rows of whole 16 bytes, and groups are padded for pairs of blocks",
      .sets = {"smoke", "edges", "skewed", "prefill", "decode", "step", "skew", "many", "random", "peers"},
      .options = {"format", "tile", "blocks"},
      .tiles = {{128, 128}, {128, 256}},
      .b_layouts = {gg::BLayout::nk},
  };
  return gg::run<Fp4<16, gg::ue4m3>, Fp4<32, gg::ue8m0>, Fp4<16, gg::ue8m0>>(
      argc, argv, info, []<int V, class Scale>(Fp4<V, Scale>, const gg::Problem& p, cudaStream_t stream) {
        chapter::launch<Scale, V>(p.a<gg::e2m1>(), p.b<gg::e2m1>(), p.scaled().sfa, p.scaled().sfb,
                                  p.d<bf16>(), p.offsets().ends(), p.rows(), p.groups(), p.n(), p.k(),
                                  p.tile(), p.blocks(), stream);
      });
}
