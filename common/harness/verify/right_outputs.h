// SPDX-License-Identifier: MIT
//
// The judge of each operator, and the questions that are asked of whichever it is.

#pragma once

#include <functional>
#include <memory>

#include "common/harness/verify/judge.h"

namespace gg {

// The judge of the operator of these buffers, which must outlive it. `seed` draws samples
// of large problems.
std::unique_ptr<Judge> judge_of(Machine& machine, const Buffers& buffers, uint64_t seed);

// How many launches a check makes at least, which says how long it takes.
int launches_of_check(const Setup& setup);
// Does the machine's reference compare all outputs of a large problem? Of an epilogue it is a
// sample of a few rows.
bool compares_all(const Setup& setup);

// Are all outputs right that are there, on the random operands that are there?
bool right_outputs(Machine& machine, const Buffers& buffers, uint64_t seed);
// The same after `run`, which finds them poisoned.
bool right_on_random_data(Machine& machine, const Buffers& buffers, uint64_t seed,
                          const std::function<void()>& run);
// The same in each of the first `count` sets, by the machine's own reference.
bool right_in_sets(Machine& machine, const BufferSets& sets, int count, const std::function<void()>& run);

// After a launch over outputs of 0xFF bytes that right_on_random_data refused: its outputs
// are still there.
Failure why_wrong_on_random_data(Machine& machine, const Buffers& buffers, uint64_t seed);

}  // namespace gg
