// SPDX-License-Identifier: MIT
//
// The report of a deadlock: what each warp waits for, and what that may come from.

#include <algorithm>

#include "common/emu/core/schedule/schedule.h"
#include "common/emu/core/units/mbarrier_state.h"

namespace gg::emu {
namespace {

const char kAsksNobody[] = "runs without end and asks for nothing that others could change";

// The first instruction that asks memory for something, in a loop that a warp does not leave.
const Instr* polled(Warp& w, const Code& code) {
  constexpr int kSteps = 2000, kMost = 200'000;  // the first question of a long loop comes late
  const Instr* first = nullptr;
  for (int i = 0; i < kSteps || (!first && i < kMost); ++i) {
    const Fragment* f = choose(w);
    if (!f) {
      ++w.block->cluster->round;  // a sleeper wakes
      continue;
    }
    const Instr& in = code.instrs[size_t(f->pc)];
    if (asks_others(in) && (!first || in.index < first->index)) first = &in;
    run_warp(w, code, 1);
  }
  return first;
}

int runnable(const Warp& w) {
  return int(std::count_if(w.flow.fragments.begin(), w.flow.fragments.end(),
                           [](const Fragment& f) { return !f.ready && !f.parked; }));
}

// Tells what the lanes of a fragment do where nobody can go on.
Party stuck(Warp& w, const Fragment& f, const Code& code) {
  Party party{&w, &code.instrs[size_t(f.pc)], -1, "", f.mask == w.flow.live ? 0 : f.mask};
  const int lane = __builtin_ctz(f.mask);  // polled() runs the warp on
  if (f.parked) {
    party.did = "waits here for the other lanes of its warp";
  } else if (f.ready) {
    party.instr = &code.instrs[size_t(f.waits_at)];
    party.did = f.waits_for ? f.waits_for() : "waits";
  } else if (const Instr* asks = runnable(w) == 1 ? polled(w, code) : nullptr) {
    party.instr = asks;
    party.did = asks->statement->opcode == "mbarrier"
                    ? "asks here again and again: " + asked_mbarrier(w, lane)
                    : "asks here again and again and always gets the same answer";
  } else {
    party.did = runnable(w) == 1 ? kAsksNobody : "runs without end";
  }
  return party;
}

// Warps in the same state are told of together.
std::vector<Party> stuck_parties(const Cluster& c, const Code& code) {
  std::vector<Party> parties;
  for (const auto& block : c.blocks) {
    for (const auto& warp : block->warps) {
      std::vector<Party> own;
      if (warp->flow.live == 0) own.push_back({warp.get(), nullptr, -1, "has ended", 0});
      for (size_t i = 0, count = warp->flow.fragments.size(); i < count; ++i)
        own.push_back(stuck(*warp, warp->flow.fragments[i], code));
      for (Party& party : own) {
        const auto same = std::find_if(parties.begin(), parties.end(), [&](const Party& p) {
          return p.instr == party.instr && p.did == party.did && p.lanes == party.lanes &&
                 p.warp->block == party.warp->block;
        });
        if (same == parties.end())
          parties.push_back(std::move(party));
        else
          same->likewise.push_back(party.warp);
      }
    }
  }
  return parties;
}

const char* deadlock_cause(const std::vector<Party>& parties) {
  bool at_barrier = false, at_mbarrier = false, runs = false, asks_nobody = false;
  for (const Party& p : parties) {
    if (!p.instr) continue;
    if (p.did == kAsksNobody) {
      asks_nobody = true;
      continue;
    }
    const bool waits = p.did.rfind("waits", 0) == 0;
    const Statement& s = *p.instr->statement;
    runs = runs || (!waits && s.opcode != "mbarrier");
    at_mbarrier = at_mbarrier || s.opcode == "mbarrier";
    at_barrier = at_barrier || (waits && (s.opcode == "bar" || s.opcode == "barrier"));
  }
  if (runs)
    return "a loop waits for a flag, a lock or a phase that nobody will change any more: whoever should is "
           "stuck itself, or has ended";
  if (at_mbarrier)
    return "an arrival or bytes that never come, a count at mbarrier.init that is too high, or a wait for "
           "the wrong parity";
  if (at_barrier)
    return "warps wait at different barriers, or for more threads than will come: all that a barrier counts "
           "must reach it";
  if (asks_nobody)
    return "a loop comes back to the registers that it began with and asks nobody: its condition never "
           "changes";
  return "something is waited for that nobody will do";
}

}  // namespace

// The warp to look at first: one whose own lanes are apart, else one that waits or runs.
[[noreturn]] void deadlock(const Cluster& c, const Code& code, const std::string& what) {
  for (const auto& block : c.blocks) {
    for (const auto& warp : block->warps) {
      const auto& fragments = warp->flow.fragments;
      const bool apart = warp->flow.live && std::all_of(fragments.begin(), fragments.end(),
                                                        [](const Fragment& f) { return f.parked; });
      if (!apart) continue;
      std::vector<Party> others;
      for (size_t i = 1; i < fragments.size(); ++i) others.push_back(stuck(*warp, fragments[i], code));
      raise_final(
          FaultKind::diverged, *warp, code.instrs[size_t(fragments[0].pc)], -1,
          lanes_do(fragments[0].mask, "wait") + " here for " +
              lanes_text(warp->flow.live & ~fragments[0].mask) + " of the warp, and these wait elsewhere",
          "a barrier or another instruction of the whole warp stands in a branch that not all its lanes take",
          others);
    }
  }
  std::vector<Party> parties = stuck_parties(c, code);
  auto first = std::find_if(parties.begin(), parties.end(),
                            [](const Party& p) { return p.did.rfind("waits here", 0) != 0 && p.instr; });
  if (first == parties.end()) first = parties.begin();
  const Party main = *first;
  const char* const cause = deadlock_cause(parties);
  parties.erase(first);
  // A report has room for a few: who has ended says least.
  std::stable_partition(parties.begin(), parties.end(),
                        [](const Party& p) { return p.warp->flow.live != 0; });
  if (!main.likewise.empty())
    parties.insert(parties.begin(), {main.likewise[0],
                                     nullptr,
                                     -1,
                                     "does the same",
                                     main.lanes,
                                     {main.likewise.begin() + 1, main.likewise.end()}});
  raise_final(FaultKind::deadlock, *main.warp, *main.instr, -1,
              what + ": " +
                  (main.lanes ? lanes_text(main.lanes) +
                                    " of this warp: " + (__builtin_popcount(main.lanes) > 1 ? "each " : "")
                              : "this warp ") +
                  main.did,
              cause, parties);
}

}  // namespace gg::emu
