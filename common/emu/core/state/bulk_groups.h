// SPDX-License-Identifier: MIT
//
// The groups of bulk stores that each lane of a warp commits and waits for.
// PTX ISA: "Asynchronous copy: Bulk copy: Completion mechanisms", and the sections of
// cp.async.bulk.commit_group and cp.async.bulk.wait_group.

#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "common/emu/core/state/grid.h"

namespace gg::emu {

struct BulkGroup {
  uint64_t number = 0;  // among those that its lane has committed, from 1 on; 0: it is open
  int unread = 0;       // copies that still read their source
  int unfinished = 0;   // copies that are not done
};

struct BulkGroups {
  struct Wait {        // a wait_group
    int64_t left = 0;  // groups that it lets be unfinished
    // Groups that the lane had committed then; of these, not waited for before.
    uint64_t commits = 0, pending = 0;
  };
  struct Lane {
    std::shared_ptr<BulkGroup> open;                   // what it has started since its last commit
    std::deque<std::shared_ptr<BulkGroup>> committed;  // oldest first, without some that are done
    // Groups that the lane has committed; the oldest, that it has waited for.
    uint64_t commits = 0, waited = 0;
    std::optional<Wait> wait;  // its newest

    uint64_t pending() const { return commits - waited; }
  };
  Lane lanes[kLanes];
};

// The groups of a warp, made when they are first asked for.
BulkGroups& bulk_groups_of(Warp& warp);
// Says why the source of a store, whose window this is, is not free yet: the likely cause.
std::string why_not_read(const Window& window);

}  // namespace gg::emu
