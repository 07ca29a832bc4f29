// SPDX-License-Identifier: MIT
// Chapter 06b: what it supports and how it is launched.

#include "common/harness/harness.cuh"
#include "kernel.cuh"

int main(int argc, char** argv) {
  const gg::Chapter info = {
      .k_multiple = 16,
      .n_multiple = 8,
      .m_multiple = 64,
      .multiple_reason = "one WGMMA computes 64 rows and multiples of 8 columns, 16 steps of k at a time",
      // A grid has at most 65535 blocks in y, for each group's rows, and in z, for at most 4096 groups.
      .most_m = 65535 * chapter::BM,
      .most_b_rows = INT32_MAX,  // of all groups: a box's coordinates are int
      .equal_groups = true,
      .sets = {"smoke_uniform", "edges_uniform", "prefill", "step", "peers"},
      .numbers = {{.name = "tile-k",
                   .values = {16, 64},
                   .help = "steps of k in a slice: columns of A, rows of B",
                   .divides_k = true}},
  };
  return gg::run<gg::Operands<bf16, bf16, float>, gg::Operands<f16, f16, float>, gg::Same<bf16>,
                 gg::Same<f16>>(
      argc, argv, info,
      []<class T, class D>(gg::Operands<T, T, D>, const gg::Problem& p, cudaStream_t stream) {
        chapter::launch(p.a<T>(), p.b<T>(), p.d<D>(), p.groups(), p.rows_each(), p.n(), p.k(),
                        p.number("tile-k"), stream);
      });
}
