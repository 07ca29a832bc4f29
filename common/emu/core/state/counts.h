// SPDX-License-Identifier: MIT
//
// Counts of a kernel, per instruction, kept by the thread that executes it.

#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "common/emu/core/state/instr.h"

namespace gg::emu {

// Counts of one kernel, per instruction of its code.
struct InstrCounts {
  uint64_t warps = 0, lanes = 0;           // times executed by a warp; by lanes
  uint64_t global_bytes = 0, sectors = 0;  // asked for by lanes; 32-byte sectors touched
  uint64_t shared_bytes = 0;
  // Wavefronts of shared memory: taken, and without bank conflicts.
  uint64_t wavefronts = 0, least_wavefronts = 0;
  uint64_t waits = 0;  // times a warp had to wait here
  uint64_t multiply_adds = 0;
  // overlap.h: products, those issued while loads or stores were under way, the former counted
  // where the warp waits; loads of sums from tensor memory, those beside a later product.
  uint64_t products = 0, products_during_loads = 0, products_during_stores = 0;
  uint64_t tmem_loads = 0, tmem_loads_during_products = 0;
};
using Counts = std::map<const Code*, std::vector<InstrCounts>>;

// The counts for this thread's instructions, one for each instruction of the code; null: none.
extern constinit thread_local InstrCounts* current_counts;
// The counts of an instruction that this thread executes.
inline InstrCounts& counts_of(const Instr& instr) { return current_counts[instr.index]; }

}  // namespace gg::emu
