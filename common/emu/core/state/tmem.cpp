// SPDX-License-Identifier: MIT
//
// Tensor memory: allocation by first fit, and what orders the uses of its cells.

#include "common/emu/core/state/tmem.h"

#include <algorithm>

namespace gg::emu {
namespace {

// Returns the warp that issued what an agent does.
const Warp& driver_of(const Warp& agent) { return agent.driver ? *agent.driver : agent; }

std::string range_text(const char* name, int first, int count) {
  if (count == 1) return std::string(name) + " " + std::to_string(first);
  return std::string(name) + "s " + std::to_string(first) + "-" + std::to_string(first + count - 1);
}

}  // namespace

// ---- regions ----

bool TmemRegion::overlaps(const TmemRegion& other) const {
  if (column >= other.column + other.columns || other.column >= column + columns) return false;
  Mask common = 0;
  for (size_t q = 0; q < kTmemQuarters; ++q) common |= lanes[q] & other.lanes[q];
  return common != 0;
}

bool TmemRegion::covers(const TmemRegion& other) const {
  if (other.column < column || other.column + other.columns > column + columns) return false;
  Mask beyond = 0;
  for (size_t q = 0; q < kTmemQuarters; ++q) beyond |= other.lanes[q] & ~lanes[q];
  return beyond == 0;
}

TmemRegion tmem_region(int lane, int lanes, int column, int columns) {
  TmemRegion region;
  region.column = column;
  region.columns = columns;
  region.outside = lane + lanes > kTmemLanes;
  for (int l = lane; l < std::min(lane + lanes, kTmemLanes); ++l)
    region.lanes[size_t(l / kLanes)] |= Mask(1) << (l % kLanes);
  return region;
}

std::string Tmem::text(const TmemRegion& region) const {
  int first = kTmemLanes, last = 0, count = 0;
  for (int l = 0; l < kTmemLanes; ++l) {
    if (!(region.lanes[size_t(l / kLanes)] >> (l % kLanes) & 1)) continue;
    first = std::min(first, l);
    last = l;
    ++count;
  }
  std::string lanes = range_text("lane", first, last - first + 1);
  if (count < last - first + 1) lanes = std::to_string(count) + " of " + lanes;
  const bool many = block_.cluster->blocks.size() > 1;
  return "tensor memory" + (many ? " of rank " + std::to_string(block_.rank) : std::string()) + " (" + lanes +
         ", " + range_text("column", region.column, region.columns) + ")";
}

// ---- allocation ----

Tmem::Tmem(Block& block) : block_(block), written_(kTmemColumns) {
  cells_.assign(std::vector<uint8_t>(size_t(kTmemLanes) * kTmemColumns * 4, 0xFF));
}

bool Tmem::allocated(int column) const {
  for (int unit = column / kTmemUnit; unit >= 0; --unit) {
    if (const int count = columns_[size_t(unit)].count) return column < unit * kTmemUnit + count;
  }
  return false;
}

int Tmem::find(int columns) const {
  for (int column = 0; column + columns <= kTmemColumns; column += columns) {
    bool free = true;
    for (int c = column; c < column + columns; c += kTmemUnit) free = free && !allocated(c);
    if (free) return column;
  }
  return -1;
}

void Tmem::allocate(int column, int columns, const Warp& warp, const Instr& instr) {
  columns_[size_t(column / kTmemUnit)] = {columns, &warp, &instr};
}

int Tmem::allocated_at(int column) const {
  if (column < 0 || column >= kTmemColumns || column % kTmemUnit != 0) return 0;
  return columns_[size_t(column / kTmemUnit)].count;
}

void Tmem::release(Warp& w, const Instr& in, int column) {
  const TmemRegion region = tmem_region(0, kTmemLanes, column, allocated_at(column));
  if (block_.grid->races) check_order(w, in, 0, region, TmemUse::write, false);
  std::erase_if(uses_, [&](const Use& u) { return u.region.overlaps(region); });
  for (int c = column; c < column + region.columns; ++c) written_[size_t(c)] = {};
  std::fill_n(at<uint32_t>(column), size_t(region.columns) * kTmemLanes, ~0u);
  columns_[size_t(column / kTmemUnit)] = {};
}

std::string Tmem::allocations_text() const {
  std::string text;
  for (size_t unit = 0; unit < columns_.size(); ++unit) {
    if (columns_[unit].count == 0) continue;
    text += (text.empty() ? "" : " and ") + range_text("column", int(unit) * kTmemUnit, columns_[unit].count);
  }
  return text.empty() ? "nothing is allocated" : text + " are allocated";
}

std::vector<Party> Tmem::allocations() const {
  std::vector<Party> all;
  for (size_t unit = 0; unit < columns_.size(); ++unit) {
    const Columns& c = columns_[unit];
    if (c.count == 0) continue;
    all.push_back({c.warp, c.instr, -1, "allocated " + range_text("column", int(unit) * kTmemUnit, c.count)});
  }
  return all;
}

// ---- checks ----

void Tmem::check_allocated(const Warp& agent, const Instr& in, int lane, const TmemRegion& region) const {
  if (region.outside) {
    raise_final(FaultKind::bounds, agent, in, lane,
                text(region) + " is touched, and more lanes behind the last one: there are " +
                    std::to_string(kTmemLanes),
                "a wrong lane in bits 16-22 of the address, or a shape that needs lane 0");
  }
  bool inside = region.column >= 0 && region.column + region.columns <= kTmemColumns;
  for (int c = region.column; inside && c < region.column + region.columns; ++c) inside = allocated(c);
  if (inside) return;
  raise_final(FaultKind::bounds, agent, in, lane, text(region) + " is touched, and " + allocations_text(),
              "an address that tcgen05.alloc did not give, too few columns allocated, or columns given back "
              "already");
}

void Tmem::check_written(const Warp& agent, const Instr& in, int lane, const TmemRegion& region) const {
  for (int c = region.column; c < region.column + region.columns; ++c) {
    for (int q = 0; q < kTmemQuarters; ++q) {
      const Mask missing = region.lanes[size_t(q)] & ~written_[size_t(c)][size_t(q)];
      if (!missing || was_told(FaultKind::uninit_tmem, agent, in)) continue;
      raise(FaultKind::uninit_tmem, agent, in, lane,
            text(region) + " is read, and nobody has written lane " +
                std::to_string(q * kLanes + __builtin_ctz(missing)) + " of column " + std::to_string(c),
            "an accumulator that is added to before it is set, a copy or store that covers less, or a wrong "
            "address");
      return;
    }
  }
}

// Why an agent meets an operation of a tensor core. Who has waited for this core before may well
// have waited for all that it should, and the operation came too early.
std::string Tmem::too_early(const Warp& agent, TmemUse use, const Use& earlier) const {
  const std::string wait = "wait at the mbarrier of a tcgen05.commit that its warp runs behind the operation";
  const bool has_waited = agent.race.clock.of_warp_as_one(earlier.agent->race.agent) > 0;
  if (use != TmemUse::read || earlier.use != TmemUse::write || agent.driver || !has_waited) return wait;
  return wait +
         "; or, where the sums of a tile before are read here, it starts too early: its warp waits first "
         "until " +
         range_text("column", earlier.region.column, earlier.region.columns) + " have been read";
}

// `learnt`: the agent knows that the earlier use was issued, and not that it is over.
void Tmem::conflict(const Warp& agent, const Instr& in, int lane, const TmemRegion& region, TmemUse use,
                    const Use& earlier, bool learnt) const {
  const bool wrote = earlier.use == TmemUse::write;
  const bool in_flight = earlier.agent->driver || learnt || earlier.agent == &agent;
  if (in_flight ? was_told(FaultKind::async_window, agent, in) : was_told(FaultKind::race, agent, in)) return;
  const std::string touches = text(region) + (use == TmemUse::write ? " is written here" : " is read here");
  const bool by_core = earlier.agent->driver != nullptr;
  const std::vector<Party> others = {
      {earlier.agent, earlier.instr, by_core ? earlier.lane : -1,
       std::string(wrote ? "wrote " : "read ") + (by_core ? text(earlier.region) : "it")}};
  if (by_core) {
    raise(FaultKind::async_window, agent, in, lane,
          touches + " while the tensor core may still " + (wrote ? "write" : "read") + " it",
          too_early(agent, use, earlier), others);
  } else if (learnt || earlier.agent == &agent) {
    raise(FaultKind::async_window, agent, in, lane,
          touches + " while " + (wrote ? "a tcgen05.st may still write" : "a tcgen05.ld may still read") +
              " it",
          std::string("the other runs tcgen05.wait::") + (wrote ? "st" : "ld") +
              " first, and tells of it at a barrier after that",
          others);
  } else {
    raise(FaultKind::race, agent, in, lane,
          touches + " and was " + (wrote ? "written" : "read") +
              " by another warp, with no barrier between the two",
          std::string("a barrier is missing: behind tcgen05.wait::") + (wrote ? "st" : "ld") +
              " of the other warp, before this instruction",
          others);
  }
}

// PTX ISA, "Specialized Inter-thread Synchronization for tcgen05 instructions". Hardware needs no
// instruction for these fences, and the data here is right without them: this is the letter only.
// tcgen05.commit is the first of the two fences by itself.
void Tmem::check_fences(Warp& agent, const Instr& in, int lane, TmemUse use, const Use& earlier) const {
  Warp& driver = agent.driver ? *agent.driver : agent;
  if (&driver == &driver_of(*earlier.agent)) return;
  const bool handed_on = agent.race.clock.handed_on(earlier.agent->race.agent) >= earlier.over,
             taken = tensor_core_of(driver).fenced.of_warp_as_one(earlier.agent->race.agent) >= earlier.over;
  if ((handed_on && taken) || was_told(FaultKind::tcgen05_fence, agent, in)) return;
  raise(
      FaultKind::tcgen05_fence, agent, in, lane,
      text(earlier.region) + " is " + (use == TmemUse::write ? "written" : "read") +
          " here after another warp's use, and " +
          (handed_on ? "this warp ran no tcgen05.fence::after_thread_sync behind the barrier between the two"
                     : "that warp ran no tcgen05.fence::before_thread_sync between its use and the barrier"),
      "tcgen05.fence::before_thread_sync stands before the arrival at a barrier, "
      "tcgen05.fence::after_thread_sync behind the wait",
      {{earlier.agent, earlier.instr, -1, earlier.use == TmemUse::write ? "wrote it" : "read it"}});
}

void Tmem::check_order(Warp& agent, const Instr& in, int lane, const TmemRegion& region, TmemUse use,
                       bool fences) const {
  for (const Use& earlier : uses_) {
    if ((use == TmemUse::read && earlier.use == TmemUse::read) || !earlier.region.overlaps(region)) continue;
    if (earlier.agent == &agent && !earlier.open) continue;
    const uint32_t known = agent.race.clock.of_warp_as_one(earlier.agent->race.agent);
    const bool learnt = known >= earlier.issued;
    if (earlier.open || known < earlier.over) {
      conflict(agent, in, lane, region, use, earlier, learnt);
    } else if (fences) {
      check_fences(agent, in, lane, use, earlier);
    }
  }
}

void Tmem::touch(Warp& agent, const Instr& in, int lane, const TmemRegion& region, TmemUse use, bool open) {
  check_allocated(agent, in, lane, region);
  if (!block_.grid->checks) return;
  if (block_.grid->races) check_order(agent, in, lane, region, use, true);
  if (use == TmemUse::read) {
    check_written(agent, in, lane, region);
  } else {
    for (int c = region.column; c < region.column + region.columns; ++c) {
      for (size_t q = 0; q < kTmemQuarters; ++q) written_[size_t(c)][q] |= region.lanes[q];
    }
  }
  if (!block_.grid->races) return;
  // All that a write covers is ordered before it: who is ordered behind the write is ordered
  // behind that too.
  std::erase_if(uses_, [&](const Use& u) {
    return (use == TmemUse::write || (u.use == TmemUse::read && u.agent == &agent)) &&
           region.covers(u.region);
  });
  const uint32_t now = agent.race.clock[agent.race.agent];
  uses_.push_back({region, &agent, &in, lane, use, open, now, now});
}

void Tmem::finish(const Warp& w, TmemUse use) {
  for (Use& u : uses_) {
    if (u.agent != &w || u.use != use || !u.open) continue;
    u.open = false;
    u.over = w.race.clock[w.race.agent];
  }
}

Tmem& tmem_of(Block& block) {
  if (!block.tmem) block.tmem = std::make_shared<Tmem>(block);
  return *block.tmem;
}

void check_tmem_freed(const Warp& w, const Instr& in) {
  const std::vector<Party> allocations = w.block->tmem->allocations();
  if (allocations.empty()) return;
  raise_final(FaultKind::tcgen05, w, in, -1,
              "the block ends, and of its tensor memory " + w.block->tmem->allocations_text(),
              "tcgen05.dealloc by one warp, behind a barrier after the last use, before the block ends",
              allocations);
}

void note_product(const Warp& agent, const TmemRegion& sums) {
  constexpr size_t kMost = 64;  // commits; nobody is further behind
  std::map<uint32_t, TmemRegion>& newest = agent.driver->async.tensor_core->sums;
  newest[agent.race.clock[agent.race.agent]] = sums;
  if (newest.size() > kMost) newest.erase(newest.begin());
}

std::string product_text(const Warp& agent, uint32_t ticks) {
  const std::map<uint32_t, TmemRegion>& newest = agent.driver->async.tensor_core->sums;
  const auto found = newest.find(ticks);
  if (found == newest.end()) return "an operation";
  return "the product of " + range_text("column", found->second.column, found->second.columns);
}

TensorCore& tensor_core_of(Warp& w) {
  if (w.async.tensor_core) return *w.async.tensor_core;
  w.async.tensor_core = std::make_shared<TensorCore>();
  Warp& agent = w.async.tensor_core->agent;
  agent.block = w.block;
  agent.index = w.index;
  agent.driver = &w;
  agent.race.agent = w.block->cluster->blocks.size() * w.block->warps.size() + w.race.agent;
  agent.race.clock.set(agent.race.agent, 1);
  return *w.async.tensor_core;
}

}  // namespace gg::emu
