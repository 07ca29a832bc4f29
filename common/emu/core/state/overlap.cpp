// SPDX-License-Identifier: MIT
//
// Finding what overlaps.

#include "common/emu/core/state/overlap.h"

#include <algorithm>

#include "common/emu/core/state/bulk_groups.h"
#include "common/emu/core/state/grid.h"

namespace gg::emu {
namespace {

bool stores_are_pending(const Warp& w) {
  if (!w.async.bulk) return false;
  return std::any_of(w.async.bulk->lanes, w.async.bulk->lanes + kLanes,
                     [](const BulkGroups::Lane& lane) { return lane.pending() > 0; });
}

// Products behind the first `before` overlap with a load that the warp has waited for now.
void count_behind(Warp& w, const Instr& in, uint64_t before) {
  WarpProducts& p = w.products;
  const uint64_t first = std::max(p.counted, before);
  counts_of(in).products_during_loads += p.issued - std::min(p.issued, first);
  if (p.issued <= first) return;
  p.counted = p.issued;
  p.since.clear();
}

}  // namespace

void product_issued(Warp& w, const Instr& in) {
  WarpProducts& p = w.products;
  const uint32_t now = w.race.clock[w.race.agent];
  const bool may_wait_for_loads = w.block->mbarriers != nullptr;
  if (may_wait_for_loads && (p.since.empty() || p.since.back().ticks != now))
    p.since.push_back({now, p.issued});
  ++p.issued;
  InstrCounts& counts = counts_of(in);
  ++counts.products;
  counts.products_during_stores += stores_are_pending(w);
}

void load_awaited(Warp& w, const Instr& in, const Clock& known) {
  const WarpProducts& p = w.products;
  const uint32_t ticks = known.of_warp_as_one(w.race.agent);
  const auto behind = std::find_if(p.since.begin(), p.since.end(),
                                   [&](const WarpProducts::Since& since) { return since.ticks > ticks; });
  if (behind != p.since.end()) count_behind(w, in, behind->before);
}

void copies_awaited(Warp& w, const Instr& in, uint64_t issued_before) { count_behind(w, in, issued_before); }

void product_into(TmemLoads& loads, const Warp& core) {
  for (const TmemLoads::Load& load : loads.alone) {
    if (core.race.clock.of_warp_as_one(load.agent) < load.ticks)
      counts_of(*load.instr).tmem_loads_during_products += load.count;
  }
  loads.alone.clear();
  loads.product[core.race.agent] = core.race.clock[core.race.agent];
}

void tmem_loaded(TmemLoads& loads, const Warp& w, const Instr& in) {
  InstrCounts& counts = counts_of(in);
  ++counts.tmem_loads;
  for (const auto& [core, ticks] : loads.product) {
    if (ticks <= w.race.clock.of_warp_as_one(core)) continue;
    ++counts.tmem_loads_during_products;
    return;
  }
  const uint32_t now = w.race.clock[w.race.agent];
  const auto same = std::find_if(loads.alone.begin(), loads.alone.end(), [&](const TmemLoads::Load& load) {
    return load.agent == w.race.agent && load.ticks == now && load.instr == &in;
  });
  if (same != loads.alone.end())
    ++same->count;
  else
    loads.alone.push_back({w.race.agent, now, &in, 1});
}

}  // namespace gg::emu
