// SPDX-License-Identifier: MIT
// Chapter 07b: what it supports and how it is launched.
#include "common/harness/harness.cuh"
#include "launch.cuh"

int main(int argc, char** argv) {
  const gg::Chapter info = {
      .k_multiple = 8,
      .n_multiple = 8,
      .multiple_reason = "rows of A, B and D have whole 16 bytes, as TMA wants those of A and B",
      .sets = {"smoke", "edges", "skewed", "prefill", "decode", "step", "skew", "many", "random", "peers"},
      .options = {"offsets", "tile", "blocks", "print-schedule"},
      .tiles = {{128, 128}, {128, 256}, {64, 128}, {64, 64}},
      .b_layouts = {gg::BLayout::nk},
      .own_sizes = gg::OwnSizes::when_listed,
      .print_schedule = chapter::print_schedule,
  };
  return gg::run<gg::Same<bf16>>(
      argc, argv, info, []<class T>(gg::Operands<T, T, T>, const gg::Problem& p, cudaStream_t stream) {
        p.offsets().with([&](const auto* offsets) {
          const chapter::GroupArrays<T> arrays = {.a_ptrs = p.own().a_ptrs<T>(),
                                                  .b_ptrs = p.own().b_ptrs<T>(),
                                                  .d_ptrs = p.own().d_ptrs<T>(),
                                                  .sizes = p.own().sizes,
                                                  .leading_dims = p.own().leading_dims};
          chapter::launch(p.a<T>(), p.b<T>(), p.d<T>(), offsets, p.rows(), p.groups(), p.n(), p.k(), arrays,
                          p.tile(), p.blocks(), stream);
        });
      });
}
