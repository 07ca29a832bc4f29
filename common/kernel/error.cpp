// SPDX-License-Identifier: MIT
//
// How errors are raised. The emulator, which calls no CUDA, has this file too.

#include "common/kernel/error.h"

#include <cstdarg>
#include <cstdio>

namespace gg {

static std::string formatted(const char* text, va_list args) {
  va_list again;
  va_copy(again, args);
  std::string out(size_t(std::vsnprintf(nullptr, 0, text, args)), '\0');
  std::vsnprintf(out.data(), out.size() + 1, text, again);
  va_end(again);
  return out;
}

std::string format(const char* text, ...) {
  va_list args;
  va_start(args, text);
  const std::string out = formatted(text, args);
  va_end(args);
  return out;
}

void fail(Exit code, const char* text, ...) {
  va_list args;
  va_start(args, text);
  const std::string sentence = formatted(text, args);
  va_end(args);
  throw Error(code, sentence);
}

}  // namespace gg
