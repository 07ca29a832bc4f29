// SPDX-License-Identifier: MIT
//
// PTX names a new register for every value, far more than are in use at a time. Registers
// whose values are never needed at the same place may share one in the file, which then fits
// a core's cache.

#pragma once

#include <vector>

#include "common/emu/core/state/grid.h"

namespace gg::emu {

// Where a lane may be after an instruction.
std::vector<int32_t> next_of(const Code& code, int32_t at);

// For each register of the code a number; registers of one size and number may share a place.
std::vector<int> share_registers(const Code& code);

// Finds the reads that must be looked at when they are executed, as the register is not written
// on all ways to them (Instr::asks), and the writes that must be remembered for these
// (records). Instructions are `straight` that have nothing to ask, no guard, and no need to
// wait for other lanes.
void find_straight(Code& code);

}  // namespace gg::emu
