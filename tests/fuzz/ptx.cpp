// SPDX-License-Identifier: MIT
//
// PTX text as anybody may write it: it parses or is refused with a line and a reason, and whatever parses
// decodes.

#include <cstddef>
#include <string>

#include "common/emu/machine.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gg::emu;
  try {
    const auto module = parse_ptx(std::string(reinterpret_cast<const char*>(data), size));
    for (const auto& function : module->functions) {
      if (!function->declared_only) decode(*module, *function);
    }
  } catch (const SyntaxError&) {
  }
  return 0;
}
