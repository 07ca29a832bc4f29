// SPDX-License-Identifier: MIT
//
// Chapter 05a: what it supports and how it is launched.

#include "common/harness/harness.cuh"
#include "kernel.cuh"

int main(int argc, char** argv) {
  const gg::Chapter info = {
      .k_multiple = 8,
      .n_multiple = 8,
      .multiple_reason = "rows are copied in pieces of 16 bytes",
      .sets = {"smoke", "edges", "skewed", "prefill", "decode", "step", "skew", "helion", "many", "huge"},
      .options = {"offsets", "shared-b", "tile"},  // for "shared-b" the harness adds the set `far`
      .tiles = {{128, 128}, {64, 64}},
      // Other tiles than the first are for the first types and int32_t offsets alone, as in launch.
      .one_tile_for_others = true,
  };
  return gg::run<gg::Same<bf16>, gg::Same<f16>, gg::Operands<bf16, f16, float>,
                 gg::Operands<f16, bf16, float>>(
      argc, argv, info,
      []<class A, class B, class D>(gg::Operands<A, B, D>, const gg::Problem& p, cudaStream_t stream) {
        p.offsets().with([&](const auto* offsets) {
          chapter::launch(p.a<A>(), p.b<B>(), p.d<D>(), offsets, p.groups(), p.n(), p.k(), p.b_group_stride(),
                          p.tile(), stream);
        });
      });
}
