// SPDX-License-Identifier: MIT
//
// cp.async copies that a warp has under way, by lane and group. PTX ISA: "Data
// Movement and Conversion
// Instructions: Asynchronous copy: Non-bulk copy". The bytes of a copy move when its thread
// waits for the group (a late order) or at once; until the wait they are arriving, and nobody
// may touch them.

#pragma once

#include <functional>

#include "common/emu/core/state/grid.h"

namespace gg::emu {

struct CopyGroups {
  struct Copy {
    uint32_t group = 0;  // of its lane
    int lane = 0;
    uint64_t from = 0;
    int read = 0, bytes = 0;  // of the source; of the destination, the rest zeros
    Block* block = nullptr;
    size_t offset = 0;
    const Instr* instr = nullptr;
    SharedMemory::Handle window;
    uint64_t products = 0;  // that the warp had issued before
  };
  std::vector<Copy> under_way;
  uint32_t group[kLanes] = {};  // that copies started now belong to
  struct Then {
    int lane;
    uint32_t below;  // runs when no copy of a group below this is under way
    std::function<void()> run;
  };
  std::vector<Then> then;
};

// The copies of a warp; the list is made when it is first asked for.
CopyGroups& copy_groups_of(Warp& warp);
// Moves the bytes of one copy: those it reads of global memory, then zeros.
void copy_bytes(Warp& warp, const CopyGroups::Copy& copy);
// Lands the copies of these lanes whose group is older than its lane's newest `keep` groups, or
// `all` of them.
void land_copies(Warp& warp, Mask lanes, uint32_t keep, bool all);

// The least number of products that the warp had issued before one of the copies that
// land_copies would land.
uint64_t products_before(const Warp& warp, Mask lanes, uint32_t keep, bool all);

// Calls `then` once all copies that this lane has started by now have landed; at once if there are
// none under way. cp.async.mbarrier.arrive is made of it.
void when_copies_land(Warp& warp, int lane, std::function<void()> then);

}  // namespace gg::emu
