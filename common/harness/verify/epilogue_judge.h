// SPDX-License-Identifier: MIT
//
// The judge of the operators that have an epilogue: every output of a launch is checked.

#pragma once

#include <memory>

#include "common/harness/verify/judge.h"

namespace gg {

std::unique_ptr<Judge> epilogue_judge(Machine& machine, const Buffers& buffers, uint64_t seed);

}  // namespace gg
