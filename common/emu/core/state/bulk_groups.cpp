// SPDX-License-Identifier: MIT
//
// Why the source of a bulk store is not free yet, in words.

#include "common/emu/core/state/bulk_groups.h"

namespace gg::emu {
namespace {

std::string lane_text(const Warp& w, int lane) {
  return "lane " + std::to_string(lane) + " of warp " + std::to_string(w.index);
}

// A lane of the block that waits and never commits.
std::string who_waits_for_nothing(const Block& block) {
  for (const auto& warp : block.warps) {
    for (int lane = 0; warp->async.bulk && lane < kLanes; ++lane) {
      const BulkGroups::Lane& one = warp->async.bulk->lanes[lane];
      if (one.wait && one.commits == 0) return lane_text(*warp, lane);
    }
  }
  return "";
}

}  // namespace

BulkGroups& bulk_groups_of(Warp& w) {
  if (!w.async.bulk) w.async.bulk = std::make_shared<BulkGroups>();
  return *w.async.bulk;
}

std::string why_not_read(const Window& window) {
  const BulkGroups::Lane& own = window.warp->async.bulk->lanes[window.lane];
  const uint64_t number = window.group->number;
  const std::string who = lane_text(*window.warp, window.lane);
  if (number == 0) {
    return "cp.async.bulk.commit_group is missing: " + who +
           " has not committed the group of this store, and a wait_group waits for committed groups only";
  }
  if (own.wait && own.wait->commits >= number) {
    const std::string left = std::to_string(own.wait->left);
    return "the number of cp.async.bulk.wait_group is too large: in " + who + " " +
           std::to_string(own.wait->pending) + (own.wait->pending == 1 ? " group was" : " groups were") +
           " pending, and wait_group " + left + " lets the newest " + left +
           " be unfinished. wait_group.read " + std::to_string(own.wait->commits - number) +
           " waits for this store too";
  }
  const std::string other = who_waits_for_nothing(*window.warp->block);
  return who + " has not waited since it committed the group of this store: cp.async.bulk.wait_group.read " +
         std::to_string(own.commits - number) + " in that lane" +
         (other.empty() ? ""
                        : ". The wait_group of " + other +
                              " waits for nothing: groups belong to the thread that commits them");
}

}  // namespace gg::emu
