// SPDX-License-Identifier: MIT
//
// PTX names a new register for every value, far more than are in use at a time. Registers whose values are
// never needed at the same place may share one in the file, which then fits a core's cache.

#pragma once

#include <vector>

#include "common/emu/machine.h"

namespace gg::emu {

// For each register of the code a number; registers of one size with the same number may share a place.
std::vector<int> share_registers(const Code& code);

}  // namespace gg::emu
