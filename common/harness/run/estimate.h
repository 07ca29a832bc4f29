// SPDX-License-Identifier: MIT
//
// How long the emulator will take.

#pragma once

#include "common/harness/run/plan.h"
#include "common/harness/run/session.h"

namespace gg {

// Prints a sentence on stderr where the emulator will be busy for over a minute. Launches a corner
// of the largest problem to measure its rate. Problems that do not fit into memory are refused
// later and do not count.
void say_if_long(Session& session, const Plan& plan);

}  // namespace gg
