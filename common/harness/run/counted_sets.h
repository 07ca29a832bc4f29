// SPDX-License-Identifier: MIT
//
// The emulator's answer to --bench: counts in place of times.

#pragma once

#include <vector>

#include "common/harness/run/session.h"

namespace gg {

// Counts one launch of each problem on random data and prints it. A set's rows in the CSV file hold
// the sums over its problems; there are none where an output is wrong.
void count_sets(Session& session, const std::vector<Shape>& shapes);

}  // namespace gg
