// SPDX-License-Identifier: MIT
//
// The settings of a user, in one list: an option of gg-emu, and the variable of the environment in
// which gg-emu hands it to the program.

#pragma once

#include <span>
#include <string>

#include "common/emu/core/schedule/launches.h"

namespace gg::emu {

struct Settings {
  std::string like;         // the device it plays; empty: by the program's PTX
  RunOptions run;           // order, faults that are allowed
  bool report = false;      // counts of each kernel on stderr
  std::string trace;        // a file; empty: none
  std::string line_counts;  // a file; empty: none
  int multiprocessors = 0;  // of the device; 0: its own number
  std::string ptx;          // a file: runs in place of the module that has its first kernel
  std::string launches;     // a file: gets the names of the kernels launched, a line each
  // Seconds of work before a line on a terminal tells of it: state/progress.h.
  double progress_after = 5;
};

struct Setting {
  enum class Takes : uint8_t {
    nothing,   // the variable is 1
    value,     // the last one counts
    list,      // all count, with commas between them
    file,      // one that is there
    new_file,  // one that is written
  };
  const char* option;    // "--order"
  const char* variable;  // "GG_EMU_ORDER"
  const char* value;     // "S[:fair|skew]" in the help; empty: none
  const char* what;      // one line of the help, or several
  Takes takes;
  // Throws std::invalid_argument with one sentence that begins with `name`: the option or variable.
  void (*take)(Settings& settings, const std::string& name, const std::string& value);
};
std::span<const Setting> user_settings();

// The settings that the environment has; an empty variable counts as none. Throws
// std::invalid_argument as Setting::take.
Settings read_settings();

// The values of single options. Throw std::invalid_argument as Setting::take.
void check_like(const std::string& option, const std::string& value);
Order parse_order(const std::string& option, const std::string& value);
int parse_multiprocessors(const std::string& option, const std::string& value);  // 1 to 1024
uint32_t parse_allowed(const std::string& option, const std::string& value);
// Seconds up to 999999, perhaps with a fraction.
double parse_seconds(const std::string& option, const std::string& value);

}  // namespace gg::emu
