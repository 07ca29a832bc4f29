// SPDX-License-Identifier: MIT
//
// A plan of a run: the problems that it checks, those that it times or counts, and the forms
// that it tries. Everything that can be refused is refused while the plan is made.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/harness/run/options.h"
#include "common/harness/verify/problem_files.h"

namespace gg {

struct Form {
  std::string words;  // "--tile 64x64"
  Setup setup;
  std::vector<Shape> shapes;
};

struct Plan {
  Setup setup;  // what was asked, and what the files of --in say
  // On the emulator the latter are counted.
  std::vector<Shape> to_check{}, to_time{};
  std::unique_ptr<GivenOperands> given{};  // of --in
  std::vector<Form> forms{};               // each checked on one problem, where no form was chosen
  // A sentence for each problem of a set that the chapter does not take, and for each option that
  // means nothing here.
  std::vector<std::string> left_out{};

  const std::vector<Shape>& first() const { return to_check.empty() ? to_time : to_check; }
};

// The plan for a run, on the emulator or not. `far_fits`: is there address space for a B of experts
// that lie 2^31 elements apart? Throws gg::Error (bad input) with the offending number and
// what would be accepted. `types`: the formats that the chapter has.
Plan plan_of(const Options& options, const Chapter& chapter, const std::vector<Formats>& types, bool emulated,
             bool far_fits);

}  // namespace gg
