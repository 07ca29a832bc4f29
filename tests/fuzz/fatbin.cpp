// SPDX-License-Identifier: MIT
//
// A fatbin as it may stand in any program: its entries are inside it, and their text can be had
// or is refused.

#include "common/emu/cudart/fatbin.h"

#include <vector>

#include "common/emu/cudart/machine_code.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gg::emu;
  try {
    const std::vector<FatbinEntry> entries = read_fatbin(data, size);
    for (const FatbinEntry& entry : entries) {
      if (entry.payload < data || entry.payload + entry.bytes > data + size) __builtin_trap();
    }
    for (const int capability : {80, 90, 100, 120}) {
      const FatbinEntry* const code = choose_machine_code(entries, capability);
      if (code) register_counts(contents(*code));
      const FatbinEntry* const ptx = choose_ptx(entries, capability);
      if (ptx && ptx->target().size() + ptx_text(*ptx).size() == 0) __builtin_trap();
    }
  } catch (const FatbinError&) {
  }
  return 0;
}
