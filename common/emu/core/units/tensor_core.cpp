// SPDX-License-Identifier: MIT
//
// How operations of the tensor core are issued. PTX ISA: "Memory Consistency Model for 5th
// generation of TensorCore operations".

#include "common/emu/core/units/tensor_core.h"

#include <utility>

namespace gg::emu {

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
  release(w, issue.core->race.clock);
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

// Each effect does the oldest operation of the warp, so that they are done in order whatever
// the order draws.
void tensor_core_later(Warp& w, std::function<void()> operation) {
  tensor_core_of(w).operations.push_back(std::move(operation));
  later(w, [&operations = tensor_core_of(w).operations] {
    const std::function<void()> oldest = std::move(operations.front());
    operations.pop_front();
    oldest();
  });
}

void tcgen05_issue(const TensorIssue& issue, std::function<void()> work) {
  tensor_core_later(*issue.warp, [issue, work = std::move(work)] {
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

}  // namespace gg::emu
