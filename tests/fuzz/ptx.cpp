// SPDX-License-Identifier: MIT
//
// PTX text as anybody may write it: it parses or is refused with a line and a reason, and whatever
// parses decodes, also if the bodies of kernels are read later.

#include <cstddef>
#include <string>

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/state/grid.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gg::emu;
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const Bodies bodies : {Bodies::now, Bodies::later}) {
    try {
      const auto module = parse_ptx(text, bodies);
      for (const auto& function : module->functions) {
        parse_body(*module, function->name);
        if (!function->declared_only) decode(*module, *function, gg::emu::all_forms());
      }
    } catch (const SyntaxError&) {
    }
  }
  return 0;
}
