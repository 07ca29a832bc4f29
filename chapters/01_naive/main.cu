// SPDX-License-Identifier: MIT
//
// Chapter 01: what it supports and how it is launched.

#include "common/harness/harness.cuh"
#include "kernel.cuh"

// [chapter]
int main(int argc, char** argv) {
  const gg::Chapter info = {
      .most_n = chapter::MOST_N,
      // For --set; the first two are checked by default. In `far` the B lie 2^31 elements apart.
      .sets = {"smoke", "edges", "skewed", "prefill", "decode", "step", "skew", "far"},
      // Without this p.host_offsets() below is null.
      .reads_offsets_on_host = true,
  };
  // A, B and D are all bf16 (the default), all f16 or all float. The lambda is called for each launch, with
  // an empty tag that names the three types; Same<T> is short for Operands<T, T, T>.
  return gg::run<gg::Same<bf16>, gg::Same<f16>, gg::Same<float>>(
      argc, argv, info,
      []<class A, class B, class D>(gg::Operands<A, B, D>, const gg::Problem& p, cudaStream_t stream) {
        // p.offsets() are on the device, without a type: here they are int32_t.
        chapter::launch(p.a<A>(), p.b<B>(), p.d<D>(), p.offsets().as<int32_t>(), p.host_offsets(), p.groups(),
                        p.n(), p.k(), p.b_group_stride(), stream);
      });
}
// [/chapter]
