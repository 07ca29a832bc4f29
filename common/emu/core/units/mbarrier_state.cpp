// SPDX-License-Identifier: MIT
//
// The mbarriers of a block, and what arrivals and bytes do to one. PTX ISA:
// "Parallel Synchronization and Communication Instructions: mbarrier", "Phase
// Completion of the mbarrier object".

#include "common/emu/core/units/mbarrier_state.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace gg::emu {

namespace {

// "full" of "gg::ptx::mbarrier_init(full_addr + stage * 8, 1);", "mailbox.full"
// of "mbarrier_init(shared_addr(&mailbox.full), 1);".
std::string name_in(const std::string& line) {
  const std::string call = "mbarrier_init(", address = "shared_addr(", suffix = "_addr";
  size_t at = line.find(call);
  if (at == std::string::npos) return "";
  at += call.size();
  const size_t inner = line.find(address, at), comma = line.find(',', at);
  if (inner < comma) at = inner + address.size();
  if (at < line.size() && line[at] == '&') ++at;
  size_t end = at;
  while (end < line.size() && (std::isalnum(line[end]) || line[end] == '_' || line[end] == '.')) ++end;
  std::string name = line.substr(at, end - at);
  if (name.size() > suffix.size() && name.ends_with(suffix)) name.resize(name.size() - suffix.size());
  return name;
}

// "full[3]": the fourth, by address, of those that the same line of the source initialised.
std::string label_of(const BarrierAt& at) {
  if (!at.block->mbarriers) return "";
  const auto& live = at.block->mbarriers->live;
  const auto found = live.find(at.offset);
  if (found == live.end() || !found->second.initialised.instr) return "";
  const SourceLine line = source_of(*found->second.initialised.instr);
  const std::string name = name_in(line.text);
  if (name.empty()) return "";
  int index = 0, count = 0;
  for (const auto& [offset, other] : live) {
    if (!other.initialised.instr || source_of(*other.initialised.instr).place != line.place) continue;
    if (offset < at.offset) ++index;
    ++count;
  }
  return count == 1 ? name : name + "[" + std::to_string(index) + "]";
}

// "warp 3 at kernel.cuh:70, warp 8 at load.cuh:31": warps of `some` that are not in `left_out`.
std::string list_of(const Block& from, std::vector<Mbarrier::Arrival> some,
                    const std::vector<Mbarrier::Arrival>& left_out) {
  constexpr size_t kMost = 8;
  std::erase_if(some, [&](const Mbarrier::Arrival& one) {
    return std::any_of(left_out.begin(), left_out.end(),
                       [&](const Mbarrier::Arrival& other) { return other.warp == one.warp; });
  });
  std::stable_sort(some.begin(), some.end(), [](const Mbarrier::Arrival& a, const Mbarrier::Arrival& b) {
    return std::pair(a.warp->block->rank, a.warp->index) < std::pair(b.warp->block->rank, b.warp->index);
  });
  std::string text;
  for (size_t i = 0; i < std::min(some.size(), kMost); ++i) {
    const SourceLine line = source_of(*some[i].instr);
    text += (text.empty() ? "" : ", ") + warp_text(*some[i].warp, from) +
            (line.place.empty() ? "" : " at " + line.place);
  }
  return some.size() > kMost ? text + " and " + std::to_string(some.size() - kMost) + " more" : text;
}

std::vector<Party> parties_of(const Mbarrier& b) {
  std::vector<Party> parties;
  for (const Mbarrier::Arrival& one : b.arrivals)
    parties.push_back({one.warp, one.instr, -1, "arrived in this phase", one.lanes});
  return parties;
}

}  // namespace

std::string mbarrier_name(const BarrierAt& at) {
  const std::string address =
      "mbarrier " + hex(uint64_t(at.block->rank) << 24 | (uint64_t(kSharedStart) + at.offset));
  const std::string label = label_of(at);
  return label.empty() ? address : label + " (" + address + ")";
}

std::string mbarrier_arrivals(const Block& from, const Mbarrier& b) {
  const std::string arrived = list_of(from, b.arrivals, {}),
                    missing = list_of(from, b.arrivals_before, b.arrivals);
  std::string text = arrived.empty() ? "; nobody has arrived in this phase" : "; arrived: " + arrived;
  if (!missing.empty()) text += "; in the phase before and not yet in this one: " + missing;
  return text;
}

Mbarriers& mbarriers_of(Block& block) {
  if (!block.mbarriers) {
    block.mbarriers = std::make_shared<Mbarriers>();
    block.mbarriers->waits.resize(block.warps.size() * kLanes);
  }
  return *block.mbarriers;
}
std::string mbarrier_lacks(const Mbarrier& b) {
  std::string text = "phase " + std::to_string(b.phase);
  const char* join = " lacks ";
  if (b.pending > 0) {
    text += join + std::to_string(b.pending) + " of " + std::to_string(b.count) + " arrivals";
    join = " and ";
  }
  if (b.tx > 0) text += join + std::to_string(b.tx) + " of " + std::to_string(b.expected) + " bytes";
  if (b.tx < 0) {
    text += b.pending > 0 ? ", and" : "";
    text += " has got " + std::to_string(-b.tx) + " bytes more than the " + std::to_string(b.expected) +
            " expected";
  }
  return text;
}

Mbarrier& find_mbarrier(Warp& w, const Instr& in, int lane, const BarrierAt& at) {
  Mbarriers& all = mbarriers_of(*at.block);
  const auto found = all.live.find(at.offset);
  if (at.block->live_warps == 0) {
    raise_final(FaultKind::use_after_free, w, in, lane,
                mbarrier_name(at) + " belongs to a block that has ended",
                "a cluster barrier at the end of the kernel keeps blocks alive until their peers are done");
  }
  const auto gone = all.invalidated.find(at.offset);
  if (found == all.live.end() && gone != all.invalidated.end()) {
    raise_final(FaultKind::mbarrier_state, w, in, lane,
                mbarrier_name(at) + " was invalidated, and not initialised again",
                "mbarrier.inval comes behind the last use, and a barrier of threads between them; or this "
                "use wants an mbarrier.init of its own",
                {gone->second});
  }
  if (found == all.live.end()) {
    raise_final(FaultKind::mbarrier_state, w, in, lane, mbarrier_name(at) + " is not initialised",
                "mbarrier.init, and a barrier behind it, come before the first use; or the address is wrong");
  }
  return found->second;
}
namespace {

// A copy or an arrival of copies that is done only after the mbarrier's block has ended: nobody is
// there to be told.
bool nobody_is_there(const Issuer& who, const BarrierAt& at) {
  // Before a name is looked up: this is asked at each arrival.
  if (at.block->live_warps > 0) return false;
  return comes_too_late(
      who, *at.block, "still to signal its " + mbarrier_name(at),
      "the mbarrier is not waited for, or a peer still signals it: a cluster barrier before "
      "the end keeps the block alive");
}

void end_phase_if_complete(Block& block, Mbarrier& b) {
  mbarriers_of(block).fruitless = 0;
  ++block.cluster->changes;
  if (b.pending != 0 || b.tx != 0) return;
  ++b.phase;
  b.pending = b.count;
  b.loaded = b.loads;
  b.loads = false;
  b.expected = 0;
  b.ended.join(b.arriving);
  b.arrivals_before.swap(b.arrivals);
  b.arrivals.clear();
}

void change_tx(const Issuer& who, const BarrierAt& at, Mbarrier& b, int64_t bytes) {
  b.tx += bytes;
  if (b.tx > kMbarrierMost || b.tx < -kMbarrierMost) {
    raise_final(FaultKind::mbarrier_state, *who.warp, *who.instr, who.lane,
                mbarrier_name(at) + " would count " + std::to_string(b.tx) + " bytes; it can count to " +
                    std::to_string(kMbarrierMost) + " in either direction",
                "the bytes of one phase must fit in 20 bits, and be expected in the phase they arrive in");
  }
}
}  // namespace

Place locate_mbarrier(Warp& w, const Instr& in, int lane, Space space, uint64_t address) {
  const uint64_t at = address & 0xFFFFFF, rank = address >> 24;
  if (space == Space::generic && at >= uint64_t(kSharedStart) && rank < w.block->cluster->blocks.size()) {
    if (!was_told(FaultKind::address_space, w, in)) {
      raise(FaultKind::address_space, w, in, lane,
            "address " + hex(address) + " is one of shared memory, and the instruction wants a generic one",
            "the instruction takes such an address with .shared::cta or .shared::cluster; without, "
            "cvta.shared (a pointer in CUDA C++) makes the generic one");
    }
    address += kSharedWindow;
  }
  return locate(w, in, lane, space, address, kMbarrierBytes, kMbarrierBytes);
}

BarrierAt use_mbarrier(Warp& w, const Instr& in, int lane, const AddressOperand& operand) {
  Place place = locate_mbarrier(w, in, lane, operand.space, operand.of(w, lane));
  if (!operand.any_rank) place = own_block(w, in, lane, place);
  if (!place.block) own_block(w, in, lane, place);  // faults: not in shared memory
  const BarrierAt at{place.block, place.offset};
  use_mbarrier(w, in, lane, at);
  return at;
}

void use_mbarrier(Warp& w, const Instr& in, int lane, const BarrierAt& at) {
  const Mbarrier& b = find_mbarrier(w, in, lane, at);
  const size_t by = agent_of(*b.initialised.warp);
  // Fences alone order nothing here: the warp must have learnt of them through a barrier, if only
  // a relaxed one.
  if (w.block->cluster->grid->races && &w != b.initialised.warp &&
      w.race.clock.of_warp_as_one(by) < b.initialised_at) {
    raise(FaultKind::race, w, in, lane,
          mbarrier_name(at) + " is used here, and no barrier stands between its initialisation and this use",
          "after mbarrier.init: fence.mbarrier_init, then a barrier, before others use it", {b.initialised});
  }
}

BarrierAt barrier_beside(Warp& w, const Instr& in, int lane, const Block& data, const BarrierAt& named) {
  if (named.block == &data) return named;
  raise(FaultKind::mbarrier, w, in, lane,
        "the bytes go to the block of rank " + std::to_string(data.rank) +
            ", the mbarrier that counts them is in that of rank " + std::to_string(named.block->rank),
        "both must be of one block: mapa maps both to the same rank, or neither");
  const BarrierAt beside{w.block->cluster->blocks[size_t(data.rank)].get(), named.offset};
  use_mbarrier(w, in, lane, beside);
  return beside;
}

void mbarrier_expect(const Issuer& who, const BarrierAt& at, int64_t bytes) {
  Mbarrier& b = find_mbarrier(*who.warp, *who.instr, who.lane, at);
  b.expected += bytes;
  change_tx(who, at, b, bytes);
  end_phase_if_complete(*at.block, b);
}

void mbarrier_complete(const Issuer& who, const BarrierAt& at, int64_t bytes) {
  if (nobody_is_there(who, at)) return;
  Mbarrier& b = find_mbarrier(*who.warp, *who.instr, who.lane, at);
  b.arriving.join(who.clock);
  b.loads = b.loads || who.instr->family == Family::bulk;
  change_tx(who, at, b, -bytes);
  end_phase_if_complete(*at.block, b);
}

void mbarrier_arrive(const Issuer& who, const BarrierAt& at, int64_t arrivals, const Clock* clock) {
  if (nobody_is_there(who, at)) return;
  Mbarrier& b = find_mbarrier(*who.warp, *who.instr, who.lane, at);
  if (arrivals == 0) {
    raise(FaultKind::mbarrier, *who.warp, *who.instr, who.lane, mbarrier_name(at) + " gets 0 arrivals",
          "an arrival counts at least once", parties_of(b));
    return;  // allowed: nothing changes
  }
  if (arrivals > b.pending) {
    raise_final(FaultKind::mbarrier_state, *who.warp, *who.instr, who.lane,
                mbarrier_name(at) + " gets " + std::to_string(arrivals) +
                    (arrivals == 1 ? " arrival" : " arrivals") + " where phase " + std::to_string(b.phase) +
                    " lacks " + std::to_string(b.pending) + " of " + std::to_string(b.count),
                "more threads arrive than the barrier was initialised for, or one arrives twice in a phase",
                parties_of(b));
  }
  const Mask lane = who.lane < 0 ? 0 : Mask(1) << who.lane;
  const auto same = [&](const Mbarrier::Arrival& one) {
    return one.warp == who.warp && one.instr == who.instr;
  };
  const auto before = std::find_if(b.arrivals.begin(), b.arrivals.end(), same);
  if (before == b.arrivals.end()) {
    b.arrivals.push_back({who.warp, who.instr, lane});
  } else {
    before->lanes |= lane;
  }
  b.pending -= arrivals;
  if (clock) b.arriving.join(*clock);
  end_phase_if_complete(*at.block, b);
}
std::string asked_mbarrier(const Block& block, int warp, size_t offset, uint64_t phase) {
  const BarrierAt at{const_cast<Block*>(&block), offset};
  const auto found = block.mbarriers->live.find(offset);
  if (found == block.mbarriers->live.end()) return mbarrier_name(at) + ", which was invalidated";
  const Mbarrier& b = found->second;
  std::string text =
      mbarrier_name(at) + " for parity " + std::to_string(phase & 1) + ": " + mbarrier_lacks(b);
  if (b.pending > 0) text += mbarrier_arrivals(block, b);
  const uint64_t seen = b.seen[size_t(warp)];
  if (phase > seen) {
    text += "; " + std::to_string(phase) + (phase == 1 ? " phase has" : " phases have") +
            " ended, this warp has waited for " +
            (seen ? "the first " + std::to_string(seen) : "none of them") +
            ": it may have been overtaken by a phase";
  }
  return text;
}

std::string asked_mbarrier(Warp& w, int lane) {
  const Mbarriers::Wait& asked = mbarriers_of(*w.block).waits[size_t(w.thread_of(lane))];
  return asked_mbarrier(*w.block, w.index, asked.offset, asked.phase);
}

}  // namespace gg::emu
