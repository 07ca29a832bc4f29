// SPDX-License-Identifier: MIT
//
// The half of a run that checks.

#pragma once

#include <vector>

#include "common/harness/run/plan.h"
#include "common/harness/run/session.h"

namespace gg {

// Checks problem i of these and prints a line; `given`: the operands of --in, else null. The
// emulator plays all of its device's multiprocessors for the small sets alone: a block without a
// tile takes time too.
void check_shape(Session& session, const std::vector<Shape>& shapes, size_t i, const GivenOperands* given);

// One brief check in another form than the one that was asked for.
void check_form(Session& session, const Form& form);

}  // namespace gg
