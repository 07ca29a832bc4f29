// SPDX-License-Identifier: MIT
//
// How much memory of the host is left: it is all that the emulated device has.

#pragma once

#include <cstddef>

namespace gg::emu {

size_t total_host_bytes();  // of the machine, or of the control group if that has a limit
size_t free_host_bytes();   // what a program may count on now

}  // namespace gg::emu
