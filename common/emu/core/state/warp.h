// SPDX-License-Identifier: MIT
//
// A warp of 32 lanes: its registers, and where its lanes are.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/emu/core/state/instr.h"
#include "common/emu/core/state/memory.h"
#include "common/emu/core/state/overlap.h"
#include "common/emu/core/state/race.h"

namespace gg::emu {

struct Block;

struct Fragment {  // lanes of a warp that are at the same place
  Mask mask = 0;
  int32_t pc = 0;
  bool parked = false;          // at a converged instruction, until the lanes it wants have come
  std::function<bool()> ready;  // empty: runnable
  int32_t waits_at = 0;         // the instruction that set it
  // For the report of a deadlock: "mbarrier 0x400, phase 3: 1 arrival pending".
  std::function<std::string()> waits_for;
};

struct SharedLoad {  // of a block's own shared memory, the last one by each lane
  const Instr* instr = nullptr;
  Mask lanes = 0;
  size_t offsets[kLanes];
};

// The first instruction that handed on a register without a value, and in which lanes. Or a
// shuffle: it took the register of `absent` and perhaps others, lanes that take no part in it.
struct Origin {
  const Warp* warp = nullptr;
  const Instr* instr = nullptr;
  int32_t reg = -1;
  Mask lanes = 0;
  int absent = -1;
};

struct CopyGroups;  // cp.async of the lanes of a warp, units/copy_groups.h
struct WgmmaState;  // wgmma of a warp under way, units/wgmma_operation.h
struct BulkGroups;  // bulk stores that lanes wait for by group, bulk_groups.h
struct TensorCore;  // tcgen05 operations that a warp has issued, tmem.h
struct CallStacks;  // calls under way of the lanes of a warp, units/call_stack.h

// Where the lanes are.
struct Flow {
  Mask live = 0;  // lanes that have not ended
  std::vector<Fragment> fragments;
  Fragment* running = nullptr;  // whose instruction is being executed
  uint32_t steps = 0;           // since fragments came to be; see schedule/step.cpp
  int32_t jump_to[kLanes];
  bool cluster_arrived = false;  // at the cluster barrier, of this generation
  uint64_t cluster_generation = 0;
};

struct WarpRegisters {
  AlignedBytes bytes;         // element of lane l at slot + l * size; predicates take a byte
  std::vector<Mask> written;  // register index -> lanes that have written it
  // Registers that an asynchronous operation still reads or writes: index -> lanes; empty while
  // there are none.
  std::vector<Mask> in_flight;
  const Instr* in_flight_by = nullptr;
  // Registers that instructions have read or written since the last wgmma.fence, which sets the
  // size; empty before it.
  std::vector<uint8_t> touched;
  int per_thread = 0;  // as the machine code has them, see Launch::registers
};

// Values that nobody gave and that were handed on, see undefined.h.
struct WithoutValue {
  bool anywhere = false;  // any register may be without one, whatever find_straight() has found
  // By the instruction executed now: its destinations.
  std::vector<std::pair<int32_t, Origin>> left;
  std::map<int32_t, Origin> origins;       // by register
  std::vector<uint8_t> local;              // bytes of local memory; empty while there are none
  std::map<size_t, Origin> local_origins;  // by their offset
};

// How much of the work of others a warp has learnt of, see race.h.
struct WarpKnowledge {
  size_t agent = 0;  // its number in the cluster
  Clock clock;
  Clock released;    // what it knew at its last releasing fence: relaxed arrivals tell this
  Clock observed;    // what relaxed waits have seen: known from the next acquiring fence on
  uint32_t met = 0;  // its step when its lanes last met at a barrier
  // Since its last arrival in another block: those that one may overtake.
  std::vector<SharedLoad> late;
};

// Asynchronous operations that it has issued; null: none yet.
struct WarpOperations {
  std::shared_ptr<CopyGroups> copies;
  std::shared_ptr<WgmmaState> wgmma;
  std::shared_ptr<BulkGroups> bulk;
  std::shared_ptr<TensorCore> tensor_core;
};

struct Warp {
  Block* block = nullptr;
  int index = 0;  // in the block
  Flow flow;
  WarpRegisters registers;
  // Memory of its threads, one after the other, each of Code::local_bytes or, with calls
  // under way, more.
  std::vector<uint8_t> local;
  std::shared_ptr<CallStacks> calls;  // null: nothing has been called
  WithoutValue undefined;
  WarpKnowledge race;
  WarpOperations async;
  WarpProducts products;
  Warp* driver = nullptr;  // of an agent that is a tensor core: the warp that drives it

  template <class T>
  T* at(uint32_t slot) {
    return reinterpret_cast<T*>(registers.bytes.data() + slot);
  }
  int thread_of(int lane) const { return index * kLanes + lane; }
};

}  // namespace gg::emu
