// SPDX-License-Identifier: MIT
//
// Where bulk copies land, and the groups that stores join. PTX ISA: "Asynchronous copy: Bulk
// copy: Completion mechanisms".

#include "common/emu/core/units/bulk_copy.h"

namespace gg::emu {
namespace {

// The block of this one's pair whose rank has the parity of `rank`.
Block& of_pair(Warp& w, const Instr& in, int lane, const Block& block, int rank) {
  const auto& blocks = w.block->cluster->blocks;
  const size_t wanted = (size_t(block.rank) & ~size_t(1)) | (size_t(rank) & 1);
  if (wanted >= blocks.size()) {
    raise_final(FaultKind::bounds, w, in, lane,
                "the block of rank " + std::to_string(block.rank) + " has no other block beside it, in a " +
                    "cluster of " + std::to_string(blocks.size()) + " blocks",
                ".cta_group::2 wants clusters of an even number of blocks: ranks 2i and 2i + 1 are a pair");
  }
  return *blocks[wanted];
}

BarrierAt barrier_in_pair(Warp& w, const Instr& in, int lane, const Block& data, const BarrierAt& named) {
  if (&of_pair(w, in, lane, data, named.block->rank) == named.block) return named;
  raise_final(FaultKind::bounds, w, in, lane,
              "the bytes go to the block of rank " + std::to_string(data.rank) +
                  ", the mbarrier that counts them is in that of rank " + std::to_string(named.block->rank),
              "with .cta_group::2 both must be of one pair, ranks 2i and 2i + 1");
}

}  // namespace

Groups join_groups(Warp& w, Mask m) {
  Groups groups;
  for (Lanes l(m); l; ++l) {
    std::shared_ptr<BulkGroup>& open = bulk_groups_of(w).lanes[*l].open;
    if (!open) open = std::make_shared<BulkGroup>();
    ++open->unread;
    ++open->unfinished;
    groups.push_back(open);
  }
  return groups;
}

std::vector<Landing> landings(Warp& w, const Instr& in, int lane, const AddressOperand& to,
                              const AddressOperand& barrier, uint32_t mask, int64_t bytes, int alignment,
                              bool pair) {
  const Place place = locate_operand(w, in, lane, to, int(bytes), alignment);
  const BarrierAt at = use_mbarrier(w, in, lane, barrier);
  if (mask == 0) {
    const BarrierAt signalled =
        pair ? barrier_in_pair(w, in, lane, *place.block, at) : barrier_beside(w, in, lane, *place.block, at);
    return {{place.block, place.offset, signalled}};
  }
  const uint32_t ranks = w.at<uint16_t>(mask)[lane];
  const auto& blocks = w.block->cluster->blocks;
  if (ranks == 0 || ranks >> blocks.size() != 0) {
    raise_final(
        FaultKind::bounds, w, in, lane,
        "a multicast mask of " + hex(ranks) + " in a cluster of " + std::to_string(blocks.size()) + " blocks",
        "each bit is the rank of a block of the cluster");
  }
  std::vector<Landing> all;
  for (Lanes rank(ranks); rank; ++rank) {
    Block* const block = blocks[size_t(*rank)].get();
    Block* const signalled = pair ? &of_pair(w, in, lane, *block, at.block->rank) : block;
    all.push_back({block, place.offset, {signalled, at.offset}});
    use_mbarrier(w, in, lane, all.back().barrier);
  }
  return all;
}

void store_later(const Issuer& who, Block& block, const std::vector<Range>& ranges, Groups groups,
                 std::function<std::vector<uint8_t>()> read,
                 std::function<void(const std::vector<uint8_t>&)> write) {
  Windows source(block, who, ranges, false, false, groups[0].get());
  later(*who.warp, [who, groups, read, write, windows = std::move(source)]() mutable {
    windows.close();
    for (const auto& group : groups) --group->unread;
    later(*who.warp, [groups, write, data = read()] {
      write(data);
      for (const auto& group : groups) --group->unfinished;
    });
  });
}

void count_run(const Instr& in, uint64_t address, uint64_t bytes) {
  constexpr uint64_t kSector = 32;
  InstrCounts& counts = counts_of(in);
  counts.global_bytes += bytes;
  counts.sectors += (address + bytes - 1) / kSector - address / kSector + 1;
}

}  // namespace gg::emu
