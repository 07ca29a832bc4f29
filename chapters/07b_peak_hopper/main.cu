// SPDX-License-Identifier: MIT
// Chapter 07b: what it supports and how it is launched.

#include "launch.cuh"

int main(int argc, char** argv) {
  const gg::Chapter info = {
      .id = "07b_peak_hopper",
      .arch = gg::Arch::sm_90a,
      .title = "everything that pays",
      .k_multiple = 8,
      .n_multiple = 8,
      .multiple_reason = "TMA wants rows whose length is a multiple of 16 bytes",
      .sets = {"smoke", "edges", "skewed", "prefill", "decode", "step", "skew", "many", "random", "huge",
               "peers"},
      .previous = "07a_warp_specialized",
      .options = {"offsets", "tile", "tune"},
      .tiles = {{256, 128}, {128, 128}, {64, 128}, {32, 128}, {128, 64}, {32, 64}, {64, 64}},
      .chooses_tile = true,
      .ideas = chapter::IDEAS,
      .b_layouts = {gg::BLayout::nk, gg::BLayout::kn},
  };
  return gg::run<gg::Same<bf16>, gg::Same<f16>, gg::Operands<bf16, bf16, float>,
                 gg::Operands<f16, f16, float>>(
      argc, argv, info,
      []<class T, class D>(gg::Operands<T, T, D>, const gg::Problem& p, cudaStream_t stream) {
        chapter::launch<T, D>(p, stream);
      });
}
