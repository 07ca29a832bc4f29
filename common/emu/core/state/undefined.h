// SPDX-License-Identifier: MIT
//
// Values that nobody gave. A lane beyond an edge adds a register without one to another, shuffles
// it, or parks it in shared memory, and nobody takes the result: compilers and libraries write that
// everywhere. So what is made of such a register has no value either, and an address, a branch,
// global memory or a matrix product made of it is the fault, which tells where it came from.

#pragma once

#include "common/emu/core/state/grid.h"
#include "common/emu/core/state/place.h"

namespace gg::emu {

// For Carry::lanes: those in which one of the sources has no value.
Mask without_some_value(Warp& warp, const Instr& instr, Mask mask, const Mask* without);

// From now on all that the warp reads is looked at: a register is without a value that
// find_straight() takes for written, as whether it has one depends on more than the way to it.
void doubt_all(Warp& warp);
inline bool asks(const Warp& warp, const Instr& instr) {
  return instr.checks.asks || warp.undefined.anywhere;
}
inline bool records(const Warp& warp, const Instr& instr) {
  return instr.checks.records || warp.undefined.anywhere;
}
// In a shuffle: these lanes have taken registers of lanes that take no part in it, the first
// that of `absent`.
void took_of_absent(Warp& warp, const Instr& instr, Mask lanes, int absent);

// Before an instruction that may read a register without a value: faults where it uses one, and
// notes in warp.undefined.left which of its destinations get none.
void look_for_values(Warp& warp, const Instr& instr, Mask mask);
// The guard of an instruction is used.
void look_for_guard(Warp& warp, const Instr& instr, Mask mask);
// Behind it, when its destinations count as written: those noted have no value.
void leave_without(Warp& warp);

// Behind a store of `count` elements of `bytes` each: those whose register has no value have none
// in shared or local memory either; in global memory that is a fault.
void store_undefined(Warp& warp, const Instr& instr, Mask mask, const uint64_t (&address)[kLanes]);
// Behind a load: the destinations of elements that were stored without a value.
void load_undefined(Warp& warp, const Instr& instr, Mask mask, const uint64_t (&address)[kLanes]);
// Behind a store of values to local memory.
void local_defined(Warp& warp, const Instr& instr, Mask mask, const uint64_t (&address)[kLanes]);

// Behind a copy within the local memory of a lane: bytes without a value stay so.
void copy_undefined(Warp& warp, int lane, uint64_t from, uint64_t to, uint64_t bytes);
// When each lane's local memory has grown to `bytes`.
void local_grown(Warp& warp, size_t bytes_before, size_t bytes);

// Returns who left a byte of shared memory without a value, for reports; empty if nobody did.
std::vector<Party> left_by(const Block& block, size_t offset);

}  // namespace gg::emu
