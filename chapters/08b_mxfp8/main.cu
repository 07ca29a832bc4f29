// SPDX-License-Identifier: MIT
// Chapter 08b: what it supports and how it is launched.
#include "common/harness/harness.cuh"
#include "launch.cuh"

int main(int argc, char** argv) {
  const gg::Chapter info = {
      .k_multiple = 16,
      .n_multiple = 8,
      .m_multiple = chapter::PAD_ROWS,
      .pads_groups = true,
      .multiple_reason = "rows have multiples of 16 bytes, groups are padded for the pairs of 08d",
      .sets = {"smoke", "edges", "skewed", "prefill", "decode", "step", "skew", "many", "random", "peers"},
      .options = {"format", "tile", "blocks"},
      .tiles = {{128, 128}, {128, 256}},
      .b_layouts = {gg::BLayout::nk},
  };
  return gg::run<gg::BlockScaled<gg::e4m3, 32, gg::ue8m0, bf16>,
                 gg::BlockScaled<gg::e5m2, 32, gg::ue8m0, bf16>>(
      argc, argv, info,
      []<class T, int V, class Scale, class TD>(gg::BlockScaled<T, V, Scale, TD>, const gg::Problem& p,
                                                cudaStream_t stream) {
        chapter::launch(p.a<T>(), p.b<T>(), p.scaled().sfa, p.scaled().sfb, p.d<TD>(), p.offsets().ends(),
                        p.rows(), p.groups(), p.n(), p.k(), p.tile(), p.blocks(), stream);
      });
}
