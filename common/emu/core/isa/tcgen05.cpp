// SPDX-License-Identifier: MIT
//
// tcgen05: what the tensor core does for a warp while the warp goes on, and how others
// learn that it is done. PTX ISA: "TensorCore 5th Generation Family Instructions:
// tcgen05.commit, tcgen05.fence, tcgen05.wait", "Memory Consistency Model for 5th
// generation of TensorCore operations".

#include <algorithm>

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/units/mbarrier.h"
#include "common/emu/core/units/tensor_core.h"

namespace gg::emu {

namespace {

// ---- commit ----

struct Commit {
  AddressOperand barrier;
  uint32_t mask = 0;  // slot of 16 bits; 0: no multicast
  int cta_group = 1;
};

// The barriers that an arrival goes to: the one named, or those at its offset in the mask's blocks.
std::vector<BarrierAt> targets(Warp& w, const Instr& in, int lane, const Commit& f) {
  const BarrierAt at = use_mbarrier(w, in, lane, f.barrier);
  if (f.mask == 0) return {at};
  const uint32_t ranks = w.at<uint16_t>(f.mask)[lane];
  const auto& blocks = w.block->cluster->blocks;
  if (ranks == 0 || ranks >> blocks.size() != 0) {
    raise_final(
        FaultKind::bounds, w, in, lane,
        "a multicast mask of " + hex(ranks) + " in a cluster of " + std::to_string(blocks.size()) + " blocks",
        "each bit is the rank of a block of the cluster");
  }
  std::vector<BarrierAt> all;
  for (Lanes rank(ranks); rank; ++rank) {
    all.push_back({blocks[size_t(*rank)].get(), at.offset});
    use_mbarrier(w, in, lane, all.back());
  }
  return all;
}

// One arrival when all that the warp's lane has issued by now is done. It tells what the tensor
// core knows, and it hands on tensor memory as tcgen05.fence::before_thread_sync does.
Next commit(Warp& w, const Instr& in, Mask m) {
  const Commit& f = *static_cast<const Commit*>(in.extra);
  const TensorIssue issue = begin_issue(w, in, m, f.cta_group);
  const std::vector<BarrierAt> all = targets(w, in, issue.lane, f);
  Issuer who{&w, &in, issue.lane, {}};
  issue.core->race.clock.hand_on();
  release(*issue.core, who.clock);
  tensor_core_later(w, [who, all] {
    for (const BarrierAt& at : all) {
      const auto arrive = [who, at] { mbarrier_arrive(who, at, 1, &who.clock); };
      if (who.warp->block->grid->order.skew)
        later(*who.warp, arrive);  // nothing orders arrivals of two commits
      else
        arrive();
    }
  });
  return Next::go_on;
}

// ---- fences and waits ----

Next before_thread_sync(Warp& w, const Instr&, Mask) {
  w.race.clock.hand_on();
  // Nothing that the warp does from now on is handed on.
  w.race.clock.set(w.race.agent, w.race.clock[w.race.agent] + 1);
  return Next::go_on;
}

Next after_thread_sync(Warp& w, const Instr&, Mask) {
  tensor_core_of(w).fenced = w.race.clock;
  return Next::go_on;
}

Next wait_for_loads(Warp& w, const Instr& in, Mask m) {
  require_whole_warp(w, in, m);
  if (w.block->tmem) w.block->tmem->finish(w, TmemUse::read);
  w.registers.in_flight.clear();
  w.registers.in_flight_by = nullptr;
  return Next::go_on;
}

Next wait_for_stores(Warp& w, const Instr& in, Mask m) {
  require_whole_warp(w, in, m);
  if (w.block->tmem) w.block->tmem->finish(w, TmemUse::write);
  return Next::go_on;
}

// ---- decoding ----

// tcgen05.commit.cta_group.mbarrier::arrive::one{.shared::cluster}{.multicast::cluster}.b64
// [mbar] {, mask};
void decode_commit(Decoder& d) {
  Commit f;
  f.cta_group = take_cta_group(d);
  if (!d.take("mbarrier::arrive::one")) throw Unsupported{"this completion mechanism"};
  const Space space = d.take("shared::cluster") ? Space::shared : Space::generic;
  const bool multicast = d.take("multicast::cluster");
  if (!d.take("b64")) throw Unsupported{"a type other than .b64"};
  d.done();
  if (d.operands() != (multicast ? 2 : 1)) throw Unsupported{"this number of operands"};
  f.barrier = take_address_operand(d, d.operand(0), space, true);
  if (multicast) f.mask = d.source(1, type_info("b16"));
  d.extra(f);
  d.instr.run = commit;
}

void decode_plain(Decoder& d, Handler run) {
  d.done();
  if (d.operands() != 0) throw Unsupported{"operands of " + d.statement().text};
  d.instr.run = run;
}

void decode_wait(Decoder& d, Handler run) {
  if (!d.take("sync") || !d.take("aligned")) throw Unsupported{"this form of tcgen05.wait"};
  d.instr.converged = true;
  decode_plain(d, run);
}

void decode_tcgen05(Decoder& d) {
  if (d.take("alloc")) return decode_tcgen05_rights(d, TmemRights::alloc);
  if (d.take("dealloc")) return decode_tcgen05_rights(d, TmemRights::dealloc);
  if (d.take("relinquish_alloc_permit")) return decode_tcgen05_rights(d, TmemRights::relinquish);
  if (d.take("ld")) return decode_tcgen05_load(d);
  if (d.take("st")) return decode_tcgen05_store(d);
  if (d.take("cp")) return decode_tcgen05_copy(d);
  if (d.take("shift")) return decode_tcgen05_shift(d);
  if (d.take("commit")) return decode_commit(d);
  if (d.take("fence::before_thread_sync")) return decode_plain(d, before_thread_sync);
  if (d.take("fence::after_thread_sync")) return decode_plain(d, after_thread_sync);
  if (d.take("wait::ld")) return decode_wait(d, wait_for_loads);
  if (d.take("wait::st")) return decode_wait(d, wait_for_stores);
  throw Unsupported{"no such tcgen05 instruction"};
}

}  // namespace

std::vector<Form> tcgen05_forms() { return {{"tcgen05", decode_tcgen05, Family::tcgen05}}; }

}  // namespace gg::emu
