// SPDX-License-Identifier: MIT
//
// On x86-64 the machine is compiled for x86-64-v3, so that a warp's lanes are vectors. This
// file is not, and runs first. Elsewhere the machine is compiled for every CPU, and there is
// nothing to ask.

#ifdef __x86_64__
#include <unistd.h>

#include <cstring>

namespace {

const char* missing_feature() {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2")) return "AVX2";
  if (!__builtin_cpu_supports("fma")) return "FMA";
  if (!__builtin_cpu_supports("f16c")) return "F16C";
  if (!__builtin_cpu_supports("bmi")) return "BMI1";
  if (!__builtin_cpu_supports("bmi2")) return "BMI2";
  if (!__builtin_cpu_supports("lzcnt")) return "LZCNT";
  return nullptr;
}

void say(const char* text) {
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) _exit(3);
}

// Before every other initialisation of the library.
[[gnu::constructor(101)]] void check_processor() {
  const char* const missing = missing_feature();
  if (!missing) return;
  say("gg-emu: this processor lacks ");
  say(missing);
  say("; the emulator wants one of level x86-64-v3 (Haswell, Zen or later)\n");
  _exit(3);
}

}  // namespace
#endif
