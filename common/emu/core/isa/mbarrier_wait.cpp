// SPDX-License-Identifier: MIT
//
// Waiting at an mbarrier: which phase a lane asks about, and how long it sleeps. PTX ISA: "Parallel
// Synchronization and Communication Instructions: mbarrier.test_wait, .try_wait".

#include <algorithm>

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/units/mbarrier_state.h"

namespace gg::emu {
namespace {

// The current phase, or the one before it.
uint64_t phase_of_parity(const Mbarrier& b, uint64_t parity) {
  return (b.phase & 1) == parity ? b.phase : b.phase - 1;
}

// The phase a lane asks about: by parity the current one or the one before; by a token that of the
// arrival. An allowed token of another barrier or of an older phase is worth its parity, which is
// all that an H200 looks at.
uint64_t phase_asked(Warp& w, const Instr& in, int lane, const BarrierAt& at, const Mbarrier& b) {
  if (in.variant & kParity) {
    const uint32_t parity = w.at<uint32_t>(in.s[0])[lane];
    if (parity > 1) {
      raise(FaultKind::mbarrier, w, in, lane, "a wait for parity " + std::to_string(parity),
            "a parity is 0 or 1; hardware looks at the lowest bit only");
    }
    return phase_of_parity(b, parity & 1);
  }
  const uint64_t token = w.at<uint64_t>(in.s[0])[lane], bits = (1 << 28) - 1, phase = token >> 36;
  const uint64_t age = (b.phase - phase) & bits;
  if ((token >> 20 & 0xFFFF) != at.offset / kMbarrierBytes || age > bits / 2) {
    raise(FaultKind::mbarrier, w, in, lane,
          "the token " + hex(token) + " is not from an arrival at " + mbarrier_name(at),
          "a token belongs to the barrier whose mbarrier.arrive gave it");
    return phase_of_parity(b, phase & 1);
  }
  if (age > 1) {
    raise(FaultKind::mbarrier, w, in, lane,
          "the token is of phase " + std::to_string(b.phase - age) + ", " + mbarrier_name(at) +
              " is in phase " + std::to_string(b.phase),
          "a token can be asked about during its phase and the next one");
    return phase_of_parity(b, phase & 1);
  }
  return b.phase - age;
}

// Nobody can go on: the lanes suspended in try_wait are sent on with false, as they may be. A loop
// around the wait comes back at once, so this happens a few times only while no barrier changes;
// then the deadlock is real.
void give_up_when_stuck(Block& block) {
  constexpr int kMost = 8;
  constexpr uint64_t kNever = UINT64_MAX;
  Mbarriers& all = mbarriers_of(block);
  if (all.may_give_up) return;
  all.may_give_up = true;
  block.cluster->effects.push_back({[&block, &all] {
                                      all.may_give_up = false;
                                      auto& effects = block.cluster->effects;
                                      const bool more =
                                          std::any_of(effects.begin(), effects.end(),
                                                      [](const Effect& e) { return e.due != kNever; });
                                      if (more) return give_up_when_stuck(block);
                                      if (++all.fruitless <= kMost) ++all.given_up;
                                    },
                                    kNever});
}

// The barriers and phases that the lanes of one wait ask about, and what is known of them.
struct Asked {
  BarrierAt at[kLanes];
  uint64_t phase[kLanes];
  Mask ended = 0, given_up = 0;
};

// The phase asked about is settled when the wait begins: one that ends while the lane sleeps
// is never missed.
Asked ask(Warp& w, const Instr& in, Mask m, const Mbarriers& all) {
  Asked a;
  for (Lanes l(m); l; ++l) {
    a.at[*l] = use_mbarrier(w, in, *l, barrier_operand(in));
    const Mbarrier& b = find_mbarrier(w, in, *l, a.at[*l]);
    const Mbarriers::Wait& before = all.waits[size_t(w.thread_of(*l))];
    a.phase[*l] = before.on ? before.phase : phase_asked(w, in, *l, a.at[*l], b);
    // The phase before the first is ~0.
    if (int64_t(b.phase - a.phase[*l]) > 0) a.ended |= Mask(1) << *l;
    if (before.on && before.given_up != all.given_up) a.given_up |= Mask(1) << *l;
  }
  return a;
}

// The lanes sleep until one of the phases they wait for has ended, or they are sent on.
void suspend(Warp& w, Mask m, const Asked& a, Mbarriers& all) {
  std::vector<std::pair<size_t, uint64_t>> awaited;  // barriers and phases, each once
  for (Lanes l(m); l; ++l) {
    const std::pair<size_t, uint64_t> one{a.at[*l].offset, a.phase[*l]};
    if (std::find(awaited.begin(), awaited.end(), one) == awaited.end()) awaited.push_back(one);
    all.waits[size_t(w.thread_of(*l))] = {true, a.phase[*l], all.given_up, a.at[*l].offset};
  }
  w.flow.running->ready = [&all, awaited, given_up = all.given_up] {
    return all.given_up != given_up || std::any_of(awaited.begin(), awaited.end(), [&](const auto& one) {
             const auto b = all.live.find(one.first);
             return b == all.live.end() || b->second.phase > one.second;
           });
  };
  w.flow.running->waits_for = [&w, one = awaited[0]] {
    return "waits at " + asked_mbarrier(*w.block, w.index, one.first, one.second);
  };
  give_up_when_stuck(*w.block);
}

}  // namespace

// test_wait, try_wait: true for lanes whose phase has ended, which learn what its arrivals told.
// try_wait sleeps while that is so for none of them; the skewed order sometimes makes it say false
// at once, as hardware may.
Next mbarrier_wait(Warp& w, const Instr& in, Mask m) {
  Mbarriers& all = mbarriers_of(*w.block);
  const Asked a = ask(w, in, m, all);
  Cluster& c = *w.block->cluster;
  const bool sleeps =
      in.variant & kTry && !a.ended && !a.given_up && !(c.grid->order.skew && c.delays.below(16) == 0);
  if (sleeps) {
    suspend(w, m, a, all);
    return Next::retry;
  }
  for (Lanes l(m); l; ++l) {
    const bool ended = a.ended >> *l & 1;
    all.waits[size_t(w.thread_of(*l))] = {false, a.phase[*l], all.given_up, a.at[*l].offset};
    w.at<uint8_t>(in.d)[*l] = ended;
    if (!ended) continue;
    Mbarrier& b = all.live[a.at[*l].offset];
    if (b.loaded && b.seen[size_t(w.index)] <= a.phase[*l]) load_awaited(w, in, b.ended);
    if (in.variant2 == 0)
      acquire(w, b.ended);
    else
      w.race.observed.join(b.ended);  // .relaxed
    b.seen[size_t(w.index)] = std::max(b.seen[size_t(w.index)], a.phase[*l] + 1);
  }
  return Next::go_on;
}

}  // namespace gg::emu
