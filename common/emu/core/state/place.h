// SPDX-License-Identifier: MIT
//
// Where an address of a lane lies. PTX ISA: "State Spaces", "Generic Addressing".

#pragma once

#include <string>

#include "common/emu/core/state/grid.h"

namespace gg::emu {

// The address of each lane, of instr.space: base + offset. A 32-bit base wraps around at 2^32
// and is zero-extended.
void addresses(Warp& warp, const Instr& instr, uint64_t (&out)[kLanes]);

// Where `width` bytes at an address lie. Faults unless they are inside one live allocation (or the
// block's shared, or the thread's local memory) and aligned. Space::generic addresses choose by
// their window. Shared addresses of another block of the cluster want instr.any_rank, as
// .shared::cluster forms set it.
struct Place {
  uint8_t* bytes = nullptr;
  Block* block = nullptr;              // whose shared memory it is; null: global or local
  size_t offset = 0;                   // in that shared memory
  const Allocation* buffer = nullptr;  // of global memory, that holds all of them
};
Place locate(Warp& warp, const Instr& instr, int lane, Space space, uint64_t address, int width,
             int alignment);

// "byte 128 of a buffer of 4096 bytes (the kernel's 2nd argument)", for reports, of an address in
// a live allocation.
std::string global_text(const Warp& warp, uint64_t address);
// Faults if the bytes are in global memory, in a guard beside a tensor.
void check_guards(const Warp& warp, const Instr& instr, int lane, uint64_t address, uint64_t bytes);

// "shared address 0xc10 (byte 2064 of tile)", for reports.
std::string shared_text(const Block& block, size_t offset);

}  // namespace gg::emu
