// SPDX-License-Identifier: MIT
//
// Vector clocks, and the accesses they order.

#include "common/emu/core/state/race.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include "common/emu/core/state/place.h"
#include "common/emu/core/state/tmem.h"

namespace gg::emu {

void Clock::set(size_t agent, uint32_t ticks) {
  if (agent >= known_.size()) known_.resize(agent + 1);
  known_[agent] = ticks;
}

static void join_max(std::vector<uint32_t>& to, const std::vector<uint32_t>& from) {
  if (to.size() < from.size()) to.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) to[i] = std::max(to[i], from[i]);
}
void Clock::join(const Clock& other) {
  join_max(known_, other.known_);
  join_max(fenced_, other.fenced_);
  join_max(handed_on_, other.handed_on_);
  for (const Told& told : other.told_) tell(told.agent, told.ticks, told.lanes);
  std::erase_if(told_, [&](const Told& told) { return told.ticks <= (*this)[told.agent]; });
}
void Clock::tell(size_t agent, uint32_t ticks, uint32_t lanes) {
  for (Told& told : told_) {
    if (told.agent != agent || told.lanes != lanes) continue;
    told.ticks = std::max(told.ticks, ticks);
    return;
  }
  if (ticks > (*this)[agent]) told_.push_back({agent, ticks, lanes});
}
bool Clock::was_told(size_t agent, uint32_t ticks, uint32_t lanes) const {
  bool any = false;
  for (const Told& told : told_) {
    if (told.agent != agent || told.ticks < ticks) continue;
    any = true;
    lanes &= ~told.lanes;
  }
  return any && lanes == 0;
}
uint32_t Clock::of_warp_as_one(size_t agent) const {
  uint32_t ticks = (*this)[agent];
  for (const Told& told : told_) ticks = told.agent == agent ? std::max(ticks, told.ticks) : ticks;
  return ticks;
}
void Clock::clear() {
  told_.clear();
  known_.clear();
  fenced_.clear();
  handed_on_.clear();
}

size_t agent_of(const Warp& warp) { return warp.race.agent; }

// Clusters run on threads of the host, whose memory may be weaker than that of x86-64: what a
// release publishes is there for who acquires.
void release(Warp& warp, Clock& to) {
  std::atomic_thread_fence(std::memory_order_release);
  to.join(warp.race.clock);
  const size_t self = agent_of(warp);
  warp.race.clock.set(self, warp.race.clock[self] + 1);
}
void release(Warp& warp, uint32_t lanes, Clock& to) {
  if ((warp.flow.live & ~lanes) == 0) return release(warp, to);
  std::atomic_thread_fence(std::memory_order_release);
  const size_t self = agent_of(warp);
  const uint32_t now = warp.race.clock[self];
  warp.race.clock.set(self, warp.race.met);
  to.join(warp.race.clock);
  to.tell(self, now, lanes);
  warp.race.clock.set(self, now + 1);
}
void meet(Warp& warp) {
  const size_t self = agent_of(warp);
  warp.race.met = warp.race.clock[self];
  warp.race.clock.set(self, warp.race.met + 1);
}
void acquire(Warp& warp, const Clock& from) {
  std::atomic_thread_fence(std::memory_order_acquire);
  warp.race.clock.join(from);
}
void fence_proxy(Warp& warp) {
  warp.race.clock.fence();
  const size_t self = agent_of(warp);
  warp.race.clock.set(self, warp.race.clock[self] + 1);
}

void Races::resize(size_t bytes, size_t agents, const Block& block) {
  block_ = &block;
  agents_ = agents;
  const size_t cells = agents ? (bytes + 3) / 4 : 0;
  pages_.clear();
  pages_.resize((cells + kCells - 1) / kCells);
  equals_.clear();
}

// The bytes of a cell that [offset, offset + width) covers, as four bits.
static uint8_t bytes_of(size_t cell, size_t offset, int width) {
  const size_t begin = std::max(cell * 4, offset), end = std::min(cell * 4 + 4, offset + size_t(width));
  return uint8_t(((1u << (end - begin)) - 1) << (begin - cell * 4));
}

// The lanes that an access counts as. An access of the asynchronous proxy is nobody's: a warp waits
// for it as one.
static uint32_t lanes_of(int lane, Access access) {
  return access == Access::async || lane < 0 ? 0 : uint32_t(1) << lane;
}

void Races::read(Warp& warp, const Instr& instr, int lane, size_t offset, int width, Access access) {
  const ByteRun run = {offset, size_t(width)};
  const uint32_t lanes = lanes_of(lane, access);
  if (read_runs(warp, instr, lanes, &run, 1, access)) return;
  const size_t self = agent_of(warp);
  const uint32_t now = warp.race.clock[self];
  for (size_t cell = offset / 4; cell * 4 < offset + size_t(width); ++cell) {
    const size_t at = cell % kCells;
    const Writes& writes = written(cell / kCells);
    const Write& w = writes.last[at];
    if (w.agent != self && w.bytes & bytes_of(cell, offset, width) &&
        !warp.race.clock.knows(w.agent, w.ticks, writes.lanes[at]) &&
        !(access == Access::strong && w.access == Access::strong)) {
      conflict(warp, instr, lane, cell, false, true, w.agent, w.ticks, writes.instrs[at]);
    } else if (access == Access::async && w.access != Access::async &&
               warp.race.clock.fenced(w.agent) < w.ticks) {
      report_proxy(warp, instr, lane, cell, w.agent, writes.instrs[at]);
    }
    if (w.bytes & kEquals)
      check_equals(warp, instr, lane, cell, bytes_of(cell, offset, width), offset, false, nullptr);
    if (access == Access::strong) {
      keep_strong_read(warp, instr, lanes, cell, bytes_of(cell, offset, width));
      continue;
    }
    Reads& r = reads_of(cell / kCells, self);
    const uint8_t bytes = bytes_of(cell, offset, width);
    const bool joins = r.ticks[at] == now;
    r.bytes[at] = joins ? r.bytes[at] | bytes : bytes;
    r.lanes[at] = joins ? r.lanes[at] | lanes : lanes;
    r.ticks[at] = r.latest = now;
    r.instrs[at] = instr.index;
  }
}

// PTX ISA, "Coherence Order": two writes that race have no order, and nothing else is undefined
// about them. So what they leave is certain if they write the same bytes: those that memory holds,
// the first one's.
bool Races::same_values(size_t cell, uint8_t bytes, size_t offset, const uint8_t* values) const {
  for (size_t i = 0; i < 4; ++i) {
    if (bytes >> i & 1 && block_->shared.bytes[cell * 4 + i] != values[cell * 4 + i - offset]) return false;
  }
  return true;
}

// The stores that the last one has raced with, for who has not learnt of them.
void Races::check_equals(Warp& warp, const Instr& instr, int lane, size_t cell, uint8_t bytes, size_t offset,
                         bool writing, const uint8_t* values) {
  for (const Equal& e : equals_.at(cell)) {
    const uint8_t common = e.write.bytes & bytes;
    if (e.write.agent == agent_of(warp) || !common) continue;
    if (warp.race.clock.knows(e.write.agent, e.write.ticks, e.lanes)) continue;
    if (writing && values && same_values(cell, common, offset, values)) continue;
    conflict(warp, instr, lane, cell, writing, true, e.write.agent, e.write.ticks, e.instr);
  }
}

// Before a store of the warp becomes the last one: keeps those that it races with. kEquals if
// there are any.
uint8_t Races::keep_equals(const Warp& warp, size_t cell, bool keep_last) {
  const Writes& writes = written(cell / kCells);
  const size_t at = cell % kCells;
  const Write last = writes.last[at];
  std::vector<Equal>& equals = equals_[cell];
  std::erase_if(equals, [&](const Equal& e) {
    return warp.race.clock.knows(e.write.agent, e.write.ticks, e.lanes) ||
           (keep_last && e.write.agent == last.agent);
  });
  if (keep_last) equals.push_back({last, writes.lanes[at], writes.instrs[at]});
  if (!equals.empty()) return kEquals;
  equals_.erase(cell);
  return 0;
}

// The newest step's of each agent. A write of its own, as an atomic operation's, stands for it
// from then on.
void Races::keep_strong_read(const Warp& warp, const Instr& instr, uint32_t lanes, size_t cell,
                             uint8_t bytes) {
  const size_t self = agent_of(warp);
  const uint32_t now = warp.race.clock[self];
  std::vector<StrongRead>& reads = pages_[cell / kCells].strong[cell];
  const auto own = std::find_if(reads.begin(), reads.end(), [&](const auto& r) { return r.agent == self; });
  StrongRead& r = own == reads.end() ? reads.emplace_back() : *own;
  const bool joins = r.ticks == now;
  r = {self, now, joins ? r.lanes | lanes : lanes, uint8_t(joins ? r.bytes | bytes : bytes), instr.index};
}

void Races::check_strong_reads(Warp& warp, const Instr& instr, int lane, size_t cell, uint8_t bytes,
                               Access access) {
  auto& strong = pages_[cell / kCells].strong;
  const auto found = strong.find(cell);
  if (found == strong.end()) return;
  const size_t self = agent_of(warp);
  for (const StrongRead& r : found->second) {
    if (access == Access::strong || r.agent == self || !(r.bytes & bytes)) continue;
    if (!warp.race.clock.knows(r.agent, r.ticks, r.lanes))
      conflict(warp, instr, lane, cell, true, false, r.agent, r.ticks, r.instr);
  }
  std::erase_if(found->second, [&](const StrongRead& r) { return r.agent == self; });
  if (found->second.empty()) strong.erase(found);
}

void Races::write(Warp& warp, const Instr& instr, int lane, size_t offset, int width, Access access,
                  const uint8_t* values) {
  const ByteRun run = {offset, size_t(width)};
  const uint32_t lanes = lanes_of(lane, access);
  if (write_runs(warp, instr, lanes, &run, 1, access)) return;
  const size_t self = agent_of(warp);
  const uint32_t now = warp.race.clock[self];
  for (size_t cell = offset / 4; cell * 4 < offset + size_t(width); ++cell) {
    Writes& writes = writes_of(cell / kCells);
    const size_t at = cell % kCells;
    Write& w = writes.last[at];
    const uint8_t bytes = bytes_of(cell, offset, width);
    bool equal = false;
    if (w.agent != self && w.bytes & bytes && !warp.race.clock.knows(w.agent, w.ticks, writes.lanes[at]) &&
        !(access == Access::strong && w.access == Access::strong)) {
      equal = values && w.access != Access::async && same_values(cell, w.bytes & bytes, offset, values);
      if (!equal) conflict(warp, instr, lane, cell, true, true, w.agent, w.ticks, writes.instrs[at]);
    }
    uint8_t more = 0;
    if (w.bytes & kEquals) check_equals(warp, instr, lane, cell, bytes, offset, true, values);
    if (equal || w.bytes & kEquals) more = keep_equals(warp, cell, equal);
    const auto& reads = pages_[cell / kCells].reads;
    for (size_t a = 0; a < reads.size(); ++a) {
      const Reads* r = a == self ? nullptr : reads[a].get();
      if (r && r->bytes[at] & bytes && !warp.race.clock.knows(a, r->ticks[at], r->lanes[at]))
        conflict(warp, instr, lane, cell, true, false, a, r->ticks[at], r->instrs[at]);
    }
    if (!pages_[cell / kCells].strong.empty()) check_strong_reads(warp, instr, lane, cell, bytes, access);
    const bool joins = w.agent == self && w.ticks == now && w.access == access;
    w = {now, uint16_t(self), uint8_t((joins ? w.bytes & ~kEquals : 0) | bytes | more), access};
    writes.lanes[at] = joins ? writes.lanes[at] | lanes : lanes;
    writes.instrs[at] = instr.index;
  }
}

const Races::Writes& Races::written(size_t page) const {
  static const Writes nobody = {};
  return pages_[page].writes ? *pages_[page].writes : nobody;
}
Races::Writes& Races::writes_of(size_t page) {
  std::unique_ptr<Writes>& writes = pages_[page].writes;
  if (!writes) writes = std::make_unique<Writes>();
  return *writes;
}
Races::Reads& Races::reads_of(size_t page, size_t agent) {
  auto& reads = pages_[page].reads;
  if (reads.empty()) reads.resize(agents_);
  if (!reads[agent]) reads[agent] = std::make_unique<Reads>();
  return *reads[agent];
}

// Loops over cells are cut into pieces of this length, which compilers make into a
// few vector instructions.
constexpr size_t kPiece = 8;

// Whether the warp has learnt of the last writes of these cells. Neighbours are mostly
// written together, so the last answer (`known`: for a write like this it is yes; 0 is
// nobody's) holds for most.
bool Races::knows_writes(const Warp& warp, size_t first, size_t end, Access access, bool reading,
                         uint64_t& known) const {
  const size_t self = agent_of(warp);
  while (first < end) {
    const size_t page = first / kCells, stop = std::min(end, (page + 1) * kCells) - page * kCells;
    const Writes* writes = pages_[page].writes.get();
    for (size_t at = first % kCells; writes && at < stop;) {
      uint64_t different = 0;
      for (size_t i = 0; i < kPiece && at + kPiece <= stop; ++i)
        different |= std::bit_cast<uint64_t>(writes->last[at + i]) ^ known;
      if (different == 0 && at + kPiece <= stop) {
        at += kPiece;
        continue;
      }
      for (const size_t piece = std::min(stop, at + kPiece); at < piece; ++at) {
        const Write w = writes->last[at];
        if (std::bit_cast<uint64_t>(w) == known) continue;
        if (w.bytes & kEquals) return false;
        if (w.agent != self && warp.race.clock[w.agent] < w.ticks) return false;
        if (reading && access == Access::async && w.access != Access::async &&
            warp.race.clock.fenced(w.agent) < w.ticks)
          return false;
        known = std::bit_cast<uint64_t>(w);
      }
    }
    first = page * kCells + stop;
  }
  return true;
}

bool Races::knows_reads(const Warp& warp, size_t first, size_t end) const {
  const size_t self = agent_of(warp);
  while (first < end) {
    const size_t page = first / kCells, stop = std::min(end, (page + 1) * kCells);
    if (!pages_[page].strong.empty()) return false;
    const auto& reads = pages_[page].reads;
    for (size_t a = 0; a < reads.size(); ++a) {
      const uint32_t known = warp.race.clock[a];
      if (a == self || !reads[a] || reads[a]->latest <= known) continue;
      for (size_t cell = first; cell < stop; ++cell) {
        if (reads[a]->ticks[cell % kCells] > known) return false;
      }
    }
    first = stop;
  }
  return true;
}

bool Races::read_runs(const Warp& warp, const Instr& instr, uint32_t lanes, const ByteRun* runs, size_t count,
                      Access access) {
  const size_t self = agent_of(warp);
  const uint32_t now = warp.race.clock[self];
  const bool some = lanes != 0 && lanes != kAllLanes;  // others may have read in this step
  uint64_t known = 0;
  for (const ByteRun* run = runs; run != runs + count; ++run) {
    if (access == Access::strong || (run->offset | run->bytes) % 4 != 0) return false;
    size_t first = run->offset / 4;
    const size_t end = first + run->bytes / 4;
    if (!knows_writes(warp, first, end, access, true, known)) return false;
    while (first < end) {
      const size_t page = first / kCells, at = first % kCells, cells = std::min(end - first, kCells - at);
      Reads& r = reads_of(page, self);
      r.latest = now;
      const auto record = [&](size_t begin, auto count) {
        for (size_t i = 0; i < count; ++i)
          r.lanes[begin + i] = lanes | (some && r.ticks[begin + i] == now ? r.lanes[begin + i] : 0);
        for (size_t i = 0; i < count; ++i) r.ticks[begin + i] = now;
        for (size_t i = 0; i < count; ++i) r.instrs[begin + i] = instr.index;
        for (size_t i = 0; i < count; ++i) r.bytes[begin + i] = 15;
      };
      size_t done = 0;
      for (; done + kPiece <= cells; done += kPiece)
        record(at + done, std::integral_constant<size_t, kPiece>());
      record(at + done, cells - done);
      first += cells;
    }
  }
  return true;
}

bool Races::write_runs(const Warp& warp, const Instr& instr, uint32_t lanes, const ByteRun* runs,
                       size_t count, Access access) {
  const size_t self = agent_of(warp);
  uint64_t known = 0;
  for (const ByteRun* run = runs; run != runs + count; ++run) {
    if (access == Access::strong || (run->offset | run->bytes) % 4 != 0) return false;
    size_t first = run->offset / 4;
    const size_t end = first + run->bytes / 4;
    if (!knows_writes(warp, first, end, access, false, known) || !knows_reads(warp, first, end)) return false;
    while (first < end) {
      const size_t at = first % kCells, cells = std::min(end - first, kCells - at);
      Writes& writes = writes_of(first / kCells);
      std::fill_n(writes.last + at, cells, Write{warp.race.clock[self], uint16_t(self), 15, access});
      std::fill_n(writes.lanes + at, cells, lanes);
      std::fill_n(writes.instrs + at, cells, instr.index);
      first += cells;
    }
  }
  return true;
}

const Warp& Races::warp_of(size_t agent) const {
  const Cluster& cluster = *block_->cluster;
  const size_t per_block = block_->warps.size(), warps = per_block * cluster.blocks.size(),
               at = agent % warps;
  const Warp& warp = *cluster.blocks[at / per_block]->warps[at % per_block];
  return agent < warps ? warp : warp.async.tensor_core->agent;
}

void Races::report_proxy(const Warp& warp, const Instr& instr, int lane, size_t cell, size_t agent,
                         int32_t other) const {
  if (was_told(FaultKind::proxy, warp, instr)) return;
  raise(FaultKind::proxy, warp, instr, lane,
        shared_text(*block_, cell * 4) +
            " is read by an asynchronous operation; ordinary stores wrote it, and no fence.proxy.async "
            "has handed them on",
        "each thread that wrote runs fence.proxy.async after its stores, before the barrier that the "
        "issuer waits at, or the issuer runs it behind that barrier",
        {{&warp_of(agent), &block_->grid->launch.code->instrs[size_t(other)], -1, "wrote it"}});
}

void Races::conflict(Warp& warp, const Instr& instr, int lane, size_t cell, bool writing, bool wrote,
                     size_t agent, uint32_t ticks, int32_t other) const {
  const Warp& by = warp_of(agent);
  if (by.driver ? was_told(FaultKind::async_window, warp, instr) : was_told(FaultKind::race, warp, instr))
    return;
  const std::string what = shared_text(*block_, cell * 4) + (writing ? " is written here" : " is read here");
  std::vector<Party> others = {
      {&by, &block_->grid->launch.code->instrs[size_t(other)], -1, wrote ? "wrote it" : "read it"}};
  if (by.driver) {
    others[0].did += " for " + product_text(by, ticks);
    raise(FaultKind::async_window, warp, instr, lane, what + " while the tensor core may still read it",
          "wait at the mbarrier of a tcgen05.commit that its warp runs behind the operation", others);
    return;
  }
  const bool some_told = ticks <= warp.race.clock.of_warp_as_one(agent);
  const char* const cause =
      !wrote && others[0].instr->overtaking.overtaken && warp.race.clock.of_warp_as_one(agent) + 1 == ticks
          ? "an mbarrier.arrive in another block said that it was read, and nothing made that wait for the "
            "loaded value: such an arrival overtakes loads. Make it depend on a comparison of the value, or "
            "use mbarrier.arrive.release.cluster, which costs a fence"
      : some_told
          ? "a lane of that warp arrived at an mbarrier before the lanes had met: __syncwarp() first, or a "
            "barrier if the lane arrives for several warps. A shuffle or a vote orders no memory"
      : !wrote
          ? "a barrier is missing: before this write if the other wanted the old contents, behind it if it "
            "wanted the new ones"
      : writing
          ? "a barrier is missing between the two writes, or two warps fill the same place: an index that "
            "does not depend on the warp"
          : "a barrier is missing: behind the write if this read wants what it wrote, before it if this read "
            "wants what was there";
  raise(
      FaultKind::race, warp, instr, lane,
      what + " and was " + (wrote ? "written" : "read") + " by another warp, with no barrier between the two",
      cause, others);
}

}  // namespace gg::emu
