// SPDX-License-Identifier: MIT
// Chapter 08a: what it supports and how it is launched.
#include "common/harness/harness.cuh"
#include "launch.cuh"

int main(int argc, char** argv) {
  const gg::Chapter info = {
      .k_multiple = 8,
      .n_multiple = 8,
      .multiple_reason = "TMA wants K in steps of 16 bytes, and D is stored in pieces of 16 bytes",
      .sets = {"smoke", "edges", "skewed", "prefill", "decode", "step", "skew", "many", "random", "peers"},
      .options = {"offsets", "tile", "blocks"},
      .tiles = {{128, 128}, {128, 256}, {128, 64}},
      .b_layouts = {gg::BLayout::nk},
  };
  return gg::run<gg::Same<bf16>, gg::Operands<bf16, bf16, float>>(
      argc, argv, info,
      []<class T, class TD>(gg::Operands<T, T, TD>, const gg::Problem& p, cudaStream_t stream) {
        p.offsets().with([&](const auto* offsets) {
          chapter::launch(p.a<T>(), p.b<T>(), p.d<TD>(), offsets, p.rows(), p.groups(), p.n(), p.k(),
                          p.tile(), p.blocks(), stream);
        });
      });
}
