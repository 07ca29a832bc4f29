// SPDX-License-Identifier: MIT
//
// Calls: of functions that have code of their own, by name and through pointers, and of what the
// runtime gives, vprintf, __assertfail, malloc and free. PTX ISA: "Control Flow Instructions: call,
// ret", "Control Flow Directives: .callprototype, .calltargets". CUDA C++ Programming Guide,
// "Formatted Output", "Dynamic Global Memory Allocation and Operations". All other functions are
// expanded where they are called (decode.cpp).

#include <algorithm>
#include <cstdio>

#include "common/emu/core/decode/called.h"
#include "common/emu/core/isa/forms.h"
#include "common/emu/core/state/access.h"
#include "common/emu/core/state/module.h"
#include "common/emu/core/state/names.h"
#include "common/emu/core/state/progress.h"
#include "common/emu/core/state/unwritten.h"
#include "common/emu/core/units/call_stack.h"

namespace gg::emu {
namespace {

// ---- functions with code of their own ----

struct CallForm {
  int function = -1;  // in Code::called; -1: the pointer says
  const Prototype* prototype = nullptr;
  std::vector<int64_t> arguments, results;  // in the caller's frame
};

std::string count_text(size_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

bool fits(const CallForm& form, const Function& f) {
  return may_reach(*form.prototype, f) && form.arguments.size() == f.params.size() &&
         form.results.size() == f.returns.size();
}

int target_of(Warp& w, const Instr& in, int lane, uint64_t address) {
  const CallForm& form = *static_cast<const CallForm*>(in.extra);
  const Code& code = *w.block->grid->launch.code;
  const Function* found = function_at(*code.module, address);
  if (!found) {
    raise_final(
        FaultKind::bounds, w, in, lane, "a call of address " + hex(address) + ", where no function is",
        address == 0 ? "a pointer to a function that was not set, or an object without its table of "
                       "virtual functions"
                     : "a pointer to a function of the host, of another module, or to data: a table of "
                       "functions is filled in a kernel, or copied from __device__ variables");
  }
  const auto called = std::find_if(code.called.begin(), code.called.end(),
                                   [&](const CalledFunction& f) { return f.function->name == found->name; });
  if (called != code.called.end() && fits(form, *called->function)) return int(called - code.called.begin());
  const std::string name = demangled(found->name);
  if (!form.prototype->targets.empty() && !may_reach(*form.prototype, *found)) {
    raise_final(FaultKind::bounds, w, in, lane, "a call of " + name + ", which .calltargets does not list",
                "the list before the call names every function that the pointer may be");
  }
  raise_final(FaultKind::bounds, w, in, lane,
              "a call of " + name + ", which has " + count_text(found->params.size(), "parameter") + " and " +
                  count_text(found->returns.size(), "result") + ", as a function of " +
                  count_text(form.arguments.size(), "parameter") + " and " +
                  count_text(form.results.size(), "result"),
              "a pointer to a function of another type: parameters and results must have the same sizes");
}

Next call_function(Warp& w, const Instr& in, Mask m) {
  const CallForm& form = *static_cast<const CallForm*>(in.extra);
  for (Lanes l(m); l; ++l) {
    const int function =
        form.function >= 0 ? form.function : target_of(w, in, *l, w.at<uint64_t>(in.s[1])[*l]);
    const int64_t frame = w.at<int64_t>(in.s[0])[*l];
    std::vector<int64_t> arguments = form.arguments, results = form.results;
    for (std::vector<int64_t>* list : {&arguments, &results}) {
      for (int64_t& address : *list) address += frame;
    }
    w.flow.jump_to[*l] = enter_call(w, in, *l, function, arguments, results);
  }
  return Next::jump;
}

Next return_to_caller(Warp& w, const Instr&, Mask m) {
  for (Lanes l(m); l; ++l) w.flow.jump_to[*l] = leave_call(w, *l);
  return Next::jump;
}

// ---- calls of the runtime ----

uint64_t frame_of(Warp& w, const Instr& in, int lane) { return w.at<uint64_t>(in.s[0])[lane]; }

std::string text_at(Warp& w, const Instr& in, int lane, uint64_t address) {
  std::string text;
  while (address != 0) {
    const Place place = locate(w, in, lane, Space::generic, address, 1, 1);
    check_global_read(w, in, lane, place.buffer, address++, 1);
    const char c = char(*place.bytes);
    if (c == 0) break;
    text += c;
  }
  return text;
}

template <class T>
T value_at(Warp& w, const Instr& in, int lane, Space space, uint64_t address) {
  T value;
  std::memcpy(&value, locate(w, in, lane, space, address, sizeof value, 1).bytes, sizeof value);
  return value;
}

// in.list: where the result goes, ~0 for nowhere, then where the parameters are, in
// the caller's frame.
template <class T>
T parameter(Warp& w, const Instr& in, int lane, int number) {
  return value_at<T>(w, in, lane, Space::local, frame_of(w, in, lane) + in.list[number]);
}
template <class T>
void give_result(Warp& w, const Instr& in, int lane, T value) {
  if (in.list[0] == ~0u) return;
  const uint64_t at = frame_of(w, in, lane) + in.list[0];
  std::memcpy(locate(w, in, lane, Space::local, at, sizeof value, 4).bytes, &value, sizeof value);
}

// Arguments lie behind each other, aligned to their sizes: int 4 bytes, all longer and double 8.
std::string formatted(Warp& w, const Instr& in, int lane, const std::string& format, uint64_t args) {
  std::string out;
  uint64_t at = 0;
  const auto next = [&](uint64_t bytes) {
    at = (at + bytes - 1) / bytes * bytes;
    const uint64_t address = args + at;
    at += bytes;
    return bytes == 4 ? uint64_t(value_at<uint32_t>(w, in, lane, Space::generic, address))
                      : value_at<uint64_t>(w, in, lane, Space::generic, address);
  };
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    std::string spec = "%";
    bool wide = false;
    for (++i; i < format.size(); ++i) {
      const char c = format[i];
      if (c == '*') {
        spec += std::to_string(int32_t(next(4)));
      } else if (c == 'l' || c == 'j' || c == 'z' || c == 't') {
        wide = true;
      } else {
        spec += c;
        if (std::string("diouxXcsfFeEgGaAp%").find(c) != std::string::npos) break;
      }
    }
    char text[512];
    const char kind = spec.back();
    if (kind == '%') {
      out += '%';
    } else if (kind == 's') {
      std::snprintf(text, sizeof text, spec.c_str(), text_at(w, in, lane, next(8)).c_str());
      out += text;
    } else if (std::string("fFeEgGaA").find(kind) != std::string::npos) {
      std::snprintf(text, sizeof text, spec.c_str(), __builtin_bit_cast(double, next(8)));
      out += text;
    } else if (kind == 'p') {
      out += hex(next(8));
    } else if (wide) {
      spec.insert(spec.size() - 1, "ll");
      std::snprintf(text, sizeof text, spec.c_str(), static_cast<long long>(next(8)));
      out += text;
    } else {
      std::snprintf(text, sizeof text, spec.c_str(), uint32_t(next(4)));
      out += text;
    }
  }
  return out;
}

// vprintf(format, arguments)
Next print(Warp& w, const Instr& in, Mask m) {
  for (Lanes l(m); l; ++l) {
    const std::string format = text_at(w, in, *l, parameter<uint64_t>(w, in, *l, 1));
    const std::string text = formatted(w, in, *l, format, parameter<uint64_t>(w, in, *l, 2));
    {
      const ProgressLine::Aside aside(ProgressLine::get());
      std::fwrite(text.data(), 1, text.size(), stdout);
    }
    give_result(w, in, *l, int32_t(text.size()));
  }
  return Next::go_on;
}

// __assertfail(condition, file, line, function, size of a character)
Next fail(Warp& w, const Instr& in, Mask m) {
  const int l = __builtin_ctz(m);
  const auto text = [&](int i) { return text_at(w, in, l, parameter<uint64_t>(w, in, l, i)); };
  raise_final(FaultKind::trap, w, in, l,
              "assertion " + text(1) + " failed at " + text(2) + ":" +
                  std::to_string(parameter<uint32_t>(w, in, l, 3)) + " in " + text(4),
              "what the kernel asserts does not hold");
}

// malloc(bytes): a null pointer where the heap has no room.
Next allocate(Warp& w, const Instr& in, Mask m) {
  for (Lanes l(m); l; ++l)
    give_result(w, in, *l, w.block->grid->memory->heap.allocate(parameter<uint64_t>(w, in, *l, 1)));
  ++w.block->cluster->changes;
  return Next::go_on;
}

// free(pointer)
Next release(Warp& w, const Instr& in, Mask m) {
  for (Lanes l(m); l; ++l) {
    const uint64_t address = parameter<uint64_t>(w, in, *l, 1);
    if (address == 0) continue;
    const DeviceHeap::Release released = w.block->grid->memory->heap.release(address);
    if (released == DeviceHeap::Release::freed_before) {
      raise_final(FaultKind::use_after_free, w, in, *l,
                  "free of " + hex(address) + ", a block of the kernels' heap that was freed before",
                  "two threads free the same block, or one does so twice");
    }
    if (released == DeviceHeap::Release::unknown) {
      raise_final(
          FaultKind::bounds, w, in, *l,
          "free of " + hex(address) + ", where no block of the kernels' heap begins",
          "a pointer into the middle of a block, or to memory that cudaMalloc gave: malloc and new of "
          "a kernel give what free and delete of a kernel take");
    }
  }
  ++w.block->cluster->changes;
  return Next::go_on;
}

// ---- decoding ----

struct RuntimeCall {
  const char* name;
  size_t parameters;
  Handler run;
};
constexpr RuntimeCall kRuntimeCalls[] = {
    {"vprintf", 2, print}, {"__assertfail", 5, fail}, {"malloc", 1, allocate}, {"free", 1, release}};

void decode_runtime_call(Decoder& d, const std::string& name, const std::vector<int64_t>& arguments,
                         const std::vector<int64_t>& results) {
  const auto found = std::find_if(std::begin(kRuntimeCalls), std::end(kRuntimeCalls),
                                  [&](const RuntimeCall& c) { return name == c.name; });
  if (found == std::end(kRuntimeCalls)) throw Unsupported{"a call of " + name};
  if (arguments.size() != found->parameters)
    throw Unsupported{"a call of " + name + " with " + std::to_string(arguments.size()) + " parameters"};
  std::vector<uint32_t> list = {results.empty() ? ~0u : uint32_t(results[0])};
  for (const int64_t at : arguments) list.push_back(uint32_t(at));
  d.instr.list = d.list(list);
  d.instr.run = found->run;
  if (found->run == allocate || found->run == release) d.code().uses_heap = true;
}

void decode_call(Decoder& d) {
  d.take("uni");
  d.done();
  CallForm form;
  const auto places = [&](const Operand& list, std::vector<int64_t>& to) {
    for (const Operand& o : list.elements) {
      const auto at = d.frame().params.find(o.name);
      if (at == d.frame().params.end()) throw Unsupported{"these call parameters"};
      to.push_back(at->second);
    }
  };
  size_t next = 0;
  if (d.operand(0).kind == Operand::Kind::vector) places(d.operand(next++), form.results);
  const Operand& callee = d.operand(next++);
  if (d.operands() > next) places(d.operand(next), form.arguments);
  d.instr.s[0] = d.local_address(0, 64);
  const std::vector<CalledFunction>& called = d.code().called;
  const auto named = std::find_if(called.begin(), called.end(), [&](const CalledFunction& f) {
    return callee.kind == Operand::Kind::symbol && f.function->name == callee.name;
  });
  size_t parameters = 0, results = 0;
  if (callee.kind == Operand::Kind::reg) {
    form.prototype = d.statement().prototype.get();
    if (!form.prototype) throw Unsupported{"a call through a pointer without a prototype"};
    d.instr.s[1] = d.source(callee, type_info("b64"));
    const bool lists = !form.prototype->targets.empty();  // and not what they take: see fits()
    parameters = lists ? form.arguments.size() : form.prototype->params.size();
    results = lists ? form.results.size() : form.prototype->returns.size();
  } else if (named == called.end()) {
    return decode_runtime_call(d, callee.name, form.arguments, form.results);
  } else {
    form.function = int(named - called.begin());
    parameters = named->function->params.size();
    results = named->function->returns.size();
  }
  if (form.arguments.size() != parameters || form.results.size() != results)
    throw Unsupported{"these call parameters"};
  d.extra(form);
  d.instr.run = call_function;
}

}  // namespace

void decode_end_of_call(Decoder& d) { d.instr.run = return_to_caller; }

std::vector<Form> call_forms() { return {{"call", decode_call, Family::control}}; }

}  // namespace gg::emu
