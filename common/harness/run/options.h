// SPDX-License-Identifier: MIT
//
// The command line of a chapter.

#pragma once

#include <string>
#include <vector>

#include "common/harness/problem/limits.h"
#include "common/harness/run/machine_options.h"

namespace gg {

struct Options : ProblemOptions, MachineOptions {
  bool check = true, bench = true;  // --check and --bench leave only their half
  std::vector<std::string> sets;    // empty: the defaults of each half
  int groups = 0;                   // --groups G --m M
  std::vector<std::string> peers;
  std::string csv, counts_csv, in_dir, out_dir;
  bool describe = false, help = false, print_schedule = false, tune = false;
  bool sustained = false;        // how rounds are timed: common/harness/bench/timer.h
  bool chooses_form = false;     // an option of the chapter's own, or a type, was given
  bool other_d = false;          // D is not of the type that A and B give by default
  std::vector<std::string> off;  // ideas, in the order in which the chapter lists them
  char** arguments = nullptr;    // argv, to start again on the emulator
};

// Throws gg::Error (bad input): an unknown option, a value that is no value, a combination
// that means nothing.
Options parse_options(int argc, char** argv, const Chapter& chapter, const std::vector<Formats>& formats);

struct Option {  // as --help prints it
  const char* name;
  std::string value;  // empty: a flag
  const char* help;
};
std::vector<Option> options_of(const Chapter& chapter);

}  // namespace gg
