// SPDX-License-Identifier: MIT
//
// The exception that carries an exit code and its sentence.

#pragma once

#include <stdexcept>
#include <string>

#include "common/kernel/check.h"

namespace gg {

class Error : public std::runtime_error {
 public:
  Error(Exit code, const std::string& sentence) : std::runtime_error(sentence), code(code) {}
  Exit code;
};

// printf into a std::string.
[[gnu::format(printf, 1, 2)]] std::string format(const char* text, ...);

}  // namespace gg
