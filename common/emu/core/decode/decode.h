// SPDX-License-Identifier: MIT
//
// The files of isa/ use this to turn a Statement into an Instr. Decoding is a whitelist: every
// modifier must be asked for and every operand must have the size its type says, or the instruction
// is not supported and faults when executed.

#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/emu/core/state/grid.h"
#include "common/emu/core/state/lanes.h"

namespace gg::emu {

struct Unsupported {
  std::string why;  // empty: another form is meant
};

// A function's place in the code of a kernel. Calls are expanded where they stand, so a function
// called twice has two.
struct Frame {
  const Function* function = nullptr;
  int first_register = 0;  // index in code.registers of its register 0
  int64_t local_base = 0;  // where its .local variables begin in the thread's local memory
  // .param variables of calls, which live in local memory too: name -> address.
  std::map<std::string, int64_t> params;
  // In code.called, the function whose frame the addresses count from; -1: they are the kernel's.
  int called = -1;
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
  void done() const;  // Unsupported if a modifier is left
  int taken() const;  // how many modifiers were
  // Where a test wants them: each opcode with every modifier that decoding has asked for.
  static thread_local std::set<std::pair<std::string, std::string>>* asked;

  size_t operands() const { return statement_.operands.size(); }
  const Operand& operand(size_t index) const;

  // Slots of the register file. A register must have `bits` bits (0: a predicate); an immediate is
  // stored as a value of `type`. `wider`: the register may have more bits than the type, as ld, st
  // and cvt allow.
  uint32_t source(size_t index, const TypeInfo& type, bool wider = false) {
    return source(operand(index), type, wider);
  }
  uint32_t source(const Operand& operand, const TypeInfo& type, bool wider = false);
  uint32_t destination(size_t index, const TypeInfo& type, bool wider = false) {
    return destination(operand(index), type, wider);
  }
  // 0 for `_`: a slot that nobody reads.
  uint32_t destination(const Operand& operand, const TypeInfo& type, bool wider = false);
  // The instruction makes its destinations of its sources and does nothing else: any source without
  // a value leaves them without one (Carry).
  void computes();
  // Where it depends on more: a source like source(), which may be without a value, and the
  // destinations that `lanes` then tells about; null for a load or a store.
  uint32_t carried(const Operand& operand, const TypeInfo& type, bool wider = false);
  void carries(const std::vector<const Operand*>& to, decltype(Carry::lanes) lanes);
  uint32_t predicate(const Operand& operand, bool* negated);
  uint32_t predicate_destination(const Operand& operand);
  int register_bits(const Operand& operand) const;

  // [reg + offset], [symbol + offset] or [offset]: the slot of a base of base_bits, and the
  // bytes to add.
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
  // An address of the thread's local memory, `offset` bytes behind where the
  // function's frame begins.
  uint32_t local_address(int64_t offset, int bits);
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
// One opcode on a page of isa/. Decoding throws Unsupported where the statement is another form.
struct Form {
  const char* opcode;
  Decode decode;
  Family family;          // that its instructions count to; decoding may name another one
  bool computes = false;  // it makes registers of registers and does nothing else
};
// Forms of one family that make registers of registers and do nothing else.
std::vector<Form> computing(Family family,
                            std::initializer_list<std::pair<const char*, Decode>> opcodes_and_decoders);

// The forms that decoding knows, by opcode. An opcode may stand in several lists, or twice in one
// (add: integer, float, half): they are tried in turn, each with a fresh Decoder, until one does
// not throw Unsupported. What is reported if none fits is the reason of the one that came closest.
class FormTable {
 public:
  explicit FormTable(std::initializer_list<std::vector<Form>> lists);
  const std::vector<Form>& of(const std::string& opcode) const;  // empty: it is not known
  std::vector<std::string> opcodes() const;                      // in order of the alphabet

 private:
  std::map<std::string, std::vector<Form>> by_opcode_;
};

// A kernel's instructions, handlers chosen, by the forms of the table. An instruction that the
// table does not have faults when it is executed. `global_symbols`: device addresses of the
// module's .global and .const variables. Module and function must outlive the code. Throws
// std::bad_alloc where a warp's registers would be more than any kernel has.
std::unique_ptr<Code> decode(const Module& module, const Function& function, const FormTable& forms,
                             const std::map<std::string, uint64_t>& global_symbols = {});

}  // namespace gg::emu
