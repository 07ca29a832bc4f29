// SPDX-License-Identifier: MIT
// Chapter 09c: what it supports and how it is launched.
#include "common/harness.cuh"
#include "kernel.cuh"

using gg::BlockScaled, gg::Format, gg::e2m1, gg::ue4m3, gg::ue8m0;

int main(int argc, char** argv) {
  using enum gg::Activation;
  gg::Chapter info = {.id = "09c_glu_hadamard", .arch = gg::Arch::sm_100a, .title = "A from tensor memory"};
  info.k_multiple = 32, info.n_multiple = 64, info.m_multiple = 256, info.pads_groups = true;
  info.multiple_reason = "TMA wants rows of 16 bytes, 32 gates lie beside 32 ups, and a tile has 256 rows";
  info.sets = {"smoke", "edges", "skewed", "prefill", "decode", "step", "skew", "many", "random", "peers"};
  info.previous = "09b_glu", info.options = {"format", "tile"}, info.tiles = {{256, 256, 2}};
  auto& e = info.epilogue;
  e.op = gg::Operator::glu_hadamard, e.discrete = e.dynamic = e.butterfly = true;
  e.d_types = e.c_types = {Format::bf16, Format::f16}, e.activations = {swiglu, geglu};
  e.bias_types = {Format::bf16, Format::f16, Format::f32}, info.b_layouts = {gg::BLayout::nk};
  auto launch = []<class T, int V, class S>(BlockScaled<T, V, S>, const gg::Problem& p, auto stream) {
    chapter::Epilogue epilogue = {
        p.alpha(),   p.prob(),      p.bias<void>(), p.bias_format(),         p.amax(), p.c<void>(),
        p.d<void>(), p.formats().c, p.formats().d,  p.activation() == geglu, nullptr};
    if (!p.butterfly()) epilogue.w = p.hadamard();
    chapter::launch<S, V>(p.a<T>(), p.sfa(), {p.b<T>(), p.sfb(), p.b_ptrs<T>(), p.sfb_ptrs()}, epilogue,
                          p.padded_offsets(), p.rows(), p.groups(), p.n(), p.k(), p.tile(),
                          p.dynamic_schedule(), stream);
  };
  return gg::run<BlockScaled<e2m1, 16, ue4m3>, BlockScaled<e2m1, 32, ue8m0>, BlockScaled<e2m1, 16, ue8m0>>(
      argc, argv, info, launch);
}
