// SPDX-License-Identifier: MIT
//
// The code that bulk copies of bytes and of tensor boxes have in common: where they land, and the
// groups that stores join. PTX ISA: "Asynchronous copy: Bulk copy: Completion mechanisms".

#pragma once

#include "common/emu/core/state/bulk_groups.h"
#include "common/emu/core/units/mbarrier.h"
#include "common/emu/core/units/reduction.h"

namespace gg::emu {

// A place that a copy into shared memory goes to, and the mbarrier there that counts its bytes.
struct Landing {
  Block* block = nullptr;
  size_t offset = 0;
  BarrierAt barrier;
};
// One, or with a multicast mask (slot of 16 bits, 0: none) one in each block it names. `bytes` are
// checked to lie in shared memory. `pair`: .cta_group::2, by which the mbarrier may be in the other
// block of a pair, ranks 2i and 2i + 1. Of each destination's pair it is the block whose rank is
// even or odd as that of `barrier`.
std::vector<Landing> landings(Warp& warp, const Instr& instr, int lane, const AddressOperand& to,
                              const AddressOperand& barrier, uint32_t mask, int64_t bytes, int alignment,
                              bool pair = false);

// The lanes of a mask with the same operands as its first lane. A store does the same however often
// it is done: ptxas makes one instruction of it for all lanes that give the same operands (nvdisasm
// 13.0: R2UR.OR in a loop for those that do not), and one for each lane of a reduction.
template <class Operands>
Mask like_the_first(Mask m, Operands operands) {
  const auto first = operands(__builtin_ctz(m));
  Mask like = 0;
  for (Lanes l(m); l; ++l) like |= Mask(operands(*l) == first) << *l;
  return like;
}

using Groups = std::vector<std::shared_ptr<BulkGroup>>;
// The open groups of all lanes of a mask, with one more copy in each.
Groups join_groups(Warp& warp, Mask mask);
// Copies a store's source once it is read, then writes it, each some time later.
void store_later(const Issuer& issuer, Block& block, const std::vector<Range>& ranges, Groups groups,
                 std::function<std::vector<uint8_t>()> read,
                 std::function<void(const std::vector<uint8_t>&)> write);

// Adds to the counts of an instruction: bytes of global memory and the 32-byte sectors they lie in.
void count_run(const Instr& instr, uint64_t address, uint64_t bytes);

}  // namespace gg::emu
