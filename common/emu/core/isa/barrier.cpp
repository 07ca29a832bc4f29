// SPDX-License-Identifier: MIT
//
// Barriers of a block and of a cluster. PTX ISA: "Parallel Synchronization and Communication
// Instructions: bar, barrier", "barrier.cluster", "bar.warp.sync".

#include <algorithm>

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/units/barrier_state.h"

namespace gg::emu {
namespace {

using Phase = Barrier::Phase;

enum : uint8_t { kSync, kArrive, kPopc, kAnd, kOr };

// The barrier and the count of this instruction, checked.
std::shared_ptr<Phase> enter(Warp& w, const Instr& in, Mask m, uint32_t* id) {
  const int lane = __builtin_ctz(m);
  *id = w.at<uint32_t>(in.s[0])[lane];
  if (*id > 15) {
    raise(FaultKind::barrier, w, in, -1, "there is no " + barrier_name(*id), "a block has barriers 0 to 15");
    *id &= 15;  // allowed: an H200 looks at these bits only
  }
  const int wanted = in.s[1] ? int(w.at<uint32_t>(in.s[1])[lane]) : threads_of(*w.block);
  if (wanted <= 0 || wanted % kLanes != 0) {
    raise_final(FaultKind::barrier_count, w, in, -1,
                barrier_name(*id) + " is entered with a count of " + threads_text(wanted),
                "whole warps meet at a barrier: the count is a multiple of 32");
  }
  std::shared_ptr<Phase>& phase = w.block->barriers[*id].phase;
  if (!phase) {
    phase = std::make_shared<Phase>();
    phase->expected = wanted;
    phase->whole_block = !in.s[1];
  }
  const Party other{phase->entered_warp, phase->entered_by, -1, "entered it"};
  if (wanted != phase->expected) {
    raise_final(FaultKind::barrier_count, w, in, -1,
                barrier_name(*id) + " is entered with a count of " + threads_text(wanted) +
                    ", others are there with a count of " + std::to_string(phase->expected),
                "all who meet at a barrier name the same count; who gives none means the whole block",
                {other});
  }
  if (phase->entered_by && in.variant != phase->entered_by->variant &&
      std::max(in.variant, phase->entered_by->variant) >= kPopc) {
    raise_final(FaultKind::barrier_count, w, in, -1,
                barrier_name(*id) + " is entered with bar.red and with another bar at the same time",
                "two kinds of barrier share a number: give one of them a number of its own", {other});
  }
  return phase;
}

// bar.red: the predicate that came with each thread, as all who took part see it.
void take_result(Warp& w, const Instr& in, Mask m, const Phase& phase) {
  if (in.variant == kPopc) {
    for (Lanes l(m); l; ++l) w.at<uint32_t>(in.d)[*l] = uint32_t(phase.votes);
  } else if (in.variant >= kAnd) {
    const bool value = in.variant == kAnd ? phase.votes == phase.voters : phase.votes > 0;
    for (Lanes l(m); l; ++l) w.at<uint8_t>(in.d)[*l] = value;
  }
}

// A warp some of whose lanes have returned comes to the barrier of the whole block.
void check_lanes(Warp& w, const Instr& in, Mask m, const Phase& phase, uint32_t id) {
  const int threads = std::min(kLanes, w.block->threads - w.index * kLanes);
  const Mask all = threads == kLanes ? kAllLanes : (Mask(1) << threads) - 1;
  const Mask ended = all & ~w.flow.live;
  if (!phase.whole_block || ended == 0) return;
  raise(FaultKind::barrier, w, in, __builtin_ctz(m),
        barrier_name(id) + " waits for all threads of the block, and " + lanes_text(ended) +
            " of this warp ended before",
        kReturnedBefore);
}

// bar.sync a {, b}: the warp arrives at barrier a and waits for b threads, the whole block if there
// is no b; bar.arrive does not wait; bar.red also combines a predicate.
Next bar(Warp& w, const Instr& in, Mask m) {
  uint32_t id;
  const std::shared_ptr<Phase> phase = enter(w, in, m, &id);
  check_lanes(w, in, m, *phase, id);
  w.race.late.clear();  // loads before it have been made: no arrival behind it overtakes them
  phase->entered_by = &in;
  phase->entered_warp = &w;
  phase->arrived += kLanes;
  w.race.met = w.race.clock[agent_of(w)];
  release(w, phase->clock);
  if (in.variant >= kPopc) {
    phase->voters += __builtin_popcount(m);
    for (Lanes l(m); l; ++l) phase->votes += w.at<uint8_t>(in.s[2])[*l] != in.variant2;
  }
  // Whoever arrives in a loop brings the end nearer.
  if (in.variant == kArrive) ++w.block->cluster->changes;
  const bool last = complete_barrier(*w.block, id);
  if (in.variant == kArrive) return Next::go_on;
  const auto leave = [&w, &in, phase, m] {
    if (!phase->done) return false;
    acquire(w, phase->clock);
    take_result(w, in, m, *phase);
    return true;
  };
  if (last) {
    leave();
    return Next::go_on;
  }
  w.flow.running->ready = leave;
  w.flow.running->waits_for = [&w, phase, id] {
    std::string text = "waits at " + barrier_name(id) + ": " + std::to_string(phase->arrived) + " of " +
                       threads_text(phase->expected) + " have arrived";
    if (phase->expected > threads_of(*w.block))
      text += ", and the block has " + std::to_string(w.block->threads);
    return text;
  };
  return Next::wait;
}

// A barrier of some lanes of a warp counts as one of all: what the other lanes did not tell is
// not looked for.
Next warp_sync(Warp& w, const Instr&, Mask) {
  meet(w);
  return Next::go_on;
}

void decode_bar(Decoder& d) {
  const bool is_barrier = d.statement().opcode == "barrier";
  if (d.take("warp")) {  // bar.warp.sync membermask
    if (!d.take("sync")) throw Unsupported{"this barrier"};
    d.done();
    d.instr.members = d.source(0, type_info("b32"));
    d.instr.converged = true;
    d.instr.run = warp_sync;
    return;
  }
  d.take("cta");
  const int kind = d.take_one({"sync", "arrive", "red"});
  d.take("aligned");  // lanes of a warp come together here even without it
  if (kind < 0) throw Unsupported{is_barrier ? "this barrier" : "this bar"};
  d.instr.variant = uint8_t(kind);
  d.instr.converged = true;
  size_t next = 0;
  bool popc = false;
  if (kind == 2) {
    const int op = d.take_one({"popc", "and", "or"});
    if (op < 0) throw Unsupported{"this reduction"};
    d.instr.variant = uint8_t(kPopc + op);
    popc = op == 0;
    d.take(popc ? "u32" : "pred");
    d.instr.d = popc ? d.destination(next++, type_info("u32")) : d.predicate_destination(d.operand(next++));
  }
  d.done();
  d.instr.s[0] = d.source(next++, type_info("u32"));
  const size_t last = kind == 2 ? d.operands() - 1 : d.operands();
  if (next < last) d.instr.s[1] = d.source(next, type_info("u32"));
  if (kind == 1 && !d.instr.s[1]) throw Unsupported{"bar.arrive without a count"};
  if (kind == 2) {
    bool negated = false;
    d.instr.s[2] = d.predicate(d.operand(last), &negated);
    d.instr.variant2 = negated;
  }
  d.instr.run = bar;
}

// barrier.cluster.arrive and .wait: all threads of the cluster that have not ended. A warp arrives
// once between two waits.
Next cluster_arrive(Warp& w, const Instr& in, Mask) {
  Cluster& c = *w.block->cluster;
  if (w.flow.cluster_arrived) {
    raise_final(FaultKind::barrier_count, w, in, -1,
                "this warp has arrived at the cluster barrier and has not waited there yet",
                "barrier.cluster.arrive and .wait take turns");
  }
  w.flow.cluster_arrived = true;
  w.flow.cluster_generation = c.barrier.generation;
  meet(w);
  if (in.variant)
    release(w, c.barrier.clock);
  else
    c.barrier.clock.join(w.race.released);  // .relaxed
  ++c.barrier.arrived;
  complete_barrier(c);
  return Next::go_on;
}
Next cluster_wait(Warp& w, const Instr& in, Mask) {
  Cluster& c = *w.block->cluster;
  if (!w.flow.cluster_arrived) {
    raise(FaultKind::barrier, w, in, -1, "this warp waits at the cluster barrier without having arrived",
          "barrier.cluster.arrive comes first");
    return Next::go_on;  // allowed: an H200 does not wait either
  }
  const uint64_t before = w.flow.cluster_generation;
  const auto passed = [&w, &c, before] {
    if (c.barrier.generation == before) return false;
    w.flow.cluster_arrived = false;
    acquire(w, c.barrier.last_clock);
    return true;
  };
  if (passed()) return Next::go_on;
  w.flow.running->ready = passed;
  w.flow.running->waits_for = [&c] {
    return "waits at the cluster barrier: " + std::to_string(c.barrier.arrived) + " of " +
           std::to_string(c.blocks.size() * c.blocks[0]->warps.size()) + " warps have arrived";
  };
  return Next::wait;
}
void decode_cluster(Decoder& d) {
  if (!d.take("cluster")) throw Unsupported{"no barrier of a cluster"};
  const int kind = d.take_one({"arrive", "wait"});
  if (kind < 0) throw Unsupported{"this barrier"};
  const int order = d.take_one({"release", "relaxed", "acquire"});
  d.take("aligned");
  d.done();
  if ((kind == 0 && order == 2) || (kind == 1 && (order == 0 || order == 1)))
    throw Unsupported{"this order of memory"};
  d.instr.variant = order != 1;
  d.instr.converged = true;
  d.instr.run = kind == 0 ? cluster_arrive : cluster_wait;
}

}  // namespace

std::vector<Form> barrier_forms() {
  return {{"bar", decode_bar, Family::barrier},
          {"barrier", decode_cluster, Family::barrier},
          {"barrier", decode_bar, Family::barrier}};
}

}  // namespace gg::emu
