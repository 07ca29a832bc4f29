// SPDX-License-Identifier: MIT
// Chapter 09a: what it supports and how it is launched.
#include "common/harness.cuh"
#include "kernel.cuh"

using gg::BlockScaled, gg::Format, gg::e2m1, gg::e4m3, gg::e5m2, gg::ue4m3, gg::ue8m0;

int main(int argc, char** argv) {
  gg::Chapter info = {.id = "09a_quantized", .arch = gg::Arch::sm_100a, .title = "D by rows and by columns"};
  info.m_multiple = 256, info.pads_groups = true;
  info.multiple_reason = "groups are padded to the tiles of pairs of blocks";
  info.sets = {"smoke", "edges", "skewed", "prefill", "decode", "step", "skew", "many", "random", "peers"};
  info.previous = "08h_dynamic", info.options = {"format", "tile"};
  info.tiles = {{256, 256, 2}, {128, 256, 1}, {128, 256, 2}},
  info.b_layouts = {gg::BLayout::nk, gg::BLayout::kn};
  info.epilogue.op = gg::Operator::quant, info.epilogue.bias_types = {Format::bf16, Format::f16, Format::f32};
  info.epilogue.d_types = {Format::bf16, Format::f16, Format::f32, Format::e4m3, Format::e5m2};
  info.epilogue.sfd_row = info.epilogue.sfd_col = info.epilogue.discrete = info.epilogue.dynamic = true;
  auto launch = []<class T, int V, class S>(BlockScaled<T, V, S>, const gg::Problem& p, auto stream) {
    const chapter::Epilogue epilogue = {p.alpha(),      p.prob(),        p.bias<void>(), p.bias_format(),
                                        p.amax(),       p.d<void>(),     p.formats().d,  p.sfd_row(),
                                        p.norm_const(), p.d_col<void>(), p.sfd_col(),    p.discrete_col_sfd(),
                                        p.rows()};
    chapter::launch<S, V>(
        p.a<T>(), p.sfa(), {p.b<T>(), p.sfb(), p.b_ptrs<T>(), p.sfb_ptrs(), p.b_layout() == gg::BLayout::kn},
        epilogue, p.padded_offsets(), p.groups(), p.n(), p.k(), p.tile(), p.dynamic_schedule(), stream);
  };
  return gg::run<BlockScaled<e2m1, 16, ue4m3>, BlockScaled<e2m1, 32, ue8m0>, BlockScaled<e2m1, 16, ue8m0>,
                 BlockScaled<e4m3, 32, ue8m0>, BlockScaled<e5m2, 32, ue8m0>>(argc, argv, info, launch);
}
