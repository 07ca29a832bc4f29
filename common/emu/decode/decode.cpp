// SPDX-License-Identifier: MIT
//
// From a parsed kernel to instructions with handlers and slots.

#include "common/emu/decode/decode.h"

#include <algorithm>
#include <new>
#include <unordered_map>

#include "common/emu/decode/liveness.h"

namespace gg::emu {
namespace {

constexpr uint32_t kLineBytes = 64;
constexpr size_t kMostFileBytes = size_t(1) << 30;
constexpr int kCallDepth = 32;
// What calls may add to a kernel, in statements, registers and variables: two calls in each of 32 functions
// would make 2^32 of the last.
constexpr size_t kMostExpanded = size_t(1) << 18;
constexpr int64_t kMostLocalBytes = int64_t(1) << 25;

uint32_t append_slot(Code& code, int bits) {
  const size_t bytes = size_t(std::max(bits, 8)) / 8 * kLanes;
  const uint32_t slot = uint32_t((code.file_bytes + kLineBytes - 1) / kLineBytes * kLineBytes);
  code.file_bytes = slot + bytes;
  if (code.file_bytes > kMostFileBytes) throw std::bad_alloc();
  code.initial.resize(code.file_bytes);
  return slot;
}

int slot_bits(const TypeInfo& type) { return type.kind == 'p' ? 8 : type.bits; }

// Never destroyed, like all such tables: a program may end while a thread of it still launches.
const std::unordered_map<std::string, std::vector<Decode>>& forms() {
  static const auto& table = *[] {
    auto* all = new std::unordered_map<std::string, std::vector<Decode>>;
    for (const auto& family :
         {integer_forms(), floating_forms(), half_forms(), convert_forms(), control_forms(), barrier_forms(),
          memory_forms(), atomic_forms(), warp_forms(), mma_forms(), cp_async_forms(), mbarrier_forms(),
          bulk_forms(), wgmma_forms(), fence_forms()}) {
      for (const Form& form : family) (*all)[form.opcode].push_back(form.decode);
    }
    return all;
  }();
  return table;
}

Next unsupported(Warp& warp, const Instr& in, Mask) {
  raise_final(FaultKind::unsupported, warp, in, -1, *static_cast<const std::string*>(in.extra),
              "the emulator does not know this form; common/emu/README.md lists what it knows");
}

// Of several forms, one that minds a modifier or an operand says best what is wrong, before those that are
// for other types or want what is not there; of these, the one that took most of the modifiers.
int how_close(const Decoder& decoder, const std::string& why) {
  constexpr int kMoreThanModifiers = 1000;
  const bool meant = why.rfind("no ", 0) != 0 && why.rfind("type ", 0) != 0;
  return meant * kMoreThanModifiers + 2 * decoder.taken() + (why.rfind("modifier ", 0) == 0);
}

// The statements of one kernel, calls expanded, one after the other.
class Expansion {
 public:
  Expansion(Code& code) : code_(code) {}

  void function(const Frame& frame, int depth) {
    const Function& f = *frame.function;
    std::vector<int32_t> start(f.body.size() + 1);
    std::vector<std::pair<size_t, size_t>> own;  // instructions of this function, not of those it calls
    for (size_t i = 0; i < f.body.size(); ++i) {
      start[i] = int32_t(code_.instrs.size());
      const Statement& s = f.body[i];
      const Function* callee = s.opcode == "call" ? called(s) : nullptr;
      if (callee && !callee->declared_only) {
        if (s.guard >= 0) skip_if_not(frame, s);
        call(frame, s, *callee, depth);
        if (s.guard >= 0) code_.instrs[size_t(start[i])].target = int32_t(code_.instrs.size());
      } else {
        own.push_back({code_.instrs.size(), i});
        push(one(frame, s), f);
      }
    }
    start[f.body.size()] = int32_t(code_.instrs.size());
    for (const auto& [at, statement] : own) {
      Instr& in = code_.instrs[at];
      const std::string& opcode = f.body[statement].opcode;
      if (opcode == "bra") in.target = start[size_t(in.target)];
      if (opcode == "brx" && in.list) {
        for (int j = 0; j < in.count; ++j) const_cast<uint32_t*>(in.list)[j] = uint32_t(start[in.list[j]]);
      }
      // A function that was called ends behind its last statement.
      if (opcode == "ret" && depth > 0) in.target = start[f.body.size()];
    }
    if (depth == 0) end(f);
  }

 private:
  const Function* called(const Statement& s) const {
    for (const Operand& o : s.operands) {
      if (o.kind == Operand::Kind::symbol) return code_.module->find(o.name);
    }
    return nullptr;
  }

  void push(Instr in, const Function& f) {
    in.function = &f;
    in.module = code_.module;
    in.index = int32_t(code_.instrs.size());
    code_.instrs.push_back(in);
  }

  // Falling off the end of a kernel ends its threads.
  void end(const Function& f) {
    static const auto& statement = *[] {
      auto* s = new Statement;
      s->opcode = "exit";
      s->text = "exit;  // the end of the kernel";
      return s;
    }();
    push(one({&f, 0, 0, {}}, statement), f);
  }

  void skip_if_not(const Frame& frame, const Statement& s) {
    auto branch = std::make_shared<Statement>(s);
    branch->opcode = "bra";
    branch->modifiers.clear();
    branch->guard_negated = !s.guard_negated;
    Operand label;
    label.kind = Operand::Kind::label;
    label.offset = 0;
    branch->operands = {label};
    code_.extras.push_back(branch);
    push(one(frame, *branch), *frame.function);
  }

  // Arguments and results are bytes of local memory that caller and callee name differently.
  void call(const Frame& frame, const Statement& s, const Function& callee, int depth) {
    Frame inner{&callee, int(code_.registers.size()), code_.local_bytes, {}};
    const auto bind = [&](const std::vector<Variable>& theirs, const Operand& ours) {
      for (size_t i = 0; i < theirs.size() && i < ours.elements.size(); ++i) {
        const auto at = frame.params.find(ours.elements[i].name);
        if (at != frame.params.end() && theirs[i].space == Space::param)
          inner.params[theirs[i].name] = at->second;
      }
    };
    size_t next = 0;
    if (s.operands[0].kind == Operand::Kind::vector) bind(callee.returns, s.operands[next++]);
    ++next;  // the name
    if (next < s.operands.size()) bind(callee.params, s.operands[next]);
    expanded_ += 1 + callee.body.size() + callee.registers.size() + callee.locals.size();
    const bool bound = inner.params.size() == callee.params.size() + callee.returns.size();
    const char* why = nullptr;
    if (!bound) why = "these call parameters";
    if (callee.entry) why = "calls of a kernel";  // whose body may be unread
    if (depth >= kCallDepth) why = "calls nested this deep";
    if (std::find(active_.begin(), active_.end(), &callee) != active_.end())
      why = "a function that calls itself";
    if (expanded_ > kMostExpanded) why = "calls that make the kernel this long";
    if (code_.local_bytes > kMostLocalBytes) why = "calls with this much local memory";
    if (why) return push(refused(frame, s, why), *frame.function);
    enter(inner);
    active_.push_back(&callee);
    function(inner, depth + 1);
    active_.pop_back();
  }

 public:
  // Registers with the same number will get the same place.
  void share(const std::vector<int>& places) { places_ = places; }

  // Room for a function's registers, .local variables and the .param variables of its calls.
  void enter(Frame& frame) {
    const Function& f = *frame.function;
    for (const Register& r : f.registers) {
      const size_t index = code_.registers.size();
      code_.registers.push_back(r);
      const auto slot = index < places_.size() ? slots_.insert({places_[index], 0}).first : slots_.end();
      if (slot == slots_.end()) {
        code_.register_slots.push_back(append_slot(code_, slot_bits(r.type)));
      } else {
        if (slot->second == 0) slot->second = append_slot(code_, slot_bits(r.type));
        code_.register_slots.push_back(slot->second);
      }
    }
    frame.local_base = (code_.local_bytes + 15) / 16 * 16;
    int64_t end = frame.local_base + f.local_bytes;
    for (const Variable& v : f.locals) {
      if (v.space != Space::param) continue;
      end = (end + 15) / 16 * 16;
      frame.params[v.name] = end;  // names come again in other scopes, whose calls are over by then
      end += v.bytes;
    }
    code_.local_bytes = end;
  }

 private:
  Instr refused(const Frame& frame, const Statement& s, const std::string& why) {
    auto reason = std::make_shared<std::string>("not supported: " + why);
    Decoder plain(code_, frame, s);
    plain.finish();
    plain.instr.run = unsupported;
    plain.instr.extra = reason.get();
    code_.extras.push_back(reason);
    return plain.instr;
  }

  Instr one(const Frame& frame, const Statement& s) {
    std::string why = "instruction " + s.opcode;
    int closest = -1;
    const auto families = forms().find(s.opcode);
    if (families != forms().end()) {
      for (const Decode decode : families->second) {
        Decoder decoder(code_, frame, s);
        try {
          decode(decoder);
          decoder.finish();
          return decoder.instr;
        } catch (const Unsupported& reason) {
          const int close = how_close(decoder, reason.why);
          if (close < closest) continue;
          closest = close;
          why = reason.why;
        }
      }
    }
    return refused(frame, s, why);
  }

  Code& code_;
  std::vector<int> places_;
  std::map<int, uint32_t> slots_;  // of a number
  size_t expanded_ = 0;
  std::vector<const Function*> active_;  // that are being expanded
};

// Shared memory: the module's variables, then the functions', then what the launch adds (.extern).
void place_shared(Code& code) {
  int64_t end = 0;
  const auto place = [&](const std::vector<Variable>& variables) {
    for (const Variable& v : variables) {
      if (v.space != Space::shared || v.external) continue;
      end = (end + v.align - 1) / v.align * v.align;
      code.shared_symbols[v.name] = kSharedStart + end;
      end += v.bytes;
    }
  };
  place(code.module->variables);
  for (const auto& function : code.module->functions) {
    if (function.get() == code.function || !function->entry) place(function->locals);
  }
  const auto dynamic = [&](auto use) {
    for (const Variable& v : code.module->variables) {
      if (v.space == Space::shared && v.external) use(v);
    }
  };
  dynamic([&](const Variable& v) { end = (end + v.align - 1) / v.align * v.align; });
  dynamic([&](const Variable& v) { code.shared_symbols[v.name] = kSharedStart + end; });
  code.shared_bytes = end;
}

}  // namespace

Decoder::Decoder(Code& code, const Frame& frame, const Statement& statement)
    : code_(code), frame_(frame), statement_(statement), taken_(statement.modifiers.size()) {
  instr.statement = &statement;
}

bool Decoder::take(const char* modifier) {
  for (size_t i = 0; i < taken_.size(); ++i) {
    if (!taken_[i] && statement_.modifiers[i] == modifier) {
      taken_[i] = true;
      return true;
    }
  }
  return false;
}

int Decoder::take_one(std::initializer_list<const char*> modifiers) {
  int index = 0;
  for (const char* modifier : modifiers) {
    if (take(modifier)) return index;
    ++index;
  }
  return -1;
}

bool Decoder::next_is_type() const {
  for (size_t i = 0; i < taken_.size(); ++i) {
    if (!taken_[i]) return is_type(statement_.modifiers[i]);
  }
  return false;
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
          return constant(uint64_t(frame_.local_base + v.offset + o.offset), type.bits);
        }
      }
      const auto parameter = frame_.params.find(o.name);  // of a function that is called: in local memory
      if (parameter != frame_.params.end())
        return constant(uint64_t(parameter->second + o.offset), type.bits);
      const auto global = code_.global_symbols.find(o.name);
      if (global != code_.global_symbols.end())
        return constant(global->second + uint64_t(o.offset), type.bits);
      for (const Variable& v :
           frame_.function->params) {  // of a kernel: its address is filled in at the launch
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
  const uint32_t slot = slot_of(o.reg, type, wider);
  writes_.push_back(frame_.first_register + o.reg);
  return slot;
}

uint32_t Decoder::predicate(const Operand& o, bool* negated) {
  *negated = o.negated;
  return source(o, type_info("pred"));
}
uint32_t Decoder::predicate_destination(const Operand& o) { return destination(o, type_info("pred")); }

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
    instr.guard = code_.register_slots[size_t(guard)];
    instr.guard_negated = statement_.guard_negated;
    instr.guard_register = guard;
  }
  instr.reads = seal(reads_);
  instr.writes = seal(writes_);
}

static std::unique_ptr<Code> expand(const Module& module, const Function& function,
                                    const std::map<std::string, uint64_t>& global_symbols,
                                    const std::vector<int>& places) {
  auto code = std::make_unique<Code>();
  code->module = &module;
  code->function = &function;
  code->global_symbols = global_symbols;
  code->file_bytes = kLineBytes;  // slot 0 is nobody's: a guard of 0 means none
  code->initial.resize(kLineBytes);
  place_shared(*code);
  Expansion expansion(*code);
  Frame frame{&function, 0, 0, {}};
  expansion.share(places);
  expansion.enter(frame);
  expansion.function(frame, 0);
  return code;
}

// Decoded twice: first with a place for every register, to learn which are in use together; then with the
// places shared.
std::unique_ptr<Code> decode(const Module& module, const Function& function,
                             const std::map<std::string, uint64_t>& global_symbols) {
  const std::unique_ptr<Code> first = expand(module, function, global_symbols, {});
  std::unique_ptr<Code> code = expand(module, function, global_symbols, share_registers(*first));
  find_straight(*code);
  return code;
}

}  // namespace gg::emu
