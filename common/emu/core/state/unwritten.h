// SPDX-License-Identifier: MIT
//
// A kernel's access of global memory that cudaMalloc, or a kernel's malloc, gave: a read must find
// bytes that somebody wrote, and a write makes them so. All other global memory counts as written.

#pragma once

#include "common/emu/core/state/grid.h"

namespace gg::emu {

// A slow way for memory of which a part was not written, see below.
void look_for_writes(Warp& warp, const Instr& instr, int lane, uint64_t address, uint64_t bytes);
void note_write(const Warp& warp, uint64_t address, uint64_t bytes);

// A lane's read of bytes that the allocation holds. Null: it is no read of global memory.
inline void check_global_read(Warp& w, const Instr& in, int lane, const Allocation* a, uint64_t address,
                              uint64_t bytes) {
  if (a && !a->all_written) look_for_writes(w, in, lane, address, bytes);
}
// Ahead of a write, likewise.
inline void will_write_global(const Warp& w, const Allocation* a, uint64_t address, uint64_t bytes) {
  if (a && !a->all_written) note_write(w, address, bytes);
}

}  // namespace gg::emu
