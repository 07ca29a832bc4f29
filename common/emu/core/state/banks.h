// SPDX-License-Identifier: MIT
//
// The cost of a warp's access: wavefronts of shared memory, and sectors of global memory.

#pragma once

#include "common/emu/core/state/grid.h"

namespace gg::emu {

// How the lanes of an access of shared memory lie to each other. Most accesses of a kernel repeat
// one of a few patterns and differ only in where they start.
struct Pattern {
  uint32_t relative[kLanes];  // to the first lane's address
  struct Piece {              // bytes that lanes touch one behind the other
    int32_t begin = 0;        // relative, too
    uint32_t bytes = 0;
  };
  Piece runs[kLanes];
  int run_count = 0;
  Mask mask = 0, leaders = 0;  // leaders: the first lane of each address
  uint32_t start = 0;          // modulo 128
  int width = 0;
  uint64_t wavefronts = 0, least = 0;
};

// The pattern of these addresses; the reference holds until this thread asks for another.
const Pattern& pattern_of(const Instr& instr, Mask mask, const uint64_t (&address)[kLanes], int width);
// Adds bytes and wavefronts to the instruction's counts.
void count_pattern(const Instr& instr, const Pattern& pattern);

// Counts of a warp-wide access: shared addresses (bytes and wavefronts) or global ones
// (bytes and sectors).
void count_shared(const Instr& instr, Mask mask, const uint64_t (&address)[kLanes], int width);
void count_global(const Instr& instr, Mask mask, const uint64_t (&address)[kLanes], int width);
// The same by instr.space; each lane of a generic access counts where its address lies. Local
// memory counts nowhere.
void count_access(const Instr& instr, Mask mask, const uint64_t (&address)[kLanes], int width);

}  // namespace gg::emu
