// SPDX-License-Identifier: MIT
//
// One step of a warp. Of the fragments that can run, the one with the lowest place goes first, and
// fragments that meet become one, so that lanes come together again behind branches.

#include <algorithm>
#include <limits>
#include <optional>

#include "common/emu/core/schedule/schedule.h"
#include "common/emu/core/state/tmem.h"
#include "common/emu/core/state/undefined.h"
#include "common/emu/core/units/barrier_state.h"

namespace gg::emu {
namespace {

Mask predicate_mask(Warp& w, uint32_t slot) {
  const uint8_t* p = w.at<uint8_t>(slot);
  Mask mask = 0;
  for (int l = 0; l < kLanes; ++l) mask |= Mask(p[l] & 1) << l;
  return mask;
}
void merge(Warp& w) {
  auto& f = w.flow.fragments;
  for (size_t i = 0; i < f.size(); ++i) {
    if (f[i].ready) continue;
    for (size_t j = i + 1; j < f.size();) {
      if (f[j].pc == f[i].pc && !f[j].ready) {
        f[i].mask |= f[j].mask;
        f[i].parked = false;
        f.erase(f.begin() + long(j));
      } else {
        ++j;
      }
    }
  }
  if (f.size() == 1) w.flow.steps = 0;
}
}  // namespace

Fragment* choose(Warp& w) {
  for (Fragment& f : w.flow.fragments) {
    if (f.ready && f.ready()) f.ready = nullptr;
  }
  if (w.flow.fragments.size() == 1) {
    Fragment& f = w.flow.fragments[0];
    return f.ready || f.parked ? nullptr : &f;
  }
  merge(w);
  Fragment* runnable[kLanes];
  size_t count = 0;
  for (Fragment& f : w.flow.fragments) {
    if (!f.ready && !f.parked) runnable[count++] = &f;
  }
  if (count == 0) return nullptr;
  std::sort(runnable, runnable + count, [](Fragment* a, Fragment* b) { return a->pc < b->pc; });
  return runnable[w.flow.steps / kFragmentTurn % count];
}

namespace {

[[gnu::noinline]] void check_in_flight(Warp& w, const Instr& in, Mask m) {
  for (const int32_t* list : {in.reads, in.writes}) {
    for (const int32_t* r = list; *r >= 0; ++r) {
      const Mask lanes = m & w.registers.in_flight[size_t(*r)];
      if (lanes && !was_told(FaultKind::async_window, w, in)) {
        raise(FaultKind::async_window, w, in, __builtin_ctz(lanes),
              "register " + w.block->grid->launch.code->registers[size_t(*r)].name + " is " +
                  (list == in.reads ? "read" : "written") + " while an asynchronous operation still owns it",
              w.registers.in_flight_by->statement->opcode == "tcgen05"
                  ? "tcgen05.wait::ld comes between tcgen05.ld and what uses its registers"
                  : "wait for the operation (wgmma.wait_group) before its registers are touched",
              {{&w, w.registers.in_flight_by, -1, "issued the operation"}});
      }
    }
  }
}

void leave(Warp& w, Mask m) {
  w.flow.live &= ~m;
  for (Fragment& f : w.flow.fragments) {
    f.mask &= ~m;
    f.parked = false;  // those who are left may be all that are wanted now
  }
  std::erase_if(w.flow.fragments, [](const Fragment& f) { return f.mask == 0; });
  if (w.flow.live == 0) --w.block->live_warps;
  ++w.block->cluster->changes;
  threads_ended(w);
}

void move_on(Warp& w, Fragment& f, const Instr& in, Mask m, Next next);

// Executes the instruction for the lanes m of the fragment and moves them on; the others of the
// fragment pass it by.
void execute(Warp& w, Fragment& f, const Instr& in, Mask m) {
  if (asks(w, in) && !in.checks.own) look_for_values(w, in, m);
  if (!w.registers.in_flight.empty() && !in.checks.own) check_in_flight(w, in, m);
  if (!w.registers.touched.empty() && !in.checks.own) {
    for (const int32_t* list : {in.reads, in.writes}) {
      for (const int32_t* r = list; *r >= 0; ++r) w.registers.touched[size_t(*r)] = 1;
    }
  }
  w.flow.running = &f;
  move_on(w, f, in, m, in.run(w, in, m));
}

// Does what follows from an instruction that the lanes m have executed.
void move_on(Warp& w, Fragment& f, const Instr& in, Mask m, Next next) {
  if (next == Next::wait || next == Next::retry) f.waits_at = in.index;
  InstrCounts& counts = counts_of(in);
  if (next == Next::retry) {
    ++counts.waits;
  } else {
    ++counts.warps;
    counts.lanes += uint64_t(__builtin_popcount(m));
    if (next == Next::wait) ++counts.waits;
    for (const int32_t* r = in.writes; *r >= 0 && records(w, in); ++r) w.registers.written[size_t(*r)] |= m;
  }
  if (!w.undefined.left.empty()) leave_without(w);
  const Mask others = f.mask & ~m;
  switch (next) {
    case Next::go_on:
    case Next::go_on_without:
      ++f.pc;
      return;
    case Next::branch:
      if (others == 0) {
        f.pc = in.target;
      } else {
        f.mask = others;
        ++f.pc;
        w.flow.fragments.push_back({m, in.target, false, {}, 0, {}});
      }
      return;
    case Next::jump: {
      const int32_t pc = f.pc + 1;
      std::vector<Fragment> parts;
      if (others) parts.push_back({others, pc, false, {}, 0, {}});
      for (Mask left = m; left;) {
        const int32_t to = w.flow.jump_to[__builtin_ctz(left)];
        Mask together = 0;
        for (int l = 0; l < kLanes; ++l) together |= Mask((left >> l & 1) && w.flow.jump_to[l] == to) << l;
        parts.push_back({together, to, false, {}, 0, {}});
        left &= ~together;
      }
      f = std::move(parts[0]);
      for (size_t i = 1; i < parts.size(); ++i) w.flow.fragments.push_back(std::move(parts[i]));
      return;
    }
    case Next::exit:
      if (others) ++f.pc;
      leave(w, m);
      if (w.block->live_warps == 0 && w.block->tmem) check_tmem_freed(w, in);
      return;
    case Next::wait:
    case Next::retry:
      if (others) {
        // Invalidates nothing below: f is not used after.
        w.flow.fragments.push_back({others, f.pc + 1, false, {}, 0, {}});
        Fragment& self = *std::find_if(w.flow.fragments.begin(), w.flow.fragments.end(),
                                       [&](const Fragment& x) { return x.ready && (x.mask & m); });
        self.mask = m;
        if (next == Next::wait) ++self.pc;
      } else if (next == Next::wait) {
        ++f.pc;
      }
      return;
  }
}

// Lanes of the fragment that stay behind, or have gone on, while the others execute.
void split(Warp& w, Fragment& f, Mask stay, int32_t others_pc) {
  const Mask others = f.mask & ~stay;
  if (others == 0) return;
  f.mask = stay;
  w.flow.fragments.push_back({others, others_pc, false, {}, 0, {}});
}
Fragment& fragment_of(Warp& w, Mask lanes) {
  return *std::find_if(w.flow.fragments.begin(), w.flow.fragments.end(),
                       [&](const Fragment& f) { return f.mask & lanes; });
}

[[noreturn]] void raise_guarded(Warp& w, const Instr& in, Mask here, Mask skip) {
  raise_final(FaultKind::diverged, w, in, __builtin_ctz(skip),
              lanes_do(here, "execute") + " this instruction, " + lanes_do(skip, "pass") +
                  " it by, and it wants all of them at once",
              "the condition before a barrier or another instruction of the whole warp must be the same for "
              "all its lanes");
}

// The lanes that may execute a converged instruction now: all live ones, or the first of the groups
// that membermasks name; 0 if lanes are missing.
Mask complete_group(Warp& w, const Fragment& f, const Instr& in, Mask m) {
  if (!in.members) {
    if (w.flow.live & f.mask & ~m) raise_guarded(w, in, m, w.flow.live & f.mask & ~m);
    return m == w.flow.live ? m : 0;
  }
  const Mask* members = w.at<Mask>(in.members);
  for (Mask left = m; left;) {
    const Mask named = members[__builtin_ctz(left)];
    Mask group = 0;
    for (int l = 0; l < kLanes; ++l) group |= Mask((m >> l & 1) && members[l] == named) << l;
    left &= ~group;
    if (group & ~named) {
      raise_final(FaultKind::diverged, w, in, __builtin_ctz(group & ~named),
                  "the membermask " + hex(named) + " does not name this lane, which executes the instruction",
                  "the mask names every lane that executes the instruction, and only those");
    }
    const Mask wanted = named & w.flow.live, other = wanted & m & ~group;
    if (group == wanted) return group;
    if (wanted & f.mask & ~m) raise_guarded(w, in, m, wanted & f.mask & ~m);
    if (other) {
      const int lane = __builtin_ctz(group), theirs = __builtin_ctz(other);
      raise_final(FaultKind::diverged, w, in, lane,
                  "lane " + std::to_string(lane) + " names lane " + std::to_string(theirs) +
                      " in its membermask " + hex(named) + ", and that lane is here with another mask, " +
                      hex(members[theirs]),
                  "lanes that execute the instruction together must name the same mask");
    }
  }
  return 0;
}

// A converged instruction waits until all lanes it wants are here. Lanes may name different
// membermasks that do not overlap; each group goes by itself. False: parked.
bool execute_converged(Warp& w, Fragment& fragment, const Instr& in, Mask m) {
  const int32_t pc = fragment.pc;
  const Mask group = complete_group(w, fragment, in, m);
  split(w, fragment, m, pc + 1);  // where the guard is false
  if (group == 0) {
    fragment_of(w, m).parked = true;
    return false;
  }
  split(w, fragment_of(w, group), group, pc);
  execute(w, fragment_of(w, group), in, group);
  return true;
}

// Up to `most` instructions of a warp whose lanes are all at one place, as long as there is nothing
// to ask before one; how many it did. Most instructions of most kernels are executed here.
int run_straight(Warp& w, Fragment& f, const Code& code, int most) {
  const Mask m = f.mask;
  const uint64_t lanes = uint64_t(__builtin_popcount(m));
  w.flow.running = &f;
  for (int done = 0; done < most; ++done) {
    const Instr& in = code.instrs[size_t(f.pc)];
    if (!in.checks.straight) return done;
    const Next next = in.run(w, in, m);
    if (next != Next::go_on) {
      move_on(w, f, in, m, next);  // f may be gone
      return done + 1;
    }
    if (in.checks.records) {
      for (const int32_t* r = in.writes; *r >= 0; ++r) w.registers.written[size_t(*r)] |= m;
    }
    InstrCounts& counts = counts_of(in);
    ++counts.warps;
    counts.lanes += lanes;
    ++f.pc;
  }
  return most;
}

// The fragment that choose() has picked of several. Until it comes to the place of another, or its
// turn is over, choose() would pick it again, unless another waits: then there is more to ask.
class Chosen {
 public:
  Chosen(const Warp& w, const Fragment& f)
      : f_(&f), fragments_(w.flow.fragments.size()), turn_(w.flow.steps / kFragmentTurn) {
    for (const Fragment& other : w.flow.fragments) {
      if (&other == &f) continue;
      if (other.ready) before_ = -1;
      if (other.pc > f.pc) before_ = std::min(before_, other.pc);
      if (other.pc < f.pc) behind_ = std::max(behind_, other.pc);
    }
  }
  bool still(const Warp& w) const {
    return w.flow.fragments.size() == fragments_ && w.flow.steps / kFragmentTurn == turn_ && !f_->ready &&
           !f_->parked && behind_ < f_->pc && f_->pc < before_;
  }

 private:
  const Fragment* f_;
  size_t fragments_;
  uint32_t turn_;
  int32_t behind_ = -1, before_ = std::numeric_limits<int32_t>::max();
};

// Lanes of a warp are threads, and without a barrier between them nothing says that they are in
// step. PTX ISA, "bar.warp.sync". In the skewed order some fall behind now and then: the others go
// on until they need them.
void let_lanes_fall_behind(Warp& w) {
  constexpr uint64_t kMost[] = {4, 64, 512};  // rounds
  Cluster& c = *w.block->cluster;
  if (w.flow.fragments.size() != 1) return;
  Fragment& f = w.flow.fragments[0];
  const Mask some = Mask(c.lanes.next()), one = Mask(1) << c.lanes.below(kLanes);
  const Mask choices[] = {some, one, ~one}, late = f.mask & choices[c.lanes.below(3)];
  if (f.ready || f.parked || late == 0 || late == f.mask) return;
  f.mask &= ~late;
  const uint64_t due = c.round + 1 + c.lanes.below(kMost[c.lanes.below(3)]);
  const auto ready = [&c, due] { return c.round >= due || c.nobody_is_late; };
  w.flow.fragments.push_back(
      {late, f.pc, false, ready, f.pc, [] { return std::string("have fallen behind"); }});
}

int run_steps(Warp& w, const Code& code, int turn) {
  int done = 0;
  Fragment* f = nullptr;
  std::optional<Chosen> chosen;
  while (done < turn && w.flow.live) {
    if (!chosen || !chosen->still(w)) {
      f = choose(w);
      if (!f) break;
      chosen.reset();
      if (w.flow.fragments.size() > 1) chosen.emplace(w, *f);
    }
    const Instr& in = code.instrs[size_t(f->pc)];
    if (in.checks.straight && w.flow.fragments.size() == 1 && w.registers.in_flight.empty() &&
        w.registers.touched.empty() && !w.undefined.anywhere) {
      done += run_straight(w, *f, code, turn - done);
      continue;
    }
    Mask m = f->mask;
    if (in.guard.slot) {
      if (asks(w, in)) look_for_guard(w, in, m);
      const Mask p = predicate_mask(w, in.guard.slot);
      m &= in.guard.negated ? ~p : p;
    }
    if (m == 0) {
      ++f->pc;
    } else if (in.converged) {
      if (!execute_converged(w, *f, in, m)) continue;
    } else {
      execute(w, *f, in, m);
    }
    ++done;
    if (w.flow.fragments.size() > 1) ++w.flow.steps;
  }
  return done;
}

}  // namespace

int run_warp(Warp& w, const Code& code, int turn) {
  constexpr uint64_t kSeldom = 8;  // turns in which lanes fall behind, anywhere in them
  Random& lanes = w.block->cluster->lanes;
  if (turn == 0 || !w.block->grid->order.skew || lanes.below(kSeldom) != 0) return run_steps(w, code, turn);
  const int before = int(lanes.below(uint64_t(turn)));
  const int done = run_steps(w, code, before);
  let_lanes_fall_behind(w);
  return done + run_steps(w, code, turn - before);
}

}  // namespace gg::emu
