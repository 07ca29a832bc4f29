// SPDX-License-Identifier: MIT
//
// The emulator as seen by the harness: is it this process's CUDA runtime, what did it count, and how a
// program starts itself anew under it.

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/emu/runtime/interface.h"
#include "common/harness.cuh"

namespace gg {

// What the emulator answers beyond the CUDA runtime; null where another runtime is loaded.
const GgEmuInterface* emulator();

// Counters of all launches since `reset_counts`, in the emulator's order.
using Counters = std::vector<std::pair<std::string, uint64_t>>;
Counters emulator_counters();

// How long this many useful multiply-adds take on so many cores, in one sentence that names a set for those
// in a hurry; empty where it is about a minute at most.
std::string long_emulation(double multiply_adds, int cores, const std::string& short_set);

// Puts this program in its own place under the emulator of its build tree, with the same arguments (argv),
// and says so if it is for want of a GPU; the emulator plays one of the chapter's kind. Throws gg::Error: no
// device where there is no emulator, device error where the program was started so and another runtime was
// loaded all the same.
[[noreturn]] void restart_on_emulator(char** arguments, const Chapter& chapter,
                                      const std::string& why_no_gpu);

}  // namespace gg
