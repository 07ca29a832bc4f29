// SPDX-License-Identifier: MIT
//
// Branches, calls and ends. PTX ISA: "Control Flow Instructions", "Miscellaneous Instructions: trap, brkpt".
// Functions of the module are expanded where they are called (decode.cpp); vprintf and __assertfail are the
// runtime's.

#include <cstdio>

#include "common/emu/isa/forms.h"
#include "common/emu/state/access.h"
#include "common/emu/state/progress.h"

namespace gg::emu {
namespace {

Next branch(Warp&, const Instr&, Mask) { return Next::branch; }
void decode_bra(Decoder& d) {
  d.take("uni");
  d.done();
  d.instr.target = d.label(d.operand(0));
  d.instr.run = branch;
}

// brx.idx index, list: each lane goes to the label its index names.
Next branch_by_index(Warp& w, const Instr& in, Mask m) {
  const uint32_t* index = w.at<uint32_t>(in.s[0]);
  for (Lanes l(m); l; ++l) {
    if (index[*l] >= in.count) {
      raise_final(FaultKind::bounds, w, in, *l,
                  "index " + std::to_string(index[*l]) + " of a list of " + std::to_string(in.count) +
                      " branch targets",
                  "a switch without a default met a value it does not know");
    }
    w.flow.jump_to[*l] = int32_t(in.list[index[*l]]);
  }
  return Next::jump;
}
void decode_brx(Decoder& d) {
  if (!d.take("idx")) throw Unsupported{"this branch"};
  d.take("uni");
  d.done();
  d.instr.s[0] = d.source(0, type_info("u32"));
  if (d.operand(1).kind != Operand::Kind::vector) throw Unsupported{"a branch without .branchtargets"};
  std::vector<uint32_t> targets;
  for (const Operand& target : d.operand(1).elements) targets.push_back(uint32_t(d.label(target)));
  d.instr.count = uint16_t(targets.size());
  d.instr.list = d.list(targets);
  d.instr.run = branch_by_index;
}

Next leave(Warp&, const Instr&, Mask) { return Next::exit; }
void decode_exit(Decoder& d) {
  d.done();
  d.instr.run = leave;
}
void decode_ret(Decoder& d) {
  d.take("uni");
  d.done();
  d.instr.run =
      d.frame().function->entry ? leave : branch;  // the target is known once the function is expanded
}

Next trap(Warp& w, const Instr& in, Mask m) {
  raise_final(FaultKind::trap, w, in, __builtin_ctz(m), "the kernel stopped itself",
              "an assertion of the kernel, or a path it declares impossible");
}
void decode_trap(Decoder& d) {
  d.done();
  d.instr.run = trap;
}

Next nothing(Warp&, const Instr&, Mask) { return Next::go_on; }
void decode_nothing(Decoder& d) { d.instr.run = nothing; }

// ---- calls of the runtime ----

std::string text_at(Warp& w, const Instr& in, int lane, uint64_t address) {
  std::string text;
  while (address != 0) {
    const char c = char(*locate(w, in, lane, Space::generic, address++, 1, 1).bytes);
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

// Arguments lie behind each other, each aligned to its size: int 4 bytes, everything longer and double 8.
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

// vprintf(format, arguments): list[0] is where the result goes, list[1..] where the parameters are, in local
// memory.
Next print(Warp& w, const Instr& in, Mask m) {
  for (Lanes l(m); l; ++l) {
    const uint64_t format = value_at<uint64_t>(w, in, *l, Space::local, in.list[1]);
    const uint64_t args = value_at<uint64_t>(w, in, *l, Space::local, in.list[2]);
    const std::string text = formatted(w, in, *l, text_at(w, in, *l, format), args);
    {
      const ProgressLine::Aside aside(ProgressLine::get());
      std::fwrite(text.data(), 1, text.size(), stdout);
    }
    if (in.list[0] != ~0u) {
      const int32_t written = int32_t(text.size());
      std::memcpy(locate(w, in, *l, Space::local, in.list[0], 4, 4).bytes, &written, 4);
    }
  }
  return Next::go_on;
}

// __assertfail(condition, file, line, function, size of a character)
Next fail(Warp& w, const Instr& in, Mask m) {
  const int l = __builtin_ctz(m);
  const auto text = [&](int i) {
    return text_at(w, in, l, value_at<uint64_t>(w, in, l, Space::local, in.list[i]));
  };
  raise_final(FaultKind::trap, w, in, l,
              "assertion " + text(1) + " failed at " + text(2) + ":" +
                  std::to_string(value_at<uint32_t>(w, in, l, Space::local, in.list[3])) + " in " + text(4),
              "what the kernel asserts does not hold");
}

void decode_call(Decoder& d) {
  d.take("uni");
  d.done();
  size_t next = 0;
  std::vector<uint32_t> params = {~0u};
  const auto where = [&](const Operand& o) {
    const auto at = d.frame().params.find(o.name);
    if (at == d.frame().params.end()) throw Unsupported{"these call parameters"};
    return uint32_t(at->second);
  };
  if (d.operand(0).kind == Operand::Kind::vector) {
    if (!d.operand(0).elements.empty()) params[0] = where(d.operand(0).elements[0]);
    next = 1;
  }
  if (d.operand(next).kind == Operand::Kind::reg) throw Unsupported{"a call through a pointer"};
  const std::string& name = d.operand(next).name;
  if (d.operands() > next + 1) {
    for (const Operand& o : d.operand(next + 1).elements) params.push_back(where(o));
  }
  const size_t wanted = name == "vprintf" ? 2 : name == "__assertfail" ? 5 : 0;
  if (wanted == 0) throw Unsupported{"a call of " + name};
  if (params.size() != wanted + 1)
    throw Unsupported{"a call of " + name + " with " + std::to_string(params.size() - 1) + " parameters"};
  d.instr.list = d.list(params);
  d.instr.run = name == "vprintf" ? print : fail;
}

}  // namespace

std::vector<Form> control_forms() {
  return {{"bra", decode_bra, Family::control},   {"brx", decode_brx, Family::control},
          {"exit", decode_exit, Family::control}, {"ret", decode_ret, Family::control},
          {"trap", decode_trap, Family::control}, {"brkpt", decode_trap, Family::control},
          {"call", decode_call, Family::control}, {"pragma", decode_nothing, Family::control}};
}

}  // namespace gg::emu
