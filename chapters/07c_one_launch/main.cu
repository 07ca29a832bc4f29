// SPDX-License-Identifier: MIT
// Chapter 07c: what it supports and how it is launched.
#include "common/harness/harness.cuh"
#include "launch.cuh"

int main(int argc, char** argv) {
  const gg::Chapter info = {
      .k_multiple = 8,
      .n_multiple = 8,
      .multiple_reason = "TMA wants K in steps of 16 bytes, and N follows the same rule",
      .sets = {"smoke", "edges", "skewed", "prefill", "decode", "step", "skew", "many", "random", "peers",
               "moe"},
      .options = {"offsets", "tile", "blocks"},
      .tiles = {{128, 128}, {128, 256}, {64, 128}, {64, 64}},
      .b_layouts = {gg::BLayout::nk},
  };
  return gg::run<gg::Same<bf16>>(
      argc, argv, info, []<class T>(gg::Operands<T, T, T>, const gg::Problem& p, cudaStream_t stream) {
        chapter::launch(p.a<T>(), p.b<T>(), p.d<T>(), p.offsets(), p.rows(), p.groups(), p.n(), p.k(),
                        p.tile(), p.blocks(), stream);
      });
}
