// SPDX-License-Identifier: MIT
//
// Checked access to memory by address, for every instruction that loads or stores.

#pragma once

#include "common/emu/core/state/banks.h"
#include "common/emu/core/state/place.h"
#include "common/emu/core/state/shadow.h"

namespace gg::emu {

// Lane l's bytes are at data + l * pitch. Checks, counts, moves.
void read_memory(Warp& warp, const Instr& instr, Mask mask, const uint64_t (&address)[kLanes], int width,
                 uint8_t* data, int pitch, Access access = Access::plain);
void write_memory(Warp& warp, const Instr& instr, Mask mask, const uint64_t (&address)[kLanes], int width,
                  const uint8_t* data, int pitch, Access access = Access::plain);

}  // namespace gg::emu
