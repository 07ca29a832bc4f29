// SPDX-License-Identifier: MIT
//
// The trials of check_problem and check_given where a launch has an epilogue: every output of it is checked.

#pragma once

#include "common/verify/trials.h"

namespace gg {

CheckResult check_epilogue(Machine& machine, const Setup& setup, const Launch& launch, const Shape& shape,
                           const CheckOptions& options);
CheckResult check_given_epilogue(Machine& machine, const Setup& setup, const Launch& launch,
                                 const GivenOperands& given);

}  // namespace gg
