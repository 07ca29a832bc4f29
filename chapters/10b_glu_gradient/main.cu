// SPDX-License-Identifier: MIT
// Chapter 10b: what it supports and how it is launched.
#include "common/harness/harness.cuh"
#include "launch.cuh"

int main(int argc, char** argv) {
  using enum gg::Activation;
  const gg::Chapter info = {
      .k_multiple = 8,
      .n_multiple = 32,
      .multiple_reason = "TMA wants rows of whole 16 bytes, and 32 gates lie beside 32 ups",
      .sets = {"smoke", "edges", "skewed", "prefill", "decode", "step", "skew", "many", "random", "moe"},
      .options = {"offsets"},
      .epilogue = {.op = gg::Operator::glu_gradient,
                   .d_types = {gg::Format::bf16},
                   .amax = false,
                   .activations = {swiglu, geglu}},
      .workspace_bytes = chapter::Parts::bytes,
  };
  return gg::run<gg::Same<bf16>>(argc, argv, info,
                                 [](gg::Same<bf16>, const gg::Problem& p, cudaStream_t stream) {
                                   const gg::EpilogueTensors& e = p.epilogue();
                                   const chapter::Tensors tensors = {.a = p.a<bf16>(),
                                                                     .b = p.b<bf16>(),
                                                                     .c = static_cast<const bf16*>(e.saved_c),
                                                                     .operands = {e.alpha, e.prob},
                                                                     .d = p.d<bf16>(),
                                                                     .dprob = e.dprob,
                                                                     .dbias = e.dbias,
                                                                     .workspace = p.workspace()};
                                   chapter::launch(tensors, p.offsets(), {p.rows(), p.groups(), p.n(), p.k()},
                                                   e.activation == geglu, stream);
                                 });
}
