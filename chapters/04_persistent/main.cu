// SPDX-License-Identifier: MIT
//
// Chapter 04: what it supports and how it is launched.

#include "common/harness/harness.cuh"
#include "kernel.cuh"

int main(int argc, char** argv) {
  const gg::Chapter info = {
      .k_multiple = 8,
      .n_multiple = 8,
      .multiple_reason = "rows are copied in pieces of 16 bytes",
      .sets = {"smoke", "edges", "skewed", "prefill", "decode", "step", "skew"},
      .options = {"blocks", "tile", "print-schedule"},
      .tiles = {{128, 128}, {64, 64}},
      .own_sizes = gg::OwnSizes::always,
      // The harness writes the descriptions on the host, from the groups' rows. If this were false, a
      // check would also record a launch in a CUDA graph and launch the graph with other offsets, as it
      // does from 05a on.
      .reads_offsets_on_host = true,
      .print_schedule = chapter::print_schedule,
  };
  return gg::run<gg::Same<bf16>, gg::Same<f16>>(
      argc, argv, info,
      []<class A, class B, class D>(gg::Operands<A, B, D>, const gg::Problem& p, cudaStream_t stream) {
        // own(): descriptions from the harness, which starts each matrix at a multiple of 256 bytes.
        chapter::launch(p.own().a_ptrs<A>(), p.own().b_ptrs<B>(), p.own().d_ptrs<D>(), p.own().sizes,
                        p.own().leading_dims, p.groups(), p.tile(), p.blocks(), stream);
      });
}
