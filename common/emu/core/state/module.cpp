// SPDX-License-Identifier: MIT
//
// Variables of a module: memory for each, then what stands in them.

#include "common/emu/core/state/module.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>

namespace gg::emu {
namespace {

bool is_placed(const Variable& v) {
  return (v.space == Space::global || v.space == Space::constant) && !v.external;
}

void initialise(const Module& module, const Variable& v, uint8_t* bytes,
                const std::map<std::string, uint64_t>& symbols) {
  std::fill_n(bytes, v.bytes, uint8_t(0));
  std::copy_n(v.init.begin(), std::min<int64_t>(int64_t(v.init.size()), v.bytes), bytes);
  for (const Variable::Address& a : v.addresses) {
    const auto variable = symbols.find(a.symbol);
    const uint64_t target = variable != symbols.end() ? variable->second : address_of(module, a.symbol);
    if (target == 0) {
      throw std::invalid_argument("variable " + v.name + " holds the address of " + a.symbol +
                                  ", which is no variable of global or constant memory and no function");
    }
    const uint64_t value = target + uint64_t(a.add);
    if (a.byte >= 0 && v.type.bits == 8 && a.at < v.bytes) {
      bytes[a.at] = uint8_t(value >> (8 * a.byte));
      continue;
    }
    if (v.type.bits != 64 || a.at + 8 > v.bytes) {
      throw std::invalid_argument("variable " + v.name + " holds the address of " + a.symbol +
                                  " in elements of " + std::to_string(v.type.bits) + " bits, it needs 64");
    }
    std::memcpy(bytes + a.at, &value, sizeof value);
  }
}

}  // namespace

uint64_t address_of(const Module& module, const std::string& function) {
  for (size_t i = 0; i < module.functions.size(); ++i) {
    if (module.functions[i]->name == function) return kFunctionWindow + 16 * uint64_t(i + 1);
  }
  return 0;
}

const Function* function_at(const Module& module, uint64_t address) {
  const uint64_t index = (address - kFunctionWindow) / 16 - 1;
  if (address < kFunctionWindow || address % 16 != 0 || index >= module.functions.size()) return nullptr;
  return module.functions[index].get();
}

std::map<std::string, uint64_t> place_variables(const Module& module, GlobalMemory& memory,
                                                const AllocateVariable& allocate) {
  std::map<std::string, uint64_t> symbols;
  for (const Variable& v : module.variables) {
    if (!is_placed(v)) continue;
    const size_t bytes = size_t(std::max<int64_t>(v.bytes, 1));
    const uint64_t alignment = uint64_t(std::max<int64_t>(v.align, 256));
    const uint64_t address = allocate ? allocate(v, bytes) : memory.allocate(bytes, alignment);
    if (!address) throw std::bad_alloc();
    symbols[v.name] = address;
  }
  for (const Variable& v : module.variables) {
    if (!is_placed(v)) continue;
    initialise(module, v, memory.unchecked(symbols[v.name]), symbols);
    memory.was_filled(symbols[v.name], uint64_t(std::max<int64_t>(v.bytes, 1)));
  }
  return symbols;
}

}  // namespace gg::emu
