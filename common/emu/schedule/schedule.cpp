// SPDX-License-Identifier: MIT
//
// Who runs next. A warp is a list of fragments, lanes at the same place; of those that can run, the one with
// the lowest place goes first, and fragments that meet become one, so that lanes come together again behind
// branches. Warps take turns of a few instructions. Clusters are handed to threads in order; one that only
// spins steps aside for the next.

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "common/emu/state/machine.h"

namespace gg::emu {
namespace {

constexpr int kTurn = 32;          // instructions of a warp's turn in the fair order
constexpr int kLongestTurn = 256;  // in the skewed one
constexpr uint32_t kFragmentTurn =
    512;  // steps before another fragment goes first, so that none waits for ever
constexpr uint64_t kSpinRounds = 20000;  // of a cluster without a change: other clusters get a turn
constexpr int kSpinTurns = 1000;         // such turns of a cluster, and it counts as going round for ever
constexpr size_t kWaitingClusters =
    160;  // of a worker: with more, each gets a turn before another is started

thread_local InstrCounts* current_counts = nullptr;

uint64_t next_random(uint64_t& state) {  // splitmix64
  uint64_t z = state += 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

Mask predicate_mask(Warp& w, uint32_t slot) {
  const uint8_t* p = w.at<uint8_t>(slot);
  Mask mask = 0;
  for (int l = 0; l < kLanes; ++l) mask |= Mask(p[l] & 1) << l;
  return mask;
}

// ---- starting ----

uint64_t special_value(const Warp& w, int lane, const Code::Special& s) {
  const Block& b = *w.block;
  const Launch& launch = b.grid->launch;
  const int thread = w.thread_of(lane), c = s.component, x = launch.block[0], y = launch.block[1];
  const int tid[3] = {thread % x, thread / x % y, thread / x / y};
  const std::string& n = s.name;
  if (n == "%shared") return uint64_t(b.rank) << 24 | uint64_t(c);
  if (n == "%param") return (s.bits == 64 ? b.grid->params_address : 0) + uint64_t(c);  // 32 bits: see cvta
  if (n == "%tid") return uint64_t(tid[c]);
  if (n == "%ntid") return uint64_t(launch.block[c]);
  if (n == "%ctaid") return uint64_t(b.id[c]);
  if (n == "%nctaid") return uint64_t(launch.grid[c]);
  if (n == "%laneid") return uint64_t(lane);
  if (n == "%warpid") return uint64_t(w.index);
  if (n == "%nwarpid") return b.warps.size();
  if (n == "%smid") return uint64_t(b.linear % b.grid->multiprocessors);
  if (n == "%nsmid") return uint64_t(b.grid->multiprocessors);
  if (n == "%lanemask_eq") return 1ull << lane;
  if (n == "%lanemask_lt") return (1ull << lane) - 1;
  if (n == "%lanemask_le") return (2ull << lane) - 1;
  if (n == "%lanemask_gt") return uint32_t(~((2ull << lane) - 1));
  if (n == "%lanemask_ge") return uint32_t(~((1ull << lane) - 1));
  if (n == "%clusterid") return uint64_t(b.cluster->id[c]);
  if (n == "%nclusterid") return uint64_t(launch.grid[c] / launch.cluster[c]);
  if (n == "%cluster_ctaid") return uint64_t(b.id[c] % launch.cluster[c]);
  if (n == "%cluster_nctaid") return uint64_t(launch.cluster[c]);
  if (n == "%cluster_ctarank") return uint64_t(b.rank);
  if (n == "%cluster_nctarank") return b.cluster->blocks.size();
  if (n == "%dynamic_smem_size") return uint64_t(launch.dynamic_shared);
  if (n == "%total_smem_size") return b.shared.bytes.size();
  if (n == "%is_explicit_cluster") return b.cluster->blocks.size() > 1;
  return 0;  // %gridid; clocks are read where the instruction stands, see integer.cpp
}

void start_warp(Warp& w, const Code& code) {
  w.file.assign(code.initial);
  w.written.assign(code.registers.size(), 0);
  w.local.assign(size_t(code.local_bytes) * kLanes, 0);
  w.live = 0;
  for (int l = 0; l < kLanes; ++l) w.live |= Mask(w.thread_of(l) < w.block->threads) << l;
  w.fragments = {Fragment{w.live, 0, false, {}, 0, {}}};
  for (const Code::Special& s : code.specials) {
    const bool differs = s.name == "%tid" || s.name.starts_with("%lane");  // from lane to lane
    uint64_t value = special_value(w, 0, s);
    for (int l = 0; l < kLanes; ++l) {
      if (differs) value = special_value(w, l, s);
      std::memcpy(w.at<uint8_t>(s.slot) + size_t(l) * size_t(s.bits) / 8, &value, size_t(s.bits) / 8);
    }
  }
}

std::unique_ptr<Cluster> start_cluster(Grid& grid, int64_t index) {
  const Launch& launch = grid.launch;
  auto cluster = std::make_unique<Cluster>();
  cluster->grid = &grid;
  cluster->random = grid.order.seed * 0x9E3779B97F4A7C15ull + uint64_t(index);
  int count[3];
  for (int i = 0; i < 3; ++i) count[i] = launch.grid[i] / launch.cluster[i];
  cluster->id[0] = int(index % count[0]);
  cluster->id[1] = int(index / count[0] % count[1]);
  cluster->id[2] = int(index / count[0] / count[1]);
  const int blocks = launch.cluster[0] * launch.cluster[1] * launch.cluster[2];
  for (int rank = 0; rank < blocks; ++rank) {
    auto block = std::make_unique<Block>();
    block->grid = &grid;
    block->cluster = cluster.get();
    block->rank = rank;
    const int in_cluster[3] = {rank % launch.cluster[0], rank / launch.cluster[0] % launch.cluster[1],
                               rank / launch.cluster[0] / launch.cluster[1]};
    for (int i = 0; i < 3; ++i) block->id[i] = cluster->id[i] * launch.cluster[i] + in_cluster[i];
    block->linear = (int64_t(block->id[2]) * launch.grid[1] + block->id[1]) * launch.grid[0] + block->id[0];
    block->threads = launch.block[0] * launch.block[1] * launch.block[2];
    const int warps = (block->threads + kLanes - 1) / kLanes;
    const size_t bytes = size_t(launch.code->shared_bytes + launch.dynamic_shared);
    block->shared.resize(bytes);
    block->shared.checked = grid.checks;
    block->shared.races.resize(bytes, grid.races ? size_t(warps) * size_t(blocks) : 0, *block);
    block->live_warps = warps;
    for (int i = 0; i < warps; ++i) {
      auto warp = std::make_unique<Warp>();
      warp->block = block.get();
      warp->index = i;
      warp->agent = size_t(rank) * size_t(warps) + size_t(i);
      warp->clock.set(warp->agent, 1);
      block->warps.push_back(std::move(warp));
    }
    cluster->blocks.push_back(std::move(block));
  }
  for (const auto& block : cluster->blocks) {  // special registers tell of the whole cluster
    for (const auto& warp : block->warps) start_warp(*warp, *launch.code);
  }
  return cluster;
}

// ---- one step ----

void merge(Warp& w) {
  auto& f = w.fragments;
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
  if (f.size() == 1) w.steps = 0;
}

// The fragment to run: the lowest place first, every kFragmentTurn steps another. Null: none can.
Fragment* choose(Warp& w) {
  for (Fragment& f : w.fragments) {
    if (f.ready && f.ready()) f.ready = nullptr;
  }
  if (w.fragments.size() == 1) {
    Fragment& f = w.fragments[0];
    return f.ready || f.parked ? nullptr : &f;
  }
  merge(w);
  Fragment* runnable[kLanes];
  size_t count = 0;
  for (Fragment& f : w.fragments) {
    if (!f.ready && !f.parked) runnable[count++] = &f;
  }
  if (count == 0) return nullptr;
  std::sort(runnable, runnable + count, [](Fragment* a, Fragment* b) { return a->pc < b->pc; });
  return runnable[w.steps / kFragmentTurn % count];
}

// "lane 3 waits", "lanes 0-15 wait"
std::string lanes_do(Mask lanes, const std::string& verb) {
  const bool one = __builtin_popcount(lanes) == 1;
  return lanes_text(lanes) + " " + verb + (!one ? "" : verb == "pass" ? "es" : "s");
}

[[gnu::noinline]] void unwritten(Warp& w, const Instr& in, int32_t reg, Mask lanes) {
  const Mask others = w.written[size_t(reg)] & ~lanes;
  raise(
      FaultKind::uninit_register, w, in, __builtin_ctz(lanes),
      lanes_do(lanes, "read") + " register " + w.block->grid->launch.code->registers[size_t(reg)].name +
          ", which " +
          (others ? "only " + lanes_text(others) + " of the warp wrote" : "no lane of the warp has written"),
      others ? "a variable gets its value in a branch or a loop that these lanes did not take"
             : "a variable is used before it has a value on this path");
  w.written[size_t(reg)] |= lanes;  // allowed: say it once
}

[[gnu::noinline]] void check_in_flight(Warp& w, const Instr& in, Mask m) {
  for (const int32_t* list : {in.reads, in.writes}) {
    for (const int32_t* r = list; *r >= 0; ++r) {
      if (const Mask lanes = m & w.in_flight[size_t(*r)]) {
        raise(FaultKind::async_window, w, in, __builtin_ctz(lanes),
              "register " + w.block->grid->launch.code->registers[size_t(*r)].name + " is " +
                  (list == in.reads ? "read" : "written") + " while an asynchronous operation still owns it",
              "wait for the operation (wgmma.wait_group) before its registers are touched",
              {{&w, w.in_flight_by, -1, "issued the operation"}});
      }
    }
  }
}

void leave(Warp& w, Mask m) {
  w.live &= ~m;
  for (Fragment& f : w.fragments) {
    f.mask &= ~m;
    f.parked = false;  // those who are left may be all that are wanted now
  }
  std::erase_if(w.fragments, [](const Fragment& f) { return f.mask == 0; });
  if (w.live == 0) --w.block->live_warps;
  ++w.block->cluster->changes;
  threads_ended(w);
}

void move_on(Warp& w, Fragment& f, const Instr& in, Mask m, Next next);

// Executes the instruction for the lanes m of the fragment and moves them on; the others of the fragment pass
// it by.
void execute(Warp& w, Fragment& f, const Instr& in, Mask m) {
  for (const int32_t* r = in.reads; *r >= 0 && in.asks && !in.own_checks; ++r) {
    if (const Mask missing = m & ~w.written[size_t(*r)]) unwritten(w, in, *r, missing);
  }
  if (!w.in_flight.empty() && !in.own_checks) check_in_flight(w, in, m);
  if (!w.touched.empty() && !in.own_checks) {
    for (const int32_t* list : {in.reads, in.writes}) {
      for (const int32_t* r = list; *r >= 0; ++r) w.touched[size_t(*r)] = 1;
    }
  }
  w.running = &f;
  move_on(w, f, in, m, in.run(w, in, m));
}

// What follows from an instruction that the lanes m have executed.
void move_on(Warp& w, Fragment& f, const Instr& in, Mask m, Next next) {
  if (next == Next::wait || next == Next::retry) f.waits_at = in.index;
  InstrCounts& counts = current_counts[in.index];
  if (next == Next::retry) {
    ++counts.waits;
  } else {
    ++counts.warps;
    counts.lanes += uint64_t(__builtin_popcount(m));
    if (next == Next::wait) ++counts.waits;
    for (const int32_t* r = in.writes; *r >= 0 && in.records; ++r) w.written[size_t(*r)] |= m;
  }
  const Mask others = f.mask & ~m;
  switch (next) {
    case Next::go_on:
      ++f.pc;
      return;
    case Next::branch:
      if (others == 0) {
        f.pc = in.target;
      } else {
        f.mask = others;
        ++f.pc;
        w.fragments.push_back({m, in.target, false, {}, 0, {}});
      }
      return;
    case Next::jump: {
      const int32_t pc = f.pc + 1;
      std::vector<Fragment> parts;
      if (others) parts.push_back({others, pc, false, {}, 0, {}});
      for (Mask left = m; left;) {
        const int32_t to = w.jump_to[__builtin_ctz(left)];
        Mask together = 0;
        for (int l = 0; l < kLanes; ++l) together |= Mask((left >> l & 1) && w.jump_to[l] == to) << l;
        parts.push_back({together, to, false, {}, 0, {}});
        left &= ~together;
      }
      f = std::move(parts[0]);
      for (size_t i = 1; i < parts.size(); ++i) w.fragments.push_back(std::move(parts[i]));
      return;
    }
    case Next::exit:
      if (others) ++f.pc;
      leave(w, m);
      return;
    case Next::wait:
    case Next::retry:
      if (others) {
        w.fragments.push_back(
            {others, f.pc + 1, false, {}, 0, {}});  // invalidates nothing below: f is not used after
        Fragment& self = *std::find_if(w.fragments.begin(), w.fragments.end(),
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
  w.fragments.push_back({others, others_pc, false, {}, 0, {}});
}
Fragment& fragment_of(Warp& w, Mask lanes) {
  return *std::find_if(w.fragments.begin(), w.fragments.end(),
                       [&](const Fragment& f) { return f.mask & lanes; });
}

[[noreturn]] void raise_guarded(Warp& w, const Instr& in, Mask here, Mask skip) {
  raise_final(FaultKind::diverged, w, in, __builtin_ctz(skip),
              lanes_do(here, "execute") + " this instruction, " + lanes_do(skip, "pass") +
                  " it by, and it wants all of them at once",
              "the condition before a barrier or another instruction of the whole warp must be the same for "
              "all its lanes");
}

// The lanes that may execute a converged instruction now: all live ones, or the first of the groups that
// membermasks name; 0 if lanes are missing.
Mask complete_group(Warp& w, const Fragment& f, const Instr& in, Mask m) {
  if (!in.members) {
    if (w.live & f.mask & ~m) raise_guarded(w, in, m, w.live & f.mask & ~m);
    return m == w.live ? m : 0;
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
    const Mask wanted = named & w.live, other = wanted & m & ~group;
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

// A converged instruction waits until all lanes it wants are here. Lanes may name different membermasks that
// do not overlap; each group goes by itself. False: parked.
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

// Up to `most` instructions of a warp whose lanes are all at one place, as long as there is nothing to ask
// before one; how many it did. Most instructions of most kernels are executed here.
int run_straight(Warp& w, Fragment& f, const Code& code, int most) {
  const Mask m = f.mask;
  const uint64_t lanes = uint64_t(__builtin_popcount(m));
  w.running = &f;
  for (int done = 0; done < most; ++done) {
    const Instr& in = code.instrs[size_t(f.pc)];
    if (!in.straight) return done;
    const Next next = in.run(w, in, m);
    if (next != Next::go_on) {
      move_on(w, f, in, m, next);  // f may be gone
      return done + 1;
    }
    if (in.records) {
      for (const int32_t* r = in.writes; *r >= 0; ++r) w.written[size_t(*r)] |= m;
    }
    InstrCounts& counts = current_counts[in.index];
    ++counts.warps;
    counts.lanes += lanes;
    ++f.pc;
  }
  return most;
}

// Up to `turn` instructions of a warp; how many it did.
int run_warp(Warp& w, const Code& code, int turn) {
  int done = 0;
  while (done < turn && w.live) {
    Fragment* f = choose(w);
    if (!f) break;
    const Instr& in = code.instrs[size_t(f->pc)];
    if (in.straight && w.fragments.size() == 1 && w.in_flight.empty() && w.touched.empty()) {
      done += run_straight(w, *f, code, turn - done);
      continue;
    }
    Mask m = f->mask;
    if (in.guard) {
      const Mask missing = m & ~w.written[size_t(in.guard_register)];
      if (missing && in.asks) unwritten(w, in, in.guard_register, missing);
      const Mask p = predicate_mask(w, in.guard);
      m &= in.guard_negated ? ~p : p;
    }
    if (m == 0) {
      ++f->pc;
    } else if (in.converged) {
      if (!execute_converged(w, *f, in, m)) continue;
    } else {
      execute(w, *f, in, m);
    }
    ++done;
    if (w.fragments.size() > 1) ++w.steps;
  }
  return done;
}

// ---- clusters ----

// Of a loop that a warp does not leave: the first instruction that asks memory for something.
const Instr* polled(Warp& w, const Code& code) {
  constexpr int kSteps = 2000;
  const Instr* first = nullptr;
  for (int i = 0; i < kSteps; ++i) {
    const Fragment* f = choose(w);
    if (!f) break;
    const Instr& in = code.instrs[size_t(f->pc)];
    const std::string& opcode = in.statement->opcode;
    const bool asks = opcode == "ld" || opcode == "atom" || opcode == "mbarrier";
    if (asks && (!first || in.index < first->index)) first = &in;
    run_warp(w, code, 1);
  }
  return first;
}

int runnable(const Warp& w) {
  return int(std::count_if(w.fragments.begin(), w.fragments.end(),
                           [](const Fragment& f) { return !f.ready && !f.parked; }));
}

// What the lanes of a fragment do where nobody can go on.
Party stuck(Warp& w, const Fragment& f, const Code& code) {
  Party party{&w, &code.instrs[size_t(f.pc)], -1, "", f.mask == w.live ? 0 : f.mask};
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
    party.did = "runs without end";
  }
  return party;
}

// Warps in the same state are told of together.
std::vector<Party> stuck_parties(const Cluster& c, const Code& code) {
  std::vector<Party> parties;
  for (const auto& block : c.blocks) {
    for (const auto& warp : block->warps) {
      std::vector<Party> own;
      if (warp->live == 0) own.push_back({warp.get(), nullptr, -1, "has ended", 0});
      for (size_t i = 0, count = warp->fragments.size(); i < count; ++i)
        own.push_back(stuck(*warp, warp->fragments[i], code));
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
  bool at_barrier = false, at_mbarrier = false, runs = false;
  for (const Party& p : parties) {
    if (!p.instr) continue;
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
  return "something is waited for that nobody will do";
}

// The warp to look at first: one whose own lanes are apart, else one that waits or runs.
[[noreturn]] void deadlock(const Cluster& c, const Code& code, const std::string& what) {
  for (const auto& block : c.blocks) {
    for (const auto& warp : block->warps) {
      const auto& fragments = warp->fragments;
      const bool apart = warp->live && std::all_of(fragments.begin(), fragments.end(),
                                                   [](const Fragment& f) { return f.parked; });
      if (!apart) continue;
      std::vector<Party> others;
      for (size_t i = 1; i < fragments.size(); ++i) others.push_back(stuck(*warp, fragments[i], code));
      raise_final(
          FaultKind::diverged, *warp, code.instrs[size_t(fragments[0].pc)], -1,
          lanes_do(fragments[0].mask, "wait") + " here for " + lanes_text(warp->live & ~fragments[0].mask) +
              " of the warp, and these wait elsewhere",
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

enum class State { done, spinning, stuck };

// Lets effects happen whose time has come; with `force`, at least one. True if any did.
bool complete_effects(Cluster& c, bool force) {
  bool any = false;
  const bool drawn = force && c.grid->order.skew && !c.effects.empty();
  const size_t forced = drawn ? next_random(c.random) % c.effects.size() : 0;
  size_t kept = 0;  // in their order; there may be thousands, and some add others
  for (size_t i = 0; i < c.effects.size(); ++i) {
    if (c.effects[i].due <= c.round || (force && !any && i >= forced)) {
      const auto complete = std::move(c.effects[i].complete);
      ++c.changes;
      complete();
      any = true;
    } else {
      if (kept < i) c.effects[kept] = std::move(c.effects[i]);
      ++kept;
    }
  }
  c.effects.erase(c.effects.begin() + long(kept), c.effects.end());
  return any;
}

uint64_t mixed(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
  return hash ^ hash >> 29;
}
// Where a warp's lanes are, and what its registers hold, as numbers.
uint64_t place_of(const Warp& w) {
  uint64_t hash = 0;
  for (const Fragment& f : w.fragments)
    hash = mixed(hash, uint64_t(f.mask) << 32 | uint32_t(f.pc) << 2 | uint32_t(f.parked) << 1 |
                           uint32_t(f.ready != nullptr));
  return hash;
}
uint64_t registers_of(Warp& w, const Code& code) {
  uint64_t hash = 0;
  const uint64_t* file = w.at<uint64_t>(0);
  for (size_t i = 0; i < code.file_bytes / 8; ++i) hash = mixed(hash, file[i]);
  return hash;
}

// Spinning: a warp that comes back to the registers it had at a place, while memory stays as it is, goes
// round for ever, unless another cluster changes memory. A cluster without a change (Cluster::changes) is
// watched for that from time to time, the longer the later.
class Watch {
 public:
  // To be asked after every round. `quiet`: rounds without a change. True if all warps go round or wait.
  bool all_repeat(uint64_t quiet, const std::vector<Warp*>& warps, const Code& code) {
    if (quiet == 0) begin_ = kFirst, on_ = false;
    if (quiet < begin_) return false;
    if (!on_) {
      begin(warps, code);
      return false;
    }
    if (++rounds_ < least_) return false;
    bool all = true;
    for (size_t i = 0; i < warps.size(); ++i) {
      State& s = first_[i];
      s.repeats = s.repeats || warps[i]->live == 0 ||
                  (place_of(*warps[i]) == s.place && registers_of(*warps[i], code) == s.registers);
      all = all && s.repeats;
    }
    if (rounds_ > least_ + begin_) {  // perhaps the loop has begun since
      begin_ = quiet * 4;
      on_ = false;
    }
    return all;
  }

 private:
  static constexpr uint64_t kFirst = 64;
  struct State {
    uint64_t place = 0, registers = 0;
    bool repeats = false;
  };
  void begin(const std::vector<Warp*>& warps, const Code& code) {
    on_ = true;
    rounds_ = 0;
    first_.clear();
    size_t fragments = 1;
    for (Warp* w : warps) {
      first_.push_back({place_of(*w), registers_of(*w, code), false});
      fragments = std::max(fragments, w->fragments.size());
    }
    least_ = 8 + fragments * (kFragmentTurn / kTurn);  // so that each fragment of a warp has had its turn
  }

  bool on_ = false;
  uint64_t begin_ = kFirst, rounds_ = 0, least_ = 0;
  std::vector<State> first_;
};

// Who may do how many instructions in a round. The skewed order leaves out some warps, and one for as long as
// the others change anything: what comes too late for them shows.
class Turns {
 public:
  Turns(Cluster& c, const std::vector<Warp*>& warps) : c_(c), order_(warps) {}

  // Of the next round. `idle`, `quiet`: rounds in which nobody moved, in which nothing changed.
  const std::vector<Warp*>& order(uint64_t idle, uint64_t quiet) {
    constexpr uint64_t kPatience = 4;
    all_move_ = idle > 0;
    if (!c_.grid->order.skew) return order_;
    for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[next_random(c_.random) % i]);
    if (!last_ || last_->live == 0 || idle > 0 || quiet > kPatience) last_ = order_[0];
    return order_;
  }
  int of(const Warp& w) {
    if (!c_.grid->order.skew) return kTurn;
    if (!all_move_ && (&w == last_ || next_random(c_.random) % 4 == 0)) return 0;
    return 1 + int(next_random(c_.random) % kLongestTurn);
  }

 private:
  Cluster& c_;
  std::vector<Warp*> order_;
  const Warp* last_ = nullptr;
  bool all_move_ = false;
};

State run_cluster(Cluster& c, const Code& code) {
  std::vector<Warp*> warps;
  for (const auto& block : c.blocks) {
    for (const auto& warp : block->warps) warps.push_back(warp.get());
  }
  Turns turns(c, warps);
  uint64_t idle = 0, quiet = 0, changes = c.changes;
  Watch watch;
  for (;;) {
    ++c.round;
    bool any = complete_effects(c, false), live = false;
    for (Warp* w : turns.order(idle, quiet)) {
      if (w->live == 0) continue;
      any = run_warp(*w, code, turns.of(*w)) > 0 || any;
      live = live || w->live != 0;
    }
    if (!live) break;
    any = any || complete_effects(c, true);
    idle = any ? 0 : idle + 1;
    if (idle > 3) deadlock(c, code, "nobody can go on");  // a sleeper wakes in the round after
    quiet = c.changes == changes ? quiet + 1 : 0;
    changes = c.changes;
    if (watch.all_repeat(quiet, warps, code) && !complete_effects(c, true)) return State::stuck;
    if (quiet > kSpinRounds) return State::spinning;
  }
  while (complete_effects(c, true)) {
  }
  return State::done;
}

// ---- the grid ----

class Run {
 public:
  Run(Grid& grid, const RunOptions& options) : grid_(grid), options_(options) {
    const Launch& l = grid.launch;
    clusters_ = int64_t(l.grid[0] / l.cluster[0]) * (l.grid[1] / l.cluster[1]) * (l.grid[2] / l.cluster[2]);
  }

  void run(Counts* counts) {
    const int cores =
        options_.workers ? options_.workers : int(std::max(1u, std::thread::hardware_concurrency()));
    const int workers = int(std::min<int64_t>(cores, clusters_));
    std::vector<std::vector<InstrCounts>> own(size_t(workers),
                                              std::vector<InstrCounts>(grid_.launch.code->instrs.size()));
    std::vector<std::thread> threads;
    for (int i = 1; i < workers; ++i) threads.emplace_back([this, &own, i] { work(own[size_t(i)]); });
    if (workers > 0) work(own[0]);
    for (std::thread& thread : threads) thread.join();
    if (counts) {
      std::vector<InstrCounts>& sum = (*counts)[grid_.launch.code];
      sum.resize(grid_.launch.code->instrs.size());
      for (const auto& each : own) add(sum, each);
    }
    if (fault_) throw Fault(*fault_);
    if (error_) std::rethrow_exception(error_);
  }

 private:
  static void add(std::vector<InstrCounts>& sum, const std::vector<InstrCounts>& each) {
    for (size_t i = 0; i < sum.size(); ++i) {
      sum[i].warps += each[i].warps;
      sum[i].lanes += each[i].lanes;
      sum[i].bytes += each[i].bytes;
      sum[i].sectors += each[i].sectors;
      sum[i].wavefronts += each[i].wavefronts;
      sum[i].least_wavefronts += each[i].least_wavefronts;
      sum[i].waits += each[i].waits;
      sum[i].multiply_adds += each[i].multiply_adds;
    }
  }

  struct Waiting {
    int64_t index = 0;
    std::unique_ptr<Cluster> cluster;
    int quiet_turns = 0;    // in which it spun and changed nothing
    int64_t stuck_in = -1;  // the epoch in which it was found to go round for ever
  };

  void work(std::vector<InstrCounts>& counts) {
    current_counts = counts.data();
    std::deque<Waiting> row;
    size_t since_start = 0;
    Waiting now;
    while (next(row, since_start, now)) {
      try {
        if (!now.cluster) now.cluster = start_cluster(grid_, now.index);
        if (!turn(now)) row.push_back(std::move(now));
      } catch (const Fault& fault) {
        end(now, &fault);
      } catch (...) {
        end(now, nullptr);
        std::lock_guard lock(mutex_);
        error_ = std::current_exception();
        stop_before_ = 0;
      }
    }
  }

  // The cluster that this worker runs next. Clusters are started in order; those that spin wait in a row and
  // get turns between new ones, once something has changed. False: none is left.
  bool next(std::deque<Waiting>& row, size_t& since_start, Waiting& now) {
    std::unique_lock lock(mutex_);
    for (;;) {
      const auto waiting = std::find_if(row.begin(), row.end(), [&](const Waiting& w) {
        return w.stuck_in != epoch_ || all_stuck_ || w.index >= stop_before_;
      });
      const bool full = row.size() >= kWaitingClusters && since_start < row.size();
      if (may_start() && (waiting == row.end() || !full)) {
        since_start = 0;
        now = Waiting();
        now.index = next_++;
        ++alive_;
        return true;
      }
      if (waiting != row.end()) {
        ++since_start;
        now = std::move(*waiting);
        row.erase(waiting);
        return true;
      }
      if (row.empty()) return false;
      changed_.wait(lock);
    }
  }
  bool may_start() const { return next_ < std::min(clusters_, stop_before_); }

  // One turn of a cluster. True if it is over.
  bool turn(Waiting& now) {
    std::unique_lock lock(mutex_);
    // All that are left go round for ever. If one failed, the others may have waited for it.
    const bool failed = all_stuck_ && fault_ && !fault_is_deadlock_;
    if (failed || now.index >= stop_before_) return end_locked(nullptr, now), true;
    const int64_t epoch = epoch_;
    lock.unlock();
    if (all_stuck_)
      deadlock(*now.cluster, *grid_.launch.code,
               clusters_ > 1 ? "nobody can go on, in this block and in the others" : "nobody can go on");
    const uint64_t changes = now.cluster->changes;
    const State state = run_cluster(*now.cluster, *grid_.launch.code);
    if (state == State::done) return end(now, nullptr), true;
    lock.lock();
    if (now.cluster->changes != changes) begin_epoch();
    now.quiet_turns = epoch == epoch_ ? now.quiet_turns + 1 : 0;
    if (epoch == epoch_ && (state == State::stuck || now.quiet_turns > kSpinTurns)) {
      now.stuck_in = epoch;
      ++stuck_;
    }
    if (stuck_ == alive_ && !may_start()) {
      all_stuck_ = true;
      changed_.notify_all();
    }
    return false;
  }
  void begin_epoch() {
    ++epoch_;
    stuck_ = 0;
    changed_.notify_all();
  }

  void end(Waiting& now, const Fault* fault) {
    std::lock_guard lock(mutex_);
    end_locked(fault, now);
  }
  void end_locked(const Fault* fault, Waiting& now) {
    --alive_;
    begin_epoch();
    now.cluster.reset();
    if (!fault || now.index >= stop_before_) return;
    stop_before_ = now.index;
    fault_ = *fault;
    fault_is_deadlock_ = all_stuck_;
  }

  Grid& grid_;
  const RunOptions& options_;
  int64_t clusters_ = 0;
  std::mutex mutex_;                 // of all below
  int64_t next_ = 0, alive_ = 0;     // clusters: the next to start; those started and not over
  int64_t stop_before_ = INT64_MAX;  // the first cluster that failed
  int64_t epoch_ = 0;                // counts turns in which something changed
  int64_t stuck_ = 0;                // clusters that can do nothing in this epoch
  std::condition_variable changed_;  // the epoch, or all are stuck
  std::atomic<bool> all_stuck_{false};
  std::optional<Fault> fault_;
  bool fault_is_deadlock_ = false;  // of clusters that go round for ever
  std::exception_ptr error_;
};

}  // namespace

InstrCounts& counts_of(const Instr& instr) { return current_counts[instr.index]; }

// What no device takes. Limits of one device are the runtime's affair.
static void check_launch(const Launch& l) {
  constexpr int64_t kMostThreads = 1024;
  const Function& f = *l.code->function;
  const auto text = [](const int(&d)[3]) {
    return std::to_string(d[0]) + " x " + std::to_string(d[1]) + " x " + std::to_string(d[2]);
  };
  int64_t threads = 1;
  for (int i = 0; i < 3; ++i) {
    if (l.grid[i] < 1 || l.block[i] < 1 || l.cluster[i] < 1) {
      raise_launch(l,
                   "a grid of " + text(l.grid) + " blocks of " + text(l.block) + " threads in clusters of " +
                       text(l.cluster),
                   "a size that is zero or negative: an empty group, or a division that rounds down");
    }
    threads *= l.block[i];
    if (l.grid[i] % l.cluster[i] != 0) {
      raise_launch(l, "a grid of " + text(l.grid) + " blocks in clusters of " + text(l.cluster),
                   "the grid must be a multiple of the cluster in each direction");
    }
    if (f.required_threads[0] && l.block[i] != f.required_threads[i]) {
      raise_launch(l,
                   "blocks of " + text(l.block) + " threads, and the kernel wants " +
                       text(f.required_threads) + " (.reqntid)",
                   "launch with the block size that the kernel was compiled for");
    }
  }
  const int64_t most =
      f.max_threads[0] ? int64_t(f.max_threads[0]) * f.max_threads[1] * f.max_threads[2] : kMostThreads;
  if (threads > most)
    raise_launch(l,
                 "blocks of " + std::to_string(threads) + " threads, and at most " + std::to_string(most) +
                     " are allowed",
                 "__launch_bounds__ of the kernel, or the device's limit of 1024 threads");
  if (int64_t(l.params.size()) < f.param_bytes) {
    raise_launch(l,
                 std::to_string(l.params.size()) + " bytes of parameters, and the kernel has " +
                     std::to_string(f.param_bytes),
                 "an argument is missing");
  }
}

void run_launch(const Launch& launch, GlobalMemory& memory, const RunOptions& options, Counts* counts) {
  check_launch(launch);
  Grid grid;
  grid.launch = launch;
  grid.memory = &memory;
  grid.order = options.order;
  grid.multiprocessors = options.multiprocessors;
  grid.checks = options.checks;
  grid.races = options.races && options.checks;
  grid.allowed = options.allowed;
  if (!launch.params.empty()) {
    grid.params_address = memory.allocate(launch.params.size());
    std::memcpy(memory.unchecked(grid.params_address), launch.params.data(), launch.params.size());
  }
  const auto release_params = [&] {
    if (grid.params_address) memory.release(grid.params_address);
  };
  try {
    Run(grid, options).run(counts);
  } catch (...) {
    release_params();
    throw;
  }
  release_params();
}

}  // namespace gg::emu
