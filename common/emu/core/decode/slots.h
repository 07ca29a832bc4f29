// SPDX-License-Identifier: MIT
//
// Places in a warp's register file.

#pragma once

#include <cstdint>

#include "common/emu/core/state/instr.h"

namespace gg::emu {

constexpr uint32_t kLineBytes = 64;  // of the cache: every register's lanes begin with one

// A new place for a value of this many bits in each lane. Throws std::bad_alloc where a warp's file
// would be larger than any kernel's.
uint32_t append_slot(Code& code, int bits);
// Bits of a register's place: a predicate takes a byte.
int slot_bits(const TypeInfo& type);

}  // namespace gg::emu
