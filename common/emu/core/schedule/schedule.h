// SPDX-License-Identifier: MIT
//
// The declarations that the files of the scheduler share. A warp is a list of fragments, lanes at
// the same place; warps take turns of a few instructions; clusters are handed to threads in order.

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/emu/core/state/grid.h"

namespace gg::emu {

constexpr int kTurn = 32;  // instructions of a warp's turn in the fair order
// Steps of a warp before another of its fragments goes first, so that none waits for ever.
constexpr uint32_t kFragmentTurn = 512;

// A hash with one more word in it.
inline uint64_t mixed(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
  return hash ^ hash >> 29;
}

// start.cpp: a cluster of the grid with all its blocks and warps, before its first instruction.
// `index` counts clusters, x fastest.
std::unique_ptr<Cluster> start_cluster(Grid& grid, int64_t index);

// step.cpp
// The fragment to run: the lowest place first, every kFragmentTurn steps another. Null: none can.
Fragment* choose(Warp& warp);
// Up to `turn` instructions of a warp; how many it did.
int run_warp(Warp& warp, const Code& code, int turn);

// polling.cpp
// Does the instruction ask for what others may change?
bool asks_others(const Instr& instr);
// Runs the warps of a cluster on, each by itself, and tells whether all that do not wait ask the
// same questions again and again and get the same answers. A warp that computes without asking has
// an end of its own. `looks`: how often the cluster has been looked at, this time included; later
// looks last longer.
bool polls_in_vain(Cluster& cluster, const Code& code, int looks);

// deadlock.cpp: faults with what every warp of the cluster does. `what` says who can't go on.
[[noreturn]] void deadlock(const Cluster& cluster, const Code& code, const std::string& what);

// turns.cpp: lets the warps of a cluster take turns until all have ended, until only a change by
// another cluster could help (stuck), or until nothing has changed for long (spinning).
enum class Progress { done, spinning, stuck };
Progress run_cluster(Cluster& cluster, const Code& code);

}  // namespace gg::emu
