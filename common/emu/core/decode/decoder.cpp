// SPDX-License-Identifier: MIT
//
// One statement's modifiers and operands, as the files of isa/ ask for them.

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "common/emu/core/decode/decode.h"
#include "common/emu/core/decode/slots.h"
#include "common/emu/core/state/module.h"
#include "common/emu/core/state/undefined.h"

namespace gg::emu {

uint32_t append_slot(Code& code, int bits) {
  constexpr size_t kMostFileBytes = size_t(1) << 30;
  const size_t bytes = size_t(std::max(bits, 8)) / 8 * kLanes;
  const uint32_t slot = uint32_t((code.file_bytes + kLineBytes - 1) / kLineBytes * kLineBytes);
  code.file_bytes = slot + bytes;
  if (code.file_bytes > kMostFileBytes) throw std::bad_alloc();
  code.initial.resize(code.file_bytes);
  return slot;
}

int slot_bits(const TypeInfo& type) { return type.kind == 'p' ? 8 : type.bits; }
Decoder::Decoder(Code& code, const Frame& frame, const Statement& statement)
    : code_(code), frame_(frame), statement_(statement), taken_(statement.modifiers.size()) {
  instr.statement = &statement;
}

thread_local std::set<std::pair<std::string, std::string>>* Decoder::asked = nullptr;

bool Decoder::take(const char* modifier) {
  if (asked) asked->insert({statement_.opcode, modifier});
  for (size_t i = 0; i < taken_.size(); ++i) {
    if (!taken_[i] && statement_.modifiers[i] == modifier) {
      taken_[i] = true;
      return true;
    }
  }
  return false;
}

int Decoder::take_one(std::initializer_list<const char*> modifiers) {
  for (const char* modifier : modifiers) {
    if (asked) asked->insert({statement_.opcode, modifier});
  }
  int index = 0;
  for (const char* modifier : modifiers) {
    if (take(modifier)) return index;
    ++index;
  }
  return -1;
}

TypeInfo Decoder::take_type() {
  for (size_t i = 0; i < taken_.size(); ++i) {
    if (!taken_[i] && is_type(statement_.modifiers[i])) {
      taken_[i] = true;
      return type_info(statement_.modifiers[i]);
    }
  }
  done();  // what is left is no type we know
  throw Unsupported{"a type is missing"};
}

void Decoder::done() const {
  for (size_t i = 0; i < taken_.size(); ++i) {
    if (!taken_[i]) throw Unsupported{"modifier ." + statement_.modifiers[i]};
  }
}

int Decoder::taken() const { return int(std::count(taken_.begin(), taken_.end(), true)); }

const Operand& Decoder::operand(size_t index) const {
  if (index >= statement_.operands.size()) throw Unsupported{"an operand is missing"};
  return statement_.operands[index];
}

std::vector<const Operand*> Decoder::elements(const Operand& operand) {
  std::vector<const Operand*> all;
  if (operand.kind != Operand::Kind::vector) {
    all.push_back(&operand);
  } else {
    for (const Operand& each : operand.elements) all.push_back(&each);
  }
  return all;
}

int Decoder::register_bits(const Operand& operand) const {
  return operand.kind == Operand::Kind::reg ? frame_.function->registers[size_t(operand.reg)].type.bits : 0;
}

uint32_t Decoder::slot_of(int reg, const TypeInfo& type, bool wider) const {
  const Register& r = frame_.function->registers[size_t(reg)];
  const bool fits = (r.type.kind == 'p') == (type.kind == 'p') &&
                    (wider ? r.type.bits >= type.bits : r.type.bits == type.bits);
  if (!fits) throw Unsupported{"register " + r.name + " has another size than ." + type.name};
  return code_.register_slots[size_t(frame_.first_register + reg)];
}

uint32_t Decoder::scratch(int bits) { return append_slot(code_, bits); }

uint32_t Decoder::constant(uint64_t bits, int width) {
  if (width < 64) bits &= (1ull << width) - 1;
  const auto [kept, is_new] = code_.constants.insert({{bits, width}, 0});
  if (!is_new) return kept->second;
  const uint32_t slot = kept->second = append_slot(code_, width);
  for (int lane = 0; lane < kLanes; ++lane) {
    std::memcpy(code_.initial.data() + slot + size_t(lane) * size_t(width) / 8, &bits,
                size_t(std::min(width, 64)) / 8);
  }
  return slot;
}

uint32_t Decoder::local_address(int64_t offset, int bits) {
  if (frame_.called < 0) return constant(uint64_t(offset), bits);
  auto& addresses = code_.called[size_t(frame_.called)].addresses;
  for (const CalledFunction::Address& a : addresses) {
    if (a.offset == offset && a.bits == bits) return a.slot;
  }
  addresses.push_back({append_slot(code_, bits), bits, offset});
  return addresses.back().slot;
}

uint32_t Decoder::special(const Operand& operand, int bits) {
  static const char* const known[] = {"%tid",
                                      "%ntid",
                                      "%ctaid",
                                      "%nctaid",
                                      "%laneid",
                                      "%warpid",
                                      "%nwarpid",
                                      "%smid",
                                      "%nsmid",
                                      "%gridid",
                                      "%lanemask_eq",
                                      "%lanemask_le",
                                      "%lanemask_lt",
                                      "%lanemask_ge",
                                      "%lanemask_gt",
                                      "%clusterid",
                                      "%nclusterid",
                                      "%cluster_ctaid",
                                      "%cluster_nctaid",
                                      "%cluster_ctarank",
                                      "%cluster_nctarank",
                                      "%dynamic_smem_size",
                                      "%total_smem_size",
                                      "%is_explicit_cluster",
                                      "%reserved_smem_offset_1",
                                      "%envreg1",
                                      "%envreg2",
                                      "%clock",
                                      "%clock_hi",
                                      "%clock64",
                                      "%globaltimer",
                                      "%globaltimer_lo",
                                      "%globaltimer_hi",
                                      "WARP_SZ"};
  if (std::find(std::begin(known), std::end(known), operand.name) == std::end(known)) {
    throw Unsupported{"special register " + operand.name};
  }
  return launch_value(operand.name, operand.component, bits);
}

uint32_t Decoder::launch_value(const std::string& name, int component, int bits) {
  const auto [kept, is_new] = code_.special_slots.insert({{name, component, bits}, 0});
  if (!is_new) return kept->second;
  kept->second = append_slot(code_, bits);
  code_.specials.push_back({name, component, kept->second, bits});
  return kept->second;
}

uint32_t Decoder::source(const Operand& o, const TypeInfo& type, bool wider) {
  switch (o.kind) {
    case Operand::Kind::reg: {
      if (!o.selector.empty()) throw Unsupported{"a register with ." + o.selector};
      const uint32_t slot = slot_of(o.reg, type, wider);
      reads_.push_back(frame_.first_register + o.reg);
      return slot;
    }
    case Operand::Kind::immediate: {
      if (type.kind == 'p') {
        if (o.is_float) throw Unsupported{"this immediate predicate"};
        return constant(o.bits != 0, 8);  // as in C: "Predicate Constants"
      }
      if (!o.is_float && type.kind == 'f')
        throw Unsupported{"a whole number where ." + type.name + " is wanted"};
      if (!o.is_float) return constant(o.bits, type.bits);
      if (type.bits == 64) return constant(o.bits, 64);
      if (type.bits != 32)
        throw Unsupported{"a floating-point immediate of " + std::to_string(type.bits) + " bits"};
      if (o.offset) return constant(uint32_t(o.offset), 32);
      double wide;
      std::memcpy(&wide, &o.bits, 8);
      const float narrow = float(wide);
      uint32_t bits;
      std::memcpy(&bits, &narrow, 4);
      return constant(bits, 32);
    }
    case Operand::Kind::special:
      return special(o, type.bits);
    case Operand::Kind::symbol: {
      if (o.name == "WARP_SZ") return constant(kLanes, type.bits);
      const auto shared = code_.shared_symbols.find(o.name);
      if (shared != code_.shared_symbols.end())
        return launch_value("%shared", int(shared->second + o.offset), type.bits);
      for (const Variable& v : frame_.function->locals) {
        if (v.name == o.name && v.space == Space::local) {
          return local_address(frame_.local_base + v.offset + o.offset, type.bits);
        }
      }
      // A parameter of a function that is called is in local memory.
      const auto parameter = frame_.params.find(o.name);
      if (parameter != frame_.params.end()) return local_address(parameter->second + o.offset, type.bits);
      const auto global = code_.global_symbols.find(o.name);
      if (global != code_.global_symbols.end())
        return constant(global->second + uint64_t(o.offset), type.bits);
      if (const uint64_t function = address_of(*code_.module, o.name))
        return constant(function + uint64_t(o.offset), type.bits);
      // Parameters of a kernel: the address is filled in at the launch.
      for (const Variable& v : frame_.function->params) {
        if (v.name == o.name && frame_.function->entry && type.bits >= 32) {
          return launch_value("%param", int(v.offset + o.offset), type.bits);
        }
      }
      throw Unsupported{"the address of " + o.name};
    }
    default:
      throw Unsupported{"an operand of this kind"};
  }
}

uint32_t Decoder::destination(const Operand& o, const TypeInfo& type, bool wider) {
  if (o.kind == Operand::Kind::sink) return launch_value("_", 0, std::max(8, slot_bits(type)));
  if (o.kind != Operand::Kind::reg) throw Unsupported{"a destination that is no register"};
  if (!o.selector.empty()) throw Unsupported{"a register with ." + o.selector};
  const uint32_t slot = slot_of(o.reg, type, wider);
  writes_.push_back(frame_.first_register + o.reg);
  return slot;
}

uint32_t Decoder::predicate(const Operand& o, bool* negated) {
  *negated = o.negated;
  return source(o, type_info("pred"));
}
uint32_t Decoder::predicate_destination(const Operand& o) { return destination(o, type_info("pred")); }

int32_t Decoder::register_of(const Operand& o) const {
  return o.kind == Operand::Kind::reg ? frame_.first_register + o.reg : -1;
}

uint32_t Decoder::carried(const Operand& o, const TypeInfo& type, bool wider) {
  if (!carry_) carry_ = std::make_shared<Carry>();
  const size_t read = reads_.size();
  const uint32_t slot = source(o, type, wider);
  reads_.resize(read);
  carry_->from.push_back(register_of(o));
  return slot;
}

void Decoder::computes() {
  if (carry_) return;
  carry_ = std::make_shared<Carry>();
  carry_->from = std::exchange(reads_, {});
  carry_->to = writes_;
  carry_->lanes = without_some_value;
}

void Decoder::carries(const std::vector<const Operand*>& to, decltype(Carry::lanes) lanes) {
  if (!carry_) carry_ = std::make_shared<Carry>();
  for (const Operand* each : to) carry_->to.push_back(register_of(*each));
  carry_->lanes = lanes;
}

Decoder::Address Decoder::address(const Operand& o, Space space) {
  if (o.kind != Operand::Kind::address) throw Unsupported{"an operand that is no address"};
  if (o.reg >= 0) {
    const TypeInfo type = frame_.function->registers[size_t(o.reg)].type;
    if (type.bits != 32 && type.bits != 64) throw Unsupported{"an address register of this size"};
    reads_.push_back(frame_.first_register + o.reg);
    return {code_.register_slots[size_t(frame_.first_register + o.reg)], type.bits, o.offset};
  }
  if (o.name.empty()) return {constant(0, 64), 64, o.offset};
  Operand symbol = o;
  symbol.kind = Operand::Kind::symbol;
  symbol.offset = 0;
  const bool shared = code_.shared_symbols.count(o.name) != 0;
  if (shared != (space == Space::shared)) throw Unsupported{"the address of " + o.name + " in this space"};
  return {source(symbol, type_info("u64")), 64, o.offset};
}

int32_t Decoder::label(const Operand& o) const {
  if (o.kind != Operand::Kind::label) throw Unsupported{"a branch to no label"};
  return int32_t(o.offset);
}

const uint32_t* Decoder::list(const std::vector<uint32_t>& slots) {
  code_.lists.push_back(std::make_unique<uint32_t[]>(slots.size()));
  std::copy(slots.begin(), slots.end(), code_.lists.back().get());
  return code_.lists.back().get();
}

int64_t Decoder::immediate(size_t index) const {
  const Operand& o = operand(index);
  if (o.kind != Operand::Kind::immediate || o.is_float)
    throw Unsupported{"an operand that must be a whole number"};
  return int64_t(o.bits);
}

void Decoder::finish() {
  const auto seal = [&](std::vector<int32_t>& registers) {
    std::sort(registers.begin(), registers.end());
    registers.erase(std::unique(registers.begin(), registers.end()), registers.end());
    registers.push_back(-1);
    code_.register_lists.push_back(std::make_unique<int32_t[]>(registers.size()));
    std::copy(registers.begin(), registers.end(), code_.register_lists.back().get());
    return code_.register_lists.back().get();
  };
  if (statement_.guard >= 0) {
    const int guard = frame_.first_register + statement_.guard;
    reads_.push_back(guard);
    instr.guard.slot = code_.register_slots[size_t(guard)];
    instr.guard.negated = statement_.guard_negated;
    instr.guard.reg = guard;
  }
  if (carry_) {
    std::vector<int32_t> wanted = reads_;
    carry_->wants = seal(wanted);
    for (const int32_t r : carry_->from) {
      if (r >= 0) reads_.push_back(r);
    }
    code_.extras.push_back(carry_);
    instr.carry = carry_.get();
  }
  instr.reads = seal(reads_);
  instr.writes = seal(writes_);
}
void take_address(Decoder& d, const Operand& operand) {
  const Decoder::Address a = d.address(operand, d.instr.space);
  d.instr.s[3] = a.slot;
  d.instr.address_bits = uint8_t(a.base_bits);
  d.instr.offset = a.offset;
}

}  // namespace gg::emu
