// SPDX-License-Identifier: MIT
//
// Loads of shared memory that are still under way when their warp tells another block that it has
// read. The arrival at an mbarrier of another block takes another way than a load, and .release
// reaches no further than the scope it names, the block if none. So what comes back from there may
// write over what is still to be read. An H200 did that: a load, behind stores as it seems, took
// longer than an arrival there and back. What makes a load come first: a fence, a barrier of the
// block or of the cluster, .release.cluster; or something that is not done before the loaded value
// is in its register.

#pragma once

#include "common/emu/core/state/grid.h"

namespace gg::emu {

// Finds the ways from a load to such an arrival on which nothing has waited for the load's value,
// as a branch does, or an access of memory. Arithmetic and shuffles do not count, for the compiler
// may put them behind the arrival, or leave them out. Sets Instr::overtaken and Instr::overtakes.
void find_overtaken(Code& code);

// At a load that is `overtaken`, by these lanes.
void load_late(Warp& warp, const Instr& load, Mask lanes, const uint64_t (&address)[kLanes]);
// Behind such an arrival, `elsewhere` if it was indeed in another block: the loads that it
// overtakes are made now, as far as races are concerned. All others have been made: what one lane
// waits for, its warp does.
void make_late_loads(Warp& warp, const Instr& arrival, bool elsewhere);

}  // namespace gg::emu
