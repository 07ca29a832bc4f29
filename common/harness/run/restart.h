// SPDX-License-Identifier: MIT
//
// A program that starts itself anew under the emulator.

#pragma once

#include <string>

#include "common/harness/problem/chapter.h"

namespace gg {

// Puts this program in its own place under the emulator of its build tree, with the same
// arguments (argv). `why_no_gpu`: what the new start shall find there under this name; empty where
// nobody asked for a GPU. Throws gg::Error: no device where there is no emulator, device error
// where the program was started so and another runtime was loaded all the same.
[[noreturn]] void restart_on_emulator(char** arguments, const std::string& why_no_gpu);

// Was this program put there so? What the first start gave as its reason.
std::string why_no_gpu();

// In a program that was put there so: the emulator plays a device of the chapter's
// kind. Elsewhere nothing.
void play_device_of(const Chapter& chapter);

}  // namespace gg
