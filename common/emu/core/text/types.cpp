// SPDX-License-Identifier: MIT
//
// The fundamental types, and small questions to a module. PTX ISA: "Fundamental Types", "Alternate
// Floating-Point Data Formats".

#include <map>
#include <stdexcept>

#include "common/emu/core/text/ptx.h"

namespace gg::emu {

bool Statement::has(const char* modifier) const {
  for (const std::string& each : modifiers) {
    if (each == modifier) return true;
  }
  return false;
}

const Function* Module::find(const std::string& name) const {
  for (const auto& function : functions) {
    if (function->name == name && !function->declared_only) return function.get();
  }
  return nullptr;
}

// Never destroyed: gg-emu --report asks for types while the program ends.
static const std::map<std::string, TypeInfo>& types() {
  static const auto& table = *new const std::map<std::string, TypeInfo>([] {
    std::map<std::string, TypeInfo> t;
    const auto add = [&](const char* name, char kind, int bits) { t[name] = {kind, bits, name}; };
    add("pred", 'p', 0);
    for (int bits : {8, 16, 32, 64}) {
      add(("b" + std::to_string(bits)).c_str(), 'b', bits);
      add(("u" + std::to_string(bits)).c_str(), 'u', bits);
      add(("s" + std::to_string(bits)).c_str(), 's', bits);
    }
    add("b128", 'b', 128);
    add("f16", 'f', 16);
    add("f32", 'f', 32);
    add("f64", 'f', 64);
    add("f16x2", 'x', 32);
    add("bf16", 'x', 16);
    add("bf16x2", 'x', 32);
    add("tf32", 'x', 32);
    add("f32x2", 'x', 64);
    for (const char* name : {"e4m3", "e5m2", "ue8m0", "e2m1x2"}) add(name, 'x', 8);
    for (const char* name : {"e4m3x2", "e5m2x2", "ue8m0x2", "e2m3x2", "e3m2x2", "e2m1x4"}) add(name, 'x', 16);
    for (const char* name : {"e4m3x4", "e5m2x4", "e2m3x4", "e3m2x4"}) add(name, 'x', 32);
    for (const char* name : {"u16x2", "s16x2"}) add(name, 'x', 32);
    add("u8x4", 'x', 32);
    add("s8x4", 'x', 32);
    return t;
  }());
  return table;
}
bool is_type(const std::string& name) { return types().count(name) > 0; }
TypeInfo type_info(const std::string& name) {
  const auto found = types().find(name);
  if (found == types().end()) throw std::invalid_argument(name + " is no PTX type");
  return found->second;
}
}  // namespace gg::emu
