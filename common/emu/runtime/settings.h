// SPDX-License-Identifier: MIT
//
// The emulator's options, which travel in the environment: gg-emu sets them, or a program that starts itself
// again.

#pragma once

#include <string>

#include "common/emu/state/grid.h"

namespace gg::emu {

struct Settings {
  std::string like;         // GG_EMU_LIKE=a100|h100|h200|b200; empty: by the program's PTX
  RunOptions run;           // GG_EMU_ORDER=S[:fair|skew], GG_EMU_ALLOW=KIND[,KIND]
  bool report = false;      // GG_EMU_REPORT=1
  std::string trace;        // GG_EMU_TRACE=FILE; empty: none
  std::string line_counts;  // GG_EMU_LINE_COUNTS=FILE; empty: none
  // For tests/mutants. GG_EMU_PTX=FILE: PTX to run in place of the module that has its first kernel.
  // GG_EMU_LAUNCHES=FILE: gets the names of the kernels launched, a line each.
  std::string ptx, launches;
  // GG_EMU_MULTIPROCESSORS=N: of the device, 0 for its own number. With few, persistent kernels walk many
  // tiles on a small problem, and fills of the whole device end sooner.
  int multiprocessors = 0;
};

// Throw std::invalid_argument with one sentence that names the option as the user wrote it.
Settings read_settings();
void check_like(const std::string& option, const std::string& value);
Order parse_order(const std::string& option, const std::string& value);
int parse_multiprocessors(const std::string& option, const std::string& value);  // 1 to 1024
uint32_t parse_allowed(const std::string& option, const std::string& value);

}  // namespace gg::emu
