// SPDX-License-Identifier: MIT
//
// Chapter 01: what it supports and how it is launched.

#include "common/harness/harness.cuh"
#include "kernel.cuh"

// [chapter]
int main(int argc, char** argv) {
  const gg::Chapter info = {
      // The grid's y extent is at most 65535 blocks of THREADS_X columns.
      .most_n = 65535 * chapter::THREADS_X,
      // For --set; the first two are checked by default. In `far` the B lie 2^31 elements apart.
      .sets = {"smoke", "edges", "skewed", "prefill", "decode", "step", "skew", "far"},
      // Without this host_offsets() is null.
      .reads_offsets_on_host = true,
  };
  // One instance for each type of A, B and D. The lambda is called for each launch.
  return gg::run<gg::Same<bf16>, gg::Same<f16>, gg::Same<float>>(
      argc, argv, info,
      []<class A, class B, class D>(gg::Operands<A, B, D>, const gg::Problem& p, cudaStream_t stream) {
        chapter::launch(p.a<A>(), p.b<B>(), p.d<D>(), p.offsets().as<int32_t>(), p.host_offsets(), p.groups(),
                        p.n(), p.k(), p.b_group_stride(), stream);
      });
}
// [/chapter]
