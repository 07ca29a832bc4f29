// SPDX-License-Identifier: MIT
//
// From a parsed kernel to instructions with handlers and slots.

#include "common/emu/core/decode/decode.h"

#include <algorithm>
#include <set>

#include "common/emu/core/decode/called.h"
#include "common/emu/core/decode/liveness.h"
#include "common/emu/core/decode/overtaken.h"
#include "common/emu/core/decode/slots.h"
#include "common/emu/core/state/left_out.h"

namespace gg::emu {
namespace {

constexpr int kCallDepth = 32;
// Limits on what calls may add to a kernel, in statements, registers and variables: two calls in
// each of 32 functions would make 2^32 of the last.
constexpr size_t kMostExpanded = size_t(1) << 18;
constexpr int64_t kMostLocalBytes = int64_t(1) << 25;

Next unsupported(Warp& warp, const Instr& in, Mask) {
  const std::string& why = *static_cast<const std::string*>(in.extra);
  raise_final(FaultKind::unsupported, warp, in, -1, why,
              is_left_out(why)
                  ? "the build is one for the chapters, which do without it"
                  : "the emulator does not know this form; common/emu/SUPPORTED.md lists what it knows");
}

// Returns how well a form's refusal says what is wrong. A form that minds a modifier or an operand
// says it best, before those that are for other types or want what is not there; of these, the one
// that took most of the modifiers.
int how_close(const Decoder& decoder, const std::string& why) {
  constexpr int kMoreThanModifiers = 1000;
  const bool meant = why.rfind("no ", 0) != 0 && why.rfind("type ", 0) != 0;
  return meant * kMoreThanModifiers + 2 * decoder.taken() + (why.rfind("modifier ", 0) == 0);
}

// The statements of one kernel, calls expanded, one after the other.
class Expansion {
 public:
  Expansion(Code& code, const FormTable& forms) : code_(code), forms_(forms) {}

  // All code: that of the functions which are called comes first. Lanes go on at the lowest place,
  // so that those which have called come back before the others leave.
  void kernel() {
    for (size_t i = 0; i < code_.called.size(); ++i) called_function(int(i));
    Frame frame{code_.function, int(code_.registers.size()), 0, {}};
    local_bytes_ = &code_.local_bytes;
    enter(frame);
    code_.entry = int32_t(code_.instrs.size());
    function(frame, 0);
  }

  // Registers with the same number will get the same place.
  void share(const std::vector<int>& places) { places_ = places; }

 private:
  void called_function(int index) {
    CalledFunction& f = code_.called[size_t(index)];
    local_bytes_ = &f.frame_bytes;
    f.entry = int32_t(code_.instrs.size());
    f.first_register = int32_t(code_.registers.size());
    Frame frame{f.function, f.first_register, 0, {}, index};
    const auto place = [&](const std::vector<Variable>& theirs, std::vector<int64_t>& at) {
      for (const Variable& v : theirs) {
        frame.params[v.name] = (f.frame_bytes + 15) / 16 * 16;
        at.push_back(frame.params[v.name]);
        f.frame_bytes = at.back() + v.bytes;
      }
    };
    place(f.function->params, f.params);
    place(f.function->returns, f.returns);
    expanded_ += 1 + f.function->body.size() + f.function->registers.size() + f.function->locals.size();
    enter(frame);
    if (expanded_ > kMostExpanded) {
      push(refused(frame, end_of_call(), "calls that make the kernel this long"), *f.function);
    } else {
      function(frame, 1);
    }
    push(one(frame, end_of_call()), *f.function);
    f.end_register = int32_t(code_.registers.size());
  }

  void function(const Frame& frame, int depth) {
    const Function& f = *frame.function;
    std::vector<int32_t> start(f.body.size() + 1);
    // Instructions of this function, not of those it calls.
    std::vector<std::pair<size_t, size_t>> own;
    for (size_t i = 0; i < f.body.size(); ++i) {
      start[i] = int32_t(code_.instrs.size());
      const Statement& s = f.body[i];
      const Function* callee = s.opcode == "call" ? called(s) : nullptr;
      if (callee && !callee->declared_only && !has_own_code(*callee)) {
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

  bool has_own_code(const Function& f) const {
    return std::any_of(code_.called.begin(), code_.called.end(),
                       [&](const CalledFunction& c) { return c.function == &f; });
  }
  const Function* called(const Statement& s) const {
    for (const Operand& o : s.operands) {
      if (o.kind == Operand::Kind::symbol) return code_.module->find(o.name);
    }
    return nullptr;
  }

  static bool takes_predicate(const Function& f) {
    const auto is_one = [](const Variable& v) { return v.space == Space::reg; };
    return std::any_of(f.params.begin(), f.params.end(), is_one) ||
           std::any_of(f.returns.begin(), f.returns.end(), is_one);
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
    Frame inner{&callee, int(code_.registers.size()), *local_bytes_, {}, frame.called};
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
    if (takes_predicate(callee)) why = "a predicate as a parameter";
    if (callee.entry) why = "calls of a kernel";  // whose body may be unread
    if (depth >= kCallDepth) why = "calls nested this deep";
    if (expanded_ > kMostExpanded) why = "calls that make the kernel this long";
    if (*local_bytes_ > kMostLocalBytes) why = "calls with this much local memory";
    if (why) return push(refused(frame, s, why), *frame.function);
    enter(inner);
    function(inner, depth + 1);
  }

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
    frame.local_base = (*local_bytes_ + 15) / 16 * 16;
    int64_t end = frame.local_base + f.local_bytes;
    // Names come again in other scopes, whose calls are over then: the place is the largest one's.
    std::map<std::string, int64_t> bytes;
    for (const Variable& v : f.locals) {
      if (v.space == Space::param) bytes[v.name] = std::max(bytes[v.name], v.bytes);
    }
    for (const auto& [name, most] : bytes) {
      end = (end + 15) / 16 * 16;
      frame.params[name] = end;
      end += most;
    }
    *local_bytes_ = end;
  }

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
    for (const Form& form : forms_.of(s.opcode)) {
      Decoder decoder(code_, frame, s);
      decoder.instr.family = form.family;
      try {
        form.decode(decoder);
        if (form.computes) decoder.computes();
        decoder.finish();
        return decoder.instr;
      } catch (const Unsupported& reason) {
        if (reason.why.empty()) continue;
        const int close = how_close(decoder, reason.why);
        if (close < closest) continue;
        closest = close;
        why = reason.why;
      }
    }
    return refused(frame, s, why);
  }

  Code& code_;
  const FormTable& forms_;
  std::vector<int> places_;
  std::map<int, uint32_t> slots_;  // of a number
  size_t expanded_ = 0;
  // Local memory of the kernel, or of a frame of the function that is being expanded.
  int64_t* local_bytes_ = nullptr;
};

void names_in(const Operand& o, std::set<std::string>* names) {
  if (!o.name.empty()) names->insert(o.name);
  for (const Operand& each : o.elements) names_in(each, names);
  if (o.second) names_in(*o.second, names);
}

// The names that the kernel and the functions that it calls use: the kernel is charged for those
// shared variables of the module and of functions, and for no others.
class Named {
 public:
  explicit Named(const Code& code) : module_(*code.module) {
    walk(*code.function);
    for (const CalledFunction& f : code.called) walk(*f.function);
  }
  bool has(const Variable& v) const { return names_.count(v.name) != 0; }
  bool calls(const Function& f) const { return walked_.count(&f) != 0; }

 private:
  void walk(const Function& f) {
    if (!walked_.insert(&f).second) return;
    std::set<std::string> names;
    for (const Statement& s : f.body) {
      for (const Operand& o : s.operands) names_in(o, &names);
    }
    names_.insert(names.begin(), names.end());
    for (const std::string& name : names) {
      if (const Function* callee = module_.find(name)) walk(*callee);
    }
  }

  const Module& module_;
  std::set<std::string> names_;
  std::set<const Function*> walked_;
};

// Shared memory: the module's variables, then the functions', then what the launch adds (.extern).
void place_shared(Code& code) {
  const Named named(code);
  int64_t end = 0;
  const auto place = [&](const std::vector<Variable>& variables) {
    for (const Variable& v : variables) {
      if (v.space != Space::shared || v.external || !named.has(v)) continue;
      end = (end + v.align - 1) / v.align * v.align;
      code.shared_symbols[v.name] = kSharedStart + end;
      end += v.bytes;
    }
  };
  place(code.module->variables);
  for (const auto& function : code.module->functions) {
    if (named.calls(*function)) place(function->locals);
  }
  const auto dynamic = [&](auto use) {
    for (const Variable& v : code.module->variables) {
      if (v.space == Space::shared && v.external && named.has(v)) use(v);
    }
  };
  dynamic([&](const Variable& v) { end = (end + v.align - 1) / v.align * v.align; });
  dynamic([&](const Variable& v) { code.shared_symbols[v.name] = kSharedStart + end; });
  code.shared_bytes = end;
}

std::unique_ptr<Code> expand(const Module& module, const Function& function, const FormTable& forms,
                             const std::map<std::string, uint64_t>& global_symbols,
                             const std::vector<int>& places) {
  auto code = std::make_unique<Code>();
  code->module = &module;
  code->function = &function;
  code->global_symbols = global_symbols;
  code->file_bytes = kLineBytes;  // slot 0 is nobody's: a guard of 0 means none
  code->initial.resize(kLineBytes);
  for (const Function* called : functions_to_call(module, function))
    code->called.emplace_back().function = called;
  place_shared(*code);
  Expansion expansion(*code, forms);
  expansion.share(places);
  expansion.kernel();
  return code;
}

}  // namespace

std::vector<Form> computing(Family family,
                            std::initializer_list<std::pair<const char*, Decode>> opcodes_and_decoders) {
  std::vector<Form> forms;
  for (const auto& [opcode, decode] : opcodes_and_decoders) forms.push_back({opcode, decode, family, true});
  return forms;
}

FormTable::FormTable(std::initializer_list<std::vector<Form>> lists) {
  for (const std::vector<Form>& list : lists) {
    for (const Form& form : list) by_opcode_[form.opcode].push_back(form);
  }
}

const std::vector<Form>& FormTable::of(const std::string& opcode) const {
  static const auto& none = *new const std::vector<Form>;
  const auto found = by_opcode_.find(opcode);
  return found == by_opcode_.end() ? none : found->second;
}

std::vector<std::string> FormTable::opcodes() const {
  std::vector<std::string> all;
  for (const auto& [opcode, forms] : by_opcode_) all.push_back(opcode);
  return all;
}

// Decoded twice: first with a place for every register, to learn which are in use together; then
// with the places shared.
std::unique_ptr<Code> decode(const Module& module, const Function& function, const FormTable& forms,
                             const std::map<std::string, uint64_t>& global_symbols) {
  const std::unique_ptr<Code> first = expand(module, function, forms, global_symbols, {});
  std::unique_ptr<Code> code = expand(module, function, forms, global_symbols, share_registers(*first));
  find_straight(*code);
  find_overtaken(*code);
  return code;
}

}  // namespace gg::emu
