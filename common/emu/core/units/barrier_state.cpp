// SPDX-License-Identifier: MIT
//
// When a barrier of a block or a cluster is complete. PTX ISA: "bar, barrier", "barrier.cluster".

#include "common/emu/core/units/barrier_state.h"

#include <utility>

namespace gg::emu {
namespace {

using Phase = Barrier::Phase;

int ended_threads(const Block& block) { return threads_of(block) - block.live_warps * kLanes; }

bool has_arrived(const Cluster& c, const Warp& w) {
  return w.flow.cluster_arrived && w.flow.cluster_generation == c.barrier.generation;
}

}  // namespace

std::string threads_text(int threads) {
  return std::to_string(threads) + (threads == 1 ? " thread" : " threads");
}
std::string barrier_name(uint32_t id) { return "barrier " + std::to_string(id); }

int threads_of(const Block& block) { return int(block.warps.size()) * kLanes; }

bool complete_barrier(Block& block, uint32_t id) {
  std::shared_ptr<Phase>& phase = block.barriers[id].phase;
  const int ended = phase->whole_block ? ended_threads(block) : 0;
  if (phase->arrived + ended < phase->expected) return false;
  const std::shared_ptr<Phase> done = std::move(phase);
  phase = nullptr;
  done->done = true;
  if (ended == 0) return true;
  Party other{nullptr, nullptr, -1, "has ended"};
  for (const auto& warp : block.warps) {
    if (warp->flow.live == 0 && !other.warp) other.warp = warp.get();
  }
  raise(FaultKind::barrier, *done->entered_warp, *done->entered_by, -1,
        barrier_name(id) + " waits for all " + threads_text(done->expected) + " of the block: " +
            std::to_string(done->arrived) + " have come, the other " + std::to_string(ended) + " have ended",
        kReturnedBefore, {other});
  return true;
}

void complete_barrier(Cluster& c) {
  if (c.barrier.arrived == 0) return;
  for (const auto& block : c.blocks) {
    for (const auto& warp : block->warps) {
      if (warp->flow.live && !has_arrived(c, *warp)) return;
    }
  }
  c.barrier.arrived = 0;
  ++c.barrier.generation;
  c.barrier.last_clock = c.barrier.clock;
  c.barrier.clock.clear();
}

void threads_ended(Warp& w) {
  if (w.flow.live) return;
  for (uint32_t id = 0; id < 16; ++id) {
    if (w.block->barriers[id].phase) complete_barrier(*w.block, id);
  }
  complete_barrier(*w.block->cluster);
}

}  // namespace gg::emu
