// SPDX-License-Identifier: MIT
//
// When asynchronous effects happen, and what they hold until then.
// PTX ISA: "Asynchronous Operations".

#include "common/emu/core/units/async_operation.h"

#include <limits>

#include "common/emu/core/state/bulk_groups.h"

namespace gg::emu {

uint64_t AddressOperand::of(Warp& w, int lane) const {
  if (base_bits == 32) return uint32_t(w.at<uint32_t>(slot)[lane] + uint32_t(offset));
  return w.at<uint64_t>(slot)[lane] + uint64_t(offset);
}

AddressOperand take_address_operand(Decoder& d, const Operand& operand, Space space, bool any_rank) {
  const Decoder::Address a = d.address(operand, space);
  // `locate` asks the instruction, own_block the operand.
  d.instr.any_rank = d.instr.any_rank || any_rank;
  return {a.slot, a.base_bits, a.offset, space, any_rank};
}

Place own_block(Warp& w, const Instr& in, int lane, const Place& place) {
  if (place.block == w.block) return place;
  raise_final(FaultKind::bounds, w, in, lane,
              place.block ? "the address is in the shared memory of the block of rank " +
                                std::to_string(place.block->rank)
                          : "the address is not in shared memory",
              "this operand must be in the shared memory of the thread's own block");
}

Place locate_operand(Warp& w, const Instr& in, int lane, const AddressOperand& operand, int bytes,
                     int alignment) {
  const Place place = locate(w, in, lane, operand.space, operand.of(w, lane), bytes, alignment);
  if (operand.space != Space::shared || operand.any_rank) return place;
  return own_block(w, in, lane, place);
}

Issuer issue(Warp& w, const Instr& in, int lane) {
  Issuer issuer{&w, &in, lane, {}};
  release(w, issuer.clock);
  return issuer;
}

void later(Warp& w, std::function<void()> complete) {
  constexpr uint64_t kSoon = 1, kSome = 16, kLate = 64, kVeryLate = 400;  // rounds
  constexpr uint64_t kAtLast = std::numeric_limits<uint64_t>::max() / 2;
  Cluster& c = *w.block->cluster;
  const Order& order = c.grid->order;
  uint64_t wait = order.late ? kLate : kSoon;
  if (order.skew) {
    const uint64_t most[] = {kSoon, kSome, kLate, kVeryLate};
    wait = c.delays.below(16) == 0 ? kAtLast : 1 + c.delays.below(most[c.delays.below(4)]);
  }
  c.effects.push_back({std::move(complete), c.round + wait});
}

bool comes_too_late(const Issuer& who, const Block& block, const std::string& was_to,
                    const std::string& cause) {
  if (block.live_warps > 0) return false;
  const std::string what = (block.cluster->blocks.size() == 1
                                ? std::string("the block")
                                : "the block of rank " + std::to_string(block.rank) + " of the cluster") +
                           " ended while this operation was " + was_to;
  if (who.warp->block != &block)
    raise_final(FaultKind::use_after_free, *who.warp, *who.instr, who.lane, what, cause);
  raise(FaultKind::exit, *who.warp, *who.instr, who.lane, what, cause);
  return true;
}

Windows::Windows(Block& block, const Issuer& issuer, const std::vector<Range>& ranges, bool writes,
                 bool reduces, const BulkGroup* group)
    : block_(&block), issuer_(issuer), writes_(writes) {
  for (const Range& r : ranges) {
    handles_.push_back(
        block.shared.open({r.begin, r.end, writes, reduces, issuer.warp, issuer.instr, issuer.lane, group}));
  }
}

void Windows::too_late() const {
  const bool stores = !handles_.empty() && handles_[0]->group;
  comes_too_late(
      issuer_, *block_, std::string("still to ") + (writes_ ? "write" : "read") + " its shared memory",
      writes_  ? "the copy's mbarrier is not waited for, or a peer still copies here: a cluster barrier "
                 "before the end keeps the block alive"
      : stores ? why_not_read(*handles_[0])
               : "the mbarrier that counts these bytes is not waited for before the block ends");
}

void Windows::close() {
  if (block_->live_warps == 0) too_late();
  for (const SharedMemory::Handle& handle : handles_) block_->shared.close(handle);
  handles_.clear();
}

}  // namespace gg::emu
