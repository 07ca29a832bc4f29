// SPDX-License-Identifier: MIT
//
// Trials of launches with an epilogue.

#include "common/verify/epilogue_trials.h"

#include <cstdio>

#include "common/verify/operand_files.h"

namespace gg {

static CheckResult launched(Machine& machine, const Buffers& buffers, const Launch& launch) {
  buffers.poison(0xFF);
  machine.run([&](cudaStream_t stream) { launch(buffers.problem(), stream); });
  std::fprintf(stderr, "the outputs of epilogues are not compared yet\n");
  return {};
}

CheckResult check_epilogue(Machine& machine, const Setup& setup, const Launch& launch, const Shape& shape,
                           const CheckOptions& options) {
  Buffers buffers(machine, setup, shape);
  buffers.fill_operands({Fill::Kind::integers, integer_range(shape.k_of(0)), options.seed * 4 + 1, 0});
  return launched(machine, buffers, launch);
}

CheckResult check_given_epilogue(Machine& machine, const Setup& setup, const Launch& launch,
                                 const GivenOperands& given) {
  Buffers buffers(machine, setup, given.shape);
  given.fill(machine, buffers, 0xFF);
  return launched(machine, buffers, launch);
}

}  // namespace gg
