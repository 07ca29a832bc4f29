// SPDX-License-Identifier: MIT
//
// tcgen05: what the tensor core does for a warp while the warp goes on, and how others learn that it is done.
// PTX ISA: "TensorCore 5th Generation Family Instructions: tcgen05.commit, tcgen05.fence, tcgen05.wait",
// "Memory Consistency Model for 5th generation of TensorCore operations".

#include "common/emu/isa/tcgen05.h"

#include <algorithm>

#include "common/emu/isa/mbarrier.h"

namespace gg::emu {

// ---- issue ----

Block& peer_of(Warp& w, const Instr& in, int lane) {
  const auto& blocks = w.block->cluster->blocks;
  const size_t peer = size_t(w.block->rank ^ 1);
  if (peer >= blocks.size()) {
    raise_final(FaultKind::tcgen05, w, in, lane,
                "cta_group::2 in the block of rank " + std::to_string(w.block->rank) + " of a cluster of " +
                    std::to_string(blocks.size()) + (blocks.size() == 1 ? " block" : " blocks"),
                "a pair is the blocks of ranks 2i and 2i + 1 of a cluster: launch with an even cluster size");
  }
  return *blocks[peer];
}

void use_cta_group(Warp& w, const Instr& in, int lane, int cta_group) {
  Tmem& tmem = tmem_of(*w.block);
  if (tmem.cta_group == 0) tmem.cta_group = cta_group;
  if (tmem.cta_group == cta_group) return;
  raise_final(FaultKind::tcgen05, w, in, lane,
              "cta_group::" + std::to_string(cta_group) +
                  " where the block has used cta_group::" + std::to_string(tmem.cta_group) + " before",
              "all tcgen05 instructions of a kernel must have the same cta_group");
}

void require_whole_warp(Warp& w, const Instr& in, Mask m) {
  if (m == kAllLanes) return;
  raise_final(FaultKind::diverged, w, in, __builtin_ctz(~m),
              lanes_text(m) + " of the warp execute an instruction of all 32",
              "the number of threads in a block must be a multiple of 32 here, and none of the warp may have "
              "ended");
}

uint32_t uniform_value(Warp& w, const Instr& in, uint32_t slot, const char* name) {
  const uint32_t* values = w.at<uint32_t>(slot);
  for (int lane = 1; lane < kLanes; ++lane) {
    if (values[lane] == values[0]) continue;
    raise_final(FaultKind::diverged, w, in, lane,
                std::string(name) + " is " + hex(values[lane]) + " here and " + hex(values[0]) + " in lane 0",
                "this operand must be the same in all lanes of the warp");
  }
  return values[0];
}

TensorIssue begin_issue(Warp& w, const Instr& in, Mask m, int cta_group) {
  const int lanes = __builtin_popcount(m), lane = __builtin_ctz(m);
  if (lanes > 1) {
    raise_final(FaultKind::tcgen05, w, in, -1,
                "issued by " + std::to_string(lanes) + " lanes: the tensor core would do it " +
                    std::to_string(lanes) + " times",
                "one thread issues mma, cp, shift and commit: elect.sync, or a test of the thread's number, "
                "stands before");
  }
  use_cta_group(w, in, lane, cta_group);
  TensorIssue issue{&w, &tensor_core_of(w).agent, &in, lane, {w.block}};
  if (cta_group == 2) {
    issue.blocks.push_back(&peer_of(w, in, lane));
    if (w.block->rank % 2 == 1) std::swap(issue.blocks[0], issue.blocks[1]);
  }
  release(w, issue.core->clock);
  return issue;
}

void reads_shared(const TensorIssue& issue, Block& block, const std::vector<ByteRun>& runs) {
  if (all_async_readable(*issue.core, *issue.instr, block, runs)) return;
  for (const ByteRun& run : runs)
    check_async_read(*issue.core, *issue.instr, issue.lane, block, run.offset, run.bytes);
}

void reads_tmem(const TensorIssue& issue, Block& block, const TmemRegion& region) {
  tmem_of(block).touch(*issue.core, *issue.instr, issue.lane, region, TmemUse::read);
}

void writes_tmem(const TensorIssue& issue, Block& block, const TmemRegion& region) {
  tmem_of(block).touch(*issue.core, *issue.instr, issue.lane, region, TmemUse::write);
}

// Each effect does the oldest operation of the warp, so that they are done in order whatever the order draws.
static void enqueue(Warp& w, std::function<void()> operation) {
  tensor_core_of(w).operations.push_back(std::move(operation));
  later(w, [&operations = tensor_core_of(w).operations] {
    const std::function<void()> oldest = std::move(operations.front());
    operations.pop_front();
    oldest();
  });
}

void tcgen05_issue(const TensorIssue& issue, std::function<void()> work) {
  enqueue(*issue.warp, [issue, work = std::move(work)] {
    const Issuer who{issue.warp, issue.instr, issue.lane, {}};
    for (const Block* block : issue.blocks) {
      if (comes_too_late(who, *block, "still to use its memory",
                         "wait at the mbarrier of a tcgen05.commit behind it; of a pair both blocks stay "
                         "until then"))
        return;
    }
    work();
  });
}

namespace {

// ---- commit ----

struct Commit {
  AddressOperand barrier;
  uint32_t mask = 0;  // slot of 16 bits; 0: no multicast
  int cta_group = 1;
};

// The barriers that an arrival goes to: the one named, or those at its offset in the blocks of the mask.
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

// One arrival when all that the warp's lane has issued by now is done. It tells what the tensor core knows,
// and it hands on tensor memory as tcgen05.fence::before_thread_sync does.
Next commit(Warp& w, const Instr& in, Mask m) {
  const Commit& f = *static_cast<const Commit*>(in.extra);
  const TensorIssue issue = begin_issue(w, in, m, f.cta_group);
  const std::vector<BarrierAt> all = targets(w, in, issue.lane, f);
  Issuer who{&w, &in, issue.lane, {}};
  issue.core->clock.hand_on();
  release(*issue.core, who.clock);
  enqueue(w, [who, all] {
    for (const BarrierAt& at : all) {
      const auto arrive = [who, at] { mbarrier_arrive(who, at, 1, &who.clock); };
      if (who.warp->block->grid->order.skew) later(*who.warp, arrive);  // nothing orders arrivals of two commits
      else arrive();
    }
  });
  return Next::go_on;
}

// ---- fences and waits ----

Next before_thread_sync(Warp& w, const Instr&, Mask) {
  w.clock.hand_on();
  w.clock.set(w.agent, w.clock[w.agent] + 1);  // what the warp does from now on is not handed on
  return Next::go_on;
}

Next after_thread_sync(Warp& w, const Instr&, Mask) {
  tensor_core_of(w).fenced = w.clock;
  return Next::go_on;
}

Next wait_for_loads(Warp& w, const Instr& in, Mask m) {
  require_whole_warp(w, in, m);
  if (w.block->tmem) w.block->tmem->finish(w, TmemUse::read);
  w.in_flight.clear();
  w.in_flight_by = nullptr;
  return Next::go_on;
}

Next wait_for_stores(Warp& w, const Instr& in, Mask m) {
  require_whole_warp(w, in, m);
  if (w.block->tmem) w.block->tmem->finish(w, TmemUse::write);
  return Next::go_on;
}

// ---- decoding ----

// tcgen05.commit.cta_group.mbarrier::arrive::one{.shared::cluster}{.multicast::cluster}.b64 [mbar] {, mask};
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

int take_cta_group(Decoder& d) {
  const int group = d.take_one({"cta_group::1", "cta_group::2"});
  if (group < 0) throw Unsupported{"a tcgen05 instruction without a cta_group"};
  return group + 1;
}

AddressOperand take_tmem_operand(Decoder& d, const Operand& operand) {
  const AddressOperand address = take_address_operand(d, operand, Space::none);
  if (operand.reg >= 0 && address.base_bits != 32)
    throw Unsupported{"an address of tensor memory of 64 bits"};
  return address;
}

std::vector<Form> tcgen05_forms() { return {{"tcgen05", decode_tcgen05}}; }

}  // namespace gg::emu
