// SPDX-License-Identifier: MIT
// Chapter 10a: what it supports and how it is launched.
#include "common/harness/harness.cuh"
#include "launch.cuh"

int main(int argc, char** argv) {
  const gg::Chapter info = {
      .k_multiple = 8,
      .n_multiple = 8,
      .multiple_reason = "TMA wants rows of whole 16 bytes, and a box of D has 8 rows of one group",
      .product = gg::Product::weight_gradient,
      .most_b_rows = INT32_MAX,  // rows of D, G times K: the coordinates of a box are int
      .sets = {"smoke", "edges", "ends", "skewed", "prefill", "decode", "step", "skew", "many", "random",
               "moe", "wgrad"},
      .options = {"offsets", "accumulate"},
  };
  return gg::run<gg::Operands<bf16, bf16, float>, gg::Operands<f16, f16, float>, gg::Same<bf16>,
                 gg::Same<f16>>(
      argc, argv, info,
      []<class T, class D>(gg::Operands<T, T, D>, const gg::Problem& p, cudaStream_t stream) {
        chapter::launch(p.a<T>(), p.b<T>(), p.d<D>(), p.offsets(), p.rows(), p.groups(), p.n(), p.k(),
                        p.accumulates(), stream);
      });
}
