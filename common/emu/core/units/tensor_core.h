// SPDX-License-Identifier: MIT
//
// The files of tcgen05 share how operations of the tensor core are issued, and what they announce
// when they are. PTX ISA: "TensorCore 5th Generation Family Instructions", "Memory Consistency
// Model for 5th generation of TensorCore operations".
//
// An instruction that the tensor core executes (mma, cp, shift) does four things in its handler:
//   TensorIssue issue = begin_issue(warp, instr, mask, cta_group);       // one lane, one cta_group
//   reads_shared(issue, block, runs); reads_tmem(issue, block, region);  // all that it will read
//   writes_tmem(issue, block, region);                                   // and write, in any block
//   tcgen05_issue(issue, [=] { ... });                                   // its work, done later
// Faults of order are found at the announcements, in every order of execution: the work
// itself asks nothing.

#pragma once

#include "common/emu/core/state/tmem.h"
#include "common/emu/core/units/async_operation.h"

namespace gg::emu {

struct TensorIssue {
  Warp* warp = nullptr;  // who issues it
  Warp* core = nullptr;  // the tensor core that the warp drives, as an agent: see TensorCore
  const Instr* instr = nullptr;
  int lane = 0;
  // Where it works: in the warp's own block, or in both of the pair, the even rank first.
  std::vector<Block*> blocks;
};

// The tensor core learns what the warp knows. Faults (tcgen05) if several lanes issue at once, if
// another cta_group was used before, or if cta_group::2 finds no second block.
TensorIssue begin_issue(Warp& warp, const Instr& instr, Mask mask, int cta_group);

// Bytes of a block's shared memory that the operation reads through the asynchronous proxy: they
// must be written and handed on by fence.proxy.async; who overwrites them must have learnt of the
// operation's end. The caller has made sure that the runs lie inside the block's shared memory.
void reads_shared(const TensorIssue& issue, Block& block, const std::vector<ByteRun>& runs);
// Cells of a block's tensor memory that the operation reads or writes. An accumulator that is added
// to is both. See Tmem::touch for the faults.
void reads_tmem(const TensorIssue& issue, Block& block, const TmemRegion& region);
void writes_tmem(const TensorIssue& issue, Block& block, const TmemRegion& region);

// Appends the operation to what the tensor core has to do for this warp. Operations of a warp are
// done in order, each some rounds of the scheduler after its issue, see later() of
// async_operation.h. A block of `issue.blocks` that has ended by then is a fault (exit,
// use-after-free); where that is allowed, `work` is left out.
void tcgen05_issue(const TensorIssue& issue, std::function<void()> work);

// The same for work that no ended block can spoil, such as the arrival of a commit.
void tensor_core_later(Warp& warp, std::function<void()> operation);

// The other block of a warp's pair, ranks 2i and 2i + 1. Faults (tcgen05) if the cluster has none.
Block& peer_of(Warp& warp, const Instr& instr, int lane);

// Takes the modifier .cta_group::1 or .cta_group::2.
int take_cta_group(Decoder& decoder);
// All tcgen05 instructions of a kernel must have the same one. Faults (tcgen05) if not.
void use_cta_group(Warp& warp, const Instr& instr, int lane, int cta_group);
// Faults (diverged) unless all 32 lanes are here: alloc, dealloc, ld, st, wait.
void require_whole_warp(Warp& warp, const Instr& instr, Mask mask);
// The value that all lanes must have in a register. Faults (diverged) if they differ.
uint32_t uniform_value(Warp& warp, const Instr& instr, uint32_t slot, const char* name);

// An operand that is an address of tensor memory: [register] of 32 bits, or [register + offset].
AddressOperand take_tmem_operand(Decoder& decoder, const Operand& operand);

}  // namespace gg::emu
