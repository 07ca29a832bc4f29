// SPDX-License-Identifier: MIT
//
// The emulator as seen by the harness: is it this process's CUDA runtime, and what did it count?

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/emu/cudart/interface.h"

namespace gg {

// Returns the emulator's interface beyond the CUDA runtime; null where another runtime is loaded.
const GgEmuInterface* emulator();
std::string loaded_runtime();  // the file of the CUDA runtime in use

// The multiprocessors of the small device that a check plays beside one with `whole`
// multiprocessors: two, enough for a pair of blocks, or as many as a larger `cluster` has, or the
// whole if it has no more.
int small_multiprocessors(int whole, int cluster);
// And of the one that takes the place of the whole device where a problem is checked that has more
// tiles than few blocks.
constexpr int kSomeMultiprocessors = 16;

// Counters of all launches since `reset_counts`, in the emulator's order.
using Counters = std::vector<std::pair<std::string, uint64_t>>;
Counters emulator_counters();

// Could so many useful multiply-adds take over a minute on so many cores, in the slowest chapter?
bool may_take_long(double multiply_adds, int cores);
// How long they take, in one sentence that names a set for those in a hurry; empty where it is
// about a minute at most. `rate`: multiply-adds a second of one core, as measured; 0: it was not,
// and the rates of all chapters count.
std::string long_emulation(double multiply_adds, int cores, double rate, const std::string& short_set);
// Does somebody want a list of all launches, as --trace and --launches of gg-emu write it?
bool launches_are_listed();

}  // namespace gg
