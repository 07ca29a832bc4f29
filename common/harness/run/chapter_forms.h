// SPDX-License-Identifier: MIT
//
// The forms of a chapter: what a reader can choose beside the defaults, each as the words of a
// command line. A check without a set or a problem runs one problem in each.

#pragma once

#include <string>
#include <vector>

#include "common/harness/run/options.h"

namespace gg {

// Each format but the first, and each value of each option of the chapter's own, one option at a
// time, but not the defaults. Options that change no launch have none.
std::vector<std::vector<std::string>> forms_of(const Chapter& chapter, const std::vector<Formats>& formats);

// The options of a command line with these words and no others. They tell of no machine.
Options options_of_form(const std::vector<std::string>& form, const Chapter& chapter,
                        const std::vector<Formats>& formats);

}  // namespace gg
