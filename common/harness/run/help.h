// SPDX-License-Identifier: MIT
//
// A chapter's description of itself: to a reader, and to a program.

#pragma once

#include <string>
#include <vector>

#include "common/harness/problem/chapter.h"

namespace gg {

std::string help_text(const Chapter& chapter, const std::vector<Formats>& formats);
std::string describe_text(const Chapter& chapter, const std::vector<Formats>& formats);  // JSON

}  // namespace gg
