// SPDX-License-Identifier: MIT
//
// Looking for a sentence in a report, wherever its lines are broken.

#pragma once

#include <gtest/gtest.h>

#include <string>

namespace report {

inline testing::AssertionResult says(const std::string& report, const std::string& part) {
  std::string line;
  for (const char c : report) {
    if (c != '\n' && (c != ' ' || line.empty() || line.back() != ' ')) line += c;
    if (c == '\n' && !line.empty() && line.back() != ' ') line += ' ';
  }
  if (line.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << part << "' is not in:\n" << report;
}

}  // namespace report
