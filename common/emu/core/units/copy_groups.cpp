// SPDX-License-Identifier: MIT
//
// The copies of cp.async on their way, and when they land. PTX ISA: "Data Movement and Conversion
// Instructions: Asynchronous copy: Non-bulk copy".

#include "common/emu/core/units/copy_groups.h"

#include <algorithm>

#include "common/emu/core/state/place.h"

namespace gg::emu {

CopyGroups& copy_groups_of(Warp& w) {
  if (!w.async.copies) w.async.copies = std::make_shared<CopyGroups>();
  return *w.async.copies;
}

void copy_bytes(Warp& w, const CopyGroups::Copy& c) {
  uint8_t* to = c.block->shared.bytes.data() + c.offset;
  if (c.read)
    std::memcpy(to, locate(w, *c.instr, c.lane, Space::global, c.from, c.read, 1).bytes, size_t(c.read));
  std::memset(to + c.read, 0, size_t(c.bytes - c.read));
}

namespace {

// The copy is there for the thread that waited; others learn of it by a barrier.
void land(Warp& w, const CopyGroups::Copy& c) {
  if (w.block->grid->order.late) copy_bytes(w, c);
  c.block->shared.close(c.window);
  if (c.block->shared.races.on()) c.block->shared.races.write(w, *c.instr, c.lane, c.offset, c.bytes);
}

// Whether a wait of these lanes, that keeps so many groups, waits for a copy.
bool is_due(const CopyGroups& g, const CopyGroups::Copy& c, Mask m, uint32_t keep, bool all) {
  return m >> c.lane & 1 && (all || (c.group < g.group[c.lane] && g.group[c.lane] - c.group > keep));
}

}  // namespace

uint64_t products_before(const Warp& w, Mask m, uint32_t keep, bool all) {
  uint64_t least = w.products.issued;
  if (!w.async.copies) return least;
  for (const CopyGroups::Copy& c : w.async.copies->under_way) {
    if (is_due(*w.async.copies, c, m, keep, all)) least = std::min(least, c.products);
  }
  return least;
}

void land_copies(Warp& w, Mask m, uint32_t keep, bool all) {
  CopyGroups& g = copy_groups_of(w);
  std::erase_if(g.under_way, [&](const CopyGroups::Copy& c) {
    const bool due = is_due(g, c, m, keep, all);
    if (due) land(w, c);
    return due;
  });
  for (size_t i = 0; i < g.then.size();) {
    const auto& t = g.then[i];
    const bool waits = std::any_of(g.under_way.begin(), g.under_way.end(),
                                   [&](const auto& c) { return c.lane == t.lane && c.group < t.below; });
    if (waits) {
      ++i;
      continue;
    }
    const auto run = t.run;
    g.then.erase(g.then.begin() + long(i));
    run();
  }
}

void when_copies_land(Warp& warp, int lane, std::function<void()> then) {
  CopyGroups& g = copy_groups_of(warp);
  const bool any =
      std::any_of(g.under_way.begin(), g.under_way.end(), [&](const auto& c) { return c.lane == lane; });
  if (!any) return then();
  // Nobody waits for these by group: they land by themselves, some time later.
  Cluster& cluster = *warp.block->cluster;
  const uint32_t below = ++g.group[lane];
  g.then.push_back({lane, below, std::move(then)});
  cluster.effects.push_back({[&warp, lane, below] {
                               CopyGroups& groups = copy_groups_of(warp);
                               const uint32_t newest = groups.group[lane];
                               land_copies(warp, Mask(1) << lane, newest - below, false);
                             },
                             cluster.round + 4});
}

}  // namespace gg::emu
