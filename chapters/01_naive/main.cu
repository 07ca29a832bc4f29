// SPDX-License-Identifier: MIT
//
// Chapter 01: what it supports and how it is launched.

#include "common/harness/harness.cuh"
#include "kernel.cuh"

// [chapter]
int main(int argc, char** argv) {
  const gg::Chapter info = {
      .most_n = chapter::MOST_N,
      // For --set; --help describes each, and the first two are checked by default. In `far` the
      // distance between two B, p.b_group_stride(), is over 2^31 elements.
      .sets = {"smoke", "edges", "skewed", "prefill", "decode", "step", "skew", "far"},
      // Without this p.host_offsets() below is null.
      .reads_offsets_on_host = true,
  };
  // A, B and D are all bf16 (the default), all f16 or all float: Same<T> is Operands<T, T, T>. The
  // harness calls the lambda whenever D must be computed. Its first argument carries no value, only
  // the three types A, B and D, which must be the same here because `launch` has one T.
  return gg::run<gg::Same<bf16>, gg::Same<f16>, gg::Same<float>>(
      argc, argv, info,
      []<class A, class B, class D>(gg::Operands<A, B, D>, const gg::Problem& p, cudaStream_t stream) {
        // p.offsets() are the device's: here int32_t, in later chapters also int64_t.
        chapter::launch(p.a<A>(), p.b<B>(), p.d<D>(), p.offsets().as<int32_t>(), p.host_offsets(), p.groups(),
                        p.n(), p.k(), p.b_group_stride(), stream);
      });
}
// [/chapter]
