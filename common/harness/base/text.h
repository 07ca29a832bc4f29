// SPDX-License-Identifier: MIT
//
// Lists in text: cut at a separator, and put together with one.

#pragma once

#include <string>
#include <vector>

#include "common/kernel/error.h"
#include "common/kernel/list.h"

namespace gg {

// "a,b" -> {"a", "b"}; an empty text is one empty part, and so is the end after a separator.
std::vector<std::string> split(const std::string& text, char separator);
std::string join(const std::vector<std::string>& parts, const char* separator);
bool has(const List<const char*>& names, const std::string& name);

}  // namespace gg
