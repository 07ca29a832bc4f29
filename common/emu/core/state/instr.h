// SPDX-License-Identifier: MIT
//
// An instruction as the machine executes it, decoded once, and a kernel made of them. isa/ holds
// the handlers, one file per family; each works on a whole warp.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "common/emu/core/text/ptx.h"

namespace gg::emu {

constexpr int kLanes = 32;
using Mask = uint32_t;
constexpr Mask kAllLanes = 0xFFFFFFFFu;

struct Instr;
struct Warp;

// Tells what the scheduler does after an instruction.
enum class Next : uint8_t {
  go_on,          // to the next instruction
  go_on_without,  // the same, and a destination has got no value, see undefined.h
  // The lanes executed go to instr.target, those whose guard was false to the next instruction.
  branch,
  jump,   // each lane goes to warp.flow.jump_to[lane]
  exit,   // the lanes executed end
  wait,   // done, but these lanes may not go on before fragment.ready() says so
  retry,  // not done: wait as above, then execute it again
};
// The line of a report that an instruction counts to.
enum class Family : uint8_t {
  integer,
  floating,
  convert,
  move,
  control,
  ldst,
  atomic,
  warp,
  barrier,
  mbarrier,
  cp_async,
  bulk,
  ldmatrix,
  mma,
  wgmma,
  tcgen05,
  fence,
};
using Handler = Next (*)(Warp&, const Instr&, Mask);

// An instruction that only makes registers of registers, or moves them to and from memory. A source
// without a value is no fault there: the destination has none either. See state/undefined.h.
struct Carry {
  // The lanes whose destination has no value, from those in which each source has none. Null: the
  // instruction goes to memory and sees to it itself.
  Mask (*lanes)(Warp&, const Instr&, Mask, const Mask* without) = nullptr;
  std::vector<int32_t> from, to;  // registers of sources and destinations; -1: an immediate, a sink
  // The registers that it uses, as a guard or an address, and that must have a value; ended by -1.
  const int32_t* wants = nullptr;
};

// The predicate before an instruction, @p or @!p.
struct Guard {
  uint32_t slot = 0;  // 0: there is none
  int32_t reg = -1;   // its register
  bool negated = false;
};

// Questions about the registers of an instruction, asked when it is executed: see find_straight().
struct RegisterChecks {
  bool own = false;  // its handler looks for registers unwritten or under way itself
  bool asks = true;  // some register that it reads may be unwritten
  // Its writes are remembered, as some instruction asks whether they are written.
  bool records = true;
  bool straight = false;  // there is nothing to ask before it is executed
};

// A load, and an arrival in another block that may come before it, see find_overtaken().
struct Overtaking {
  // At an mbarrier of another block, with a release that ends at its own.
  bool arrives_elsewhere = false;
  bool overtaken = false;              // a load that such an arrival may overtake
  const int32_t* overtakes = nullptr;  // loads that it may overtake: indices, ended by -1
};

struct Instr {  // what every execution asks for comes first, in a line or two of the cache
  Handler run = nullptr;
  uint32_t d = 0, d2 = 0;             // destinations: offsets in the warp's registers, 0 for none
  uint32_t s[4] = {0, 0, 0, 0};       // sources: immediates and special registers live there too
  int64_t offset = 0;                 // of an address; or an immediate
  uint8_t variant = 0, variant2 = 0;  // what the family wants to remember
  uint16_t count = 1;                 // elements of a vector
  uint16_t bytes = 0;                 // of one element in memory
  Space space = Space::none;
  uint8_t address_bits = 64;  // of the base register in s[3], see access.h
  bool any_rank = false;      // .shared::cluster: may reach other blocks of the cluster
  // .aligned or .sync: all live lanes, or those of `members`, come together.
  bool converged = false;
  RegisterChecks checks;
  Family family = Family::integer;
  int32_t index = 0;  // in the code
  Guard guard;
  uint32_t members = 0;                               // slot of a membermask; 0: all live lanes
  int32_t target = 0;                                 // of a branch: index of an instruction
  const uint32_t* list = nullptr;                     // slots of long operand lists
  const int32_t *reads = nullptr, *writes = nullptr;  // register indices, ended by -1
  Overtaking overtaking;
  const Carry* carry = nullptr;  // null: all that it reads must have a value
  const void* extra = nullptr;   // what a family needs beyond this
  const Statement* statement = nullptr;
  const Function* function = nullptr;  // the statement's
  const Module* module = nullptr;
  // Kinds of allowed faults that were reported here: bits of FaultKind, atomic.
  mutable uint32_t told = 0;
};

// A function that is called where others are expanded: one that calls itself, or that is called
// through a pointer. Its registers are its own, and each call of it has a frame in local memory.
struct CalledFunction {
  const Function* function = nullptr;
  int32_t entry = 0;                             // its first instruction
  int32_t first_register = 0, end_register = 0;  // indices
  int64_t frame_bytes = 0;                       // of local memory
  std::vector<int64_t> params, returns;          // where they lie in the frame
  struct Address {  // a slot that holds an address in the frame of the newest call
    uint32_t slot = 0;
    int bits = 64;
    int64_t offset = 0;
  };
  std::vector<Address> addresses;
};

// A kernel ready to run: instructions, and the layout of a warp's register file.
struct Code {
  const Module* module = nullptr;
  const Function* function = nullptr;
  std::vector<Instr> instrs;
  // The kernel's first instruction, behind those of the functions.
  int32_t entry = 0;
  std::vector<CalledFunction> called;  // functions that have code of their own
  bool uses_heap = false;              // it calls malloc or free
  // All, by index: the kernel's, then those of the functions it calls.
  std::vector<Register> registers;
  std::vector<uint32_t> register_slots;  // register index -> offset
  size_t file_bytes = 0;                 // of a warp's register file
  std::vector<uint8_t> initial;          // its first contents: immediates, one copy per lane
  // A special register; or %shared and %param, addresses of `component` bytes in there.
  struct Special {
    std::string name;
    int component;
    uint32_t slot;
    int bits;
  };
  std::map<std::pair<uint64_t, int>, uint32_t> constants;  // value and bits -> slot
  std::vector<Special> specials;                           // filled in when a warp starts
  // By name, component and bits.
  std::map<std::tuple<std::string, int, int>, uint32_t> special_slots;
  int64_t shared_bytes = 0;                       // static: the module's and the functions'
  int64_t local_bytes = 0;                        // of a thread, frames of calls not counted
  std::map<std::string, int64_t> shared_symbols;  // shared addresses in the block of rank 0
  // Device addresses of .global and .const variables.
  std::map<std::string, uint64_t> global_symbols;
  std::vector<std::unique_ptr<uint32_t[]>> lists;
  std::vector<std::unique_ptr<int32_t[]>> register_lists;
  std::vector<std::shared_ptr<void>> extras;
};

}  // namespace gg::emu
