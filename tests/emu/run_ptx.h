// SPDX-License-Identifier: MIT
//
// Runs an entry of a PTX text on the emulator. All its parameters are pointers: one buffer each.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/schedule/launches.h"
#include "common/emu/core/state/grid.h"

namespace emu_test {

using Buffer = std::vector<uint8_t>;

struct Shape {
  int blocks = 1, threads = 32;
};

template <class T>
Buffer buffer_of(const std::vector<T>& values) {
  Buffer bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
template <class T>
std::vector<T> values_of(const Buffer& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// Reads and writes the buffers in place. The first entry of the text runs. Throws gg::emu::Fault.
inline void run_ptx(const std::string& text, std::vector<Buffer>& buffers, const Shape& shape) {
  using namespace gg::emu;
  std::unique_ptr<Module> module;
  try {
    module = parse_ptx(text);
  } catch (const SyntaxError& error) {
    throw std::runtime_error("PTX line " + std::to_string(error.line) + ": " + error.what);
  }
  const Function* entry = nullptr;
  for (const auto& function : module->functions) {
    if (function->entry && !entry) entry = function.get();
  }
  if (!entry) throw std::runtime_error("no entry");
  GlobalMemory memory;
  std::map<std::string, uint64_t> symbols;
  for (const Variable& v : module->variables) {
    if (v.space != Space::global && v.space != Space::constant) continue;
    symbols[v.name] = memory.allocate(size_t(v.bytes));
    std::copy(v.init.begin(), v.init.end(), memory.unchecked(symbols[v.name]));
  }
  Launch launch;
  std::vector<uint64_t> addresses;
  for (const Buffer& buffer : buffers) {
    addresses.push_back(memory.allocate(buffer.size()));
    std::copy(buffer.begin(), buffer.end(), memory.unchecked(addresses.back()));
  }
  launch.params = buffer_of(addresses);
  const std::unique_ptr<Code> code = decode(*module, *entry, gg::emu::all_forms(), symbols);
  launch.code = code.get();
  launch.grid[0] = shape.blocks;
  launch.block[0] = shape.threads;
  run_launch(launch, memory, {}, nullptr);
  for (size_t i = 0; i < buffers.size(); ++i) {
    std::copy_n(memory.unchecked(addresses[i]), buffers[i].size(), buffers[i].begin());
  }
}

}  // namespace emu_test
