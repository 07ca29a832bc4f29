// SPDX-License-Identifier: MIT
//
// When those who wait at a barrier of a block or of a cluster go on: all have arrived,
// or have ended. PTX ISA: "Parallel Synchronization and Communication Instructions:
// bar, barrier", "barrier.cluster".

#pragma once

#include <cstdint>
#include <string>

#include "common/emu/core/state/grid.h"

namespace gg::emu {

std::string threads_text(int threads);  // "1 thread", "64 threads"
std::string barrier_name(uint32_t id);  // "barrier 3"
// Threads that a block's barrier wants: a warp arrives with all its 32 lanes, the last one too if
// it has fewer.
int threads_of(const Block& block);

// The likely cause where threads have ended and others wait for them.
constexpr const char* kReturnedBefore =
    "a return before the barrier: threads without work skip the work, not the barrier. (Hardware lets the "
    "others go on; "
    "__syncthreads() wants all threads of the block)";

// Ends the phase of barrier `id` of the block, which somebody has entered, if all it wants have
// arrived or have ended; true if that is so. Faults (barrier) if some have ended.
bool complete_barrier(Block& block, uint32_t id);
// The same of the cluster's barrier, if anybody has arrived there.
void complete_barrier(Cluster& cluster);

// Lanes of the warp have ended. Threads that have ended are waited for no longer.
void threads_ended(Warp& warp);

}  // namespace gg::emu
