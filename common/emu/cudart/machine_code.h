// SPDX-License-Identifier: MIT
//
// The one thing that the emulator reads from machine code: how many registers a kernel has on
// hardware, which decides how many of its blocks fit there. Nothing here trusts the bytes.

#pragma once

#include <map>
#include <string>

namespace gg::emu {

// Registers of a thread, by kernel, of a cubin; empty for bytes that are none.
std::map<std::string, int> register_counts(const std::string& cubin);

}  // namespace gg::emu
