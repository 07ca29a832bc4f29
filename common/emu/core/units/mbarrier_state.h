// SPDX-License-Identifier: MIT
//
// Looking an mbarrier up, and telling of it.

#pragma once

#include <string>

#include "common/emu/core/units/mbarrier.h"

namespace gg::emu {

// "full[3] (mbarrier 0x418)", a shared address, where the line that initialised it names it so;
// else "mbarrier 0x418".
std::string mbarrier_name(const BarrierAt& at);
// Names the warps that have arrived in this phase, and those of the phase before that have not: ";
// arrived: ..; not yet: ..".
std::string mbarrier_arrivals(const Block& from, const Mbarrier& barrier);
// Tells what the current phase still lacks: "phase 2 lacks 1 of 2 arrivals and 4096 of 8192 bytes".
std::string mbarrier_lacks(const Mbarrier& barrier);

// A barrier, by its offset in the block's shared memory, and the phase that a warp of the block has
// asked about: name, parity, what the barrier lacks and who has come.
std::string asked_mbarrier(const Block& block, int warp, size_t offset, uint64_t phase);
// The same of the barrier that a lane has last asked about.
std::string asked_mbarrier(Warp& warp, int lane);

// Those of a block, made when they are first asked for.
Mbarriers& mbarriers_of(Block& block);
// Faults if there is no mbarrier, or if its block has ended.
Mbarrier& find_mbarrier(Warp& warp, const Instr& instr, int lane, const BarrierAt& at);

// Where the mbarrier at an address lies. Where a generic address is wanted, one of shared memory is
// taken for what it is: machine code looks at the low 32 bits, which both have in common.
Place locate_mbarrier(Warp& warp, const Instr& instr, int lane, Space space, uint64_t address);

// The address operand of an instruction that has one: instr.s[3].
inline AddressOperand barrier_operand(const Instr& in) {
  return {in.s[3], in.address_bits, in.offset, in.space, in.any_rank};
}

}  // namespace gg::emu
