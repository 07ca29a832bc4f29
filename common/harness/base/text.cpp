// SPDX-License-Identifier: MIT
//
// Cutting and joining lists in text.

#include "common/harness/base/text.h"

#include <algorithm>
#include <sstream>

namespace gg {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  if (text.empty() || text.back() == separator) parts.push_back("");
  return parts;
}

std::string join(const std::vector<std::string>& parts, const char* separator) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : separator) + part;
  return text;
}

bool has(const List<const char*>& names, const std::string& name) {
  return std::any_of(names.begin(), names.end(), [&](const char* each) { return name == each; });
}

}  // namespace gg
