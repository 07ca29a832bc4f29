// SPDX-License-Identifier: MIT
//
// Chapter 02: what it supports and how it is launched.

#include "common/harness/harness.cuh"
#include "kernel.cuh"

int main(int argc, char** argv) {
  const gg::Chapter info = {
      .most_n = chapter::MOST_N,
      .sets = {"smoke", "edges", "skewed", "prefill", "decode", "step", "skew", "far"},
      .reads_offsets_on_host = true,
  };
  return gg::run<gg::Same<bf16>, gg::Same<f16>, gg::Same<float>>(
      argc, argv, info,
      []<class A, class B, class D>(gg::Operands<A, B, D>, const gg::Problem& p, cudaStream_t stream) {
        chapter::launch(p.a<A>(), p.b<B>(), p.d<D>(), p.offsets().as<int32_t>(), p.host_offsets(), p.groups(),
                        p.n(), p.k(), p.b_group_stride(), stream);
      });
}
