// SPDX-License-Identifier: MIT
//
// What the files of isa/ use to turn a Statement into an Instr. Decoding is a whitelist: every modifier must
// be asked for and every operand must have the size its type says, or the instruction is not supported and
// faults when executed.

#pragma once

#include <initializer_list>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/emu/state/grid.h"
#include "common/emu/state/lanes.h"

namespace gg::emu {

struct Unsupported {
  std::string why;
};

// A function's place in the code of a kernel. Calls are expanded where they stand, so a function called twice
// has two.
struct Frame {
  const Function* function = nullptr;
  int first_register = 0;  // index in code.registers of its register 0
  int64_t local_base = 0;  // where its .local variables begin in the thread's local memory
  std::map<std::string, int64_t>
      params;  // .param variables of calls, which live in local memory too: name -> address
};

class Decoder {
 public:
  Decoder(Code& code, const Frame& frame, const Statement& statement);

  const Statement& statement() const { return statement_; }
  Instr instr;  // what is being built

  // Modifiers, in any order; each may be taken once.
  bool take(const char* modifier);
  // The one of the list that is there, as its index; -1 if none.
  int take_one(std::initializer_list<const char*> modifiers);
  TypeInfo take_type();  // the first type left; Unsupported if none
  bool next_is_type() const;
  void done() const;  // Unsupported if a modifier is left
  int taken() const;  // how many modifiers were
  // Where a test wants them: each opcode with every modifier that decoding has asked for.
  static thread_local std::set<std::pair<std::string, std::string>>* asked;

  size_t operands() const { return statement_.operands.size(); }
  const Operand& operand(size_t index) const;

  // Slots of the register file. A register must have `bits` bits (0: a predicate); an immediate is stored as
  // a value of `type`. `wider`: the register may have more bits than the type, as ld, st and cvt allow.
  uint32_t source(size_t index, const TypeInfo& type, bool wider = false) {
    return source(operand(index), type, wider);
  }
  uint32_t source(const Operand& operand, const TypeInfo& type, bool wider = false);
  uint32_t destination(size_t index, const TypeInfo& type, bool wider = false) {
    return destination(operand(index), type, wider);
  }
  uint32_t destination(const Operand& operand, const TypeInfo& type,
                       bool wider = false);  // 0 for `_`: a slot nobody reads
  // The instruction makes its destinations of its sources and does nothing else: any source without a value
  // leaves them without one (Carry).
  void computes();
  // Where it depends on more: a source like source(), which may be without a value, and the destinations that
  // `lanes` then tells about; null for a load or a store.
  uint32_t carried(const Operand& operand, const TypeInfo& type, bool wider = false);
  void carries(const std::vector<const Operand*>& to, decltype(Carry::lanes) lanes);
  uint32_t predicate(const Operand& operand, bool* negated);
  uint32_t predicate_destination(const Operand& operand);
  int register_bits(const Operand& operand) const;

  // [reg + offset], [symbol + offset] or [offset]: the slot of a base of base_bits, and the bytes to add.
  struct Address {
    uint32_t slot;
    int base_bits;
    int64_t offset;
  };
  Address address(const Operand& operand, Space space);

  // The elements of a vector operand {a, b}; a single operand counts as a vector of one.
  static std::vector<const Operand*> elements(const Operand& operand);

  const uint32_t* list(const std::vector<uint32_t>& slots);
  template <class T>
  const T* extra(const T& value) {  // kept as long as the code: instr.extra
    auto kept = std::make_shared<T>(value);
    code_.extras.push_back(kept);
    instr.extra = kept.get();
    return kept.get();
  }
  uint32_t scratch(int bits);  // a slot of its own, zero at the start
  uint32_t constant(uint64_t bits, int width_bits);
  int64_t immediate(size_t index) const;  // Unsupported if the operand is none
  Code& code() { return code_; }
  const Frame& frame() const { return frame_; }
  int32_t label(const Operand& operand) const;  // what instr.target must be for a branch there
  void finish();                                // seals reads and writes; called by decode()

 private:
  uint32_t slot_of(int reg, const TypeInfo& type, bool wider) const;
  int32_t register_of(const Operand& operand) const;  // its index in the code; -1: it is none
  uint32_t special(const Operand& operand, int bits);
  uint32_t launch_value(const std::string& name, int component, int bits);

  Code& code_;
  const Frame& frame_;
  const Statement& statement_;
  std::vector<bool> taken_;
  std::vector<int32_t> reads_, writes_;
  std::shared_ptr<Carry> carry_;  // null: nothing is only handed on
};

// Decodes an address operand into s[3] (base), address_bits and offset: see addresses() in place.h.
void take_address(Decoder& decoder, const Operand& operand);

using Decode = void (*)(Decoder&);
struct Form {
  const char* opcode;
  Decode decode;
};
std::vector<std::string> known_opcodes();  // of all lists, decode.cpp
// One list per file of isa/. An opcode may stand in several lists, or twice in one (add: integer, float,
// half): they are tried in turn, each with a fresh Decoder, until one does not throw Unsupported. What is
// reported if none fits is the reason of the one that came closest.
std::vector<Form>
integer_forms();  // integer.cpp: arithmetic, logic, shifts, comparison, selection, moves, bit fields
std::vector<Form> floating_forms();  // floating.cpp: f32 and f64
std::vector<Form> half_forms();      // half.cpp: f16, bf16 and their pairs
std::vector<Form> convert_forms();   // cvt.cpp: cvt; cvta.cpp: cvta, isspacep
std::vector<Form> control_forms();   // control.cpp: branches, calls, ends
std::vector<Form> barrier_forms();   // barrier.cpp: bar, barrier, barrier.cluster
std::vector<Form> memory_forms();    // ldst.cpp: ld, st, prefetch
std::vector<Form> atomic_forms();    // atomic.cpp: atom, red
std::vector<Form> warp_forms();      // warp.cpp: shfl, vote, match, redux, elect, activemask
std::vector<Form> mma_forms();       // mma.cpp: mma.sync, movmatrix; ldmatrix.cpp, stmatrix.cpp
std::vector<Form> cp_async_forms();  // cp_async.cpp: cp.async and its groups
std::vector<Form> mbarrier_forms();  // mbarrier.cpp: mbarrier, cp.async.mbarrier.arrive, st.async, red.async
std::vector<Form> bulk_forms();   // bulk.cpp: cp.async.bulk, tensor forms too, tensormap, prefetch.tensormap
std::vector<Form> wgmma_forms();  // wgmma.cpp
std::vector<Form> tcgen05_forms();      // tcgen05.cpp: tcgen05, all but mma
std::vector<Form> tcgen05_mma_forms();  // tcgen05_mma.cpp
std::vector<Form> fence_forms();        // fence.cpp: membar, fence, nanosleep, createpolicy and the like
std::vector<Form> warpgroup_forms();    // warpgroup.cpp: setmaxnreg, griddepcontrol

}  // namespace gg::emu
