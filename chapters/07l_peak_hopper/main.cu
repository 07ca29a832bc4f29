// SPDX-License-Identifier: MIT
// Chapter 07l: what it supports and how it is launched.
#include "common/harness/harness.cuh"
#include "launch.cuh"

int main(int argc, char** argv) {
  const gg::Chapter info = {
      .k_multiple = 8,
      .n_multiple = 8,
      .multiple_reason = "TMA wants rows whose length is a multiple of 16 bytes",
      .sets = {"smoke", "edges", "long", "skewed", "prefill", "decode", "step", "skew", "many", "random",
               "huge", "peers", "moe", "ragged", "drawn", "few_tiles"},
      .options = {"offsets", "tile", "tune"},
      // BM, BN and a worker's blocks of each configuration in choose.cuh. --tile without --cluster is
      // the first of its size.
      .tiles =
          {{256, 128, 2}, {256, 128}, {128, 128}, {64, 128}, {128, 64}, {64, 64, 4}, {64, 64, 2}, {64, 64}},
      .one_tile_for_others = true,
      .chooses_tile = true,
      .ideas = {{"pdl", "a launch begins while the one before ends"}},
      .b_layouts = {gg::BLayout::nk, gg::BLayout::kn},
  };
  return gg::run<gg::Same<bf16>, gg::Same<f16>, gg::Operands<bf16, bf16, float>,
                 gg::Operands<f16, f16, float>>(
      argc, argv, info,
      []<class T, class D>(gg::Operands<T, T, D>, const gg::Problem& p, cudaStream_t stream) {
        chapter::launch(p.a<T>(), p.b<T>(), p.d<D>(), p.offsets(), p.rows(),
                        {p.m_total(), p.groups(), p.n(), p.k(), p.rows_each()},
                        p.b_layout() == gg::BLayout::nk, p.tile(), !p.is_off("pdl"), stream);
      });
}
