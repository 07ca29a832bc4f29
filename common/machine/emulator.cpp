// SPDX-License-Identifier: MIT
//
// Looking for the emulator in this process, and reading what it counted.

#include "common/machine/emulator.h"

#include <dlfcn.h>

#include <algorithm>

#include "common/check.h"

namespace gg {

std::string loaded_runtime() {
  Dl_info info{};
  void* const function = dlsym(RTLD_DEFAULT, "cudaRuntimeGetVersion");
  return function && dladdr(function, &info) ? info.dli_fname : "a part of the program";
}

const GgEmuInterface* emulator() {
  static const GgEmuInterface* const found = [] {
    const auto get = reinterpret_cast<decltype(&gg_emu_interface)>(dlsym(RTLD_DEFAULT, "gg_emu_interface"));
    return get ? get() : nullptr;
  }();
  if (found && found->version != kGgEmuInterface) {
    throw Error(
        Exit::device_error,
        format("%s speaks version %d of the emulator's interface, this program version %d: build both "
               "from the same commit",
               loaded_runtime().c_str(), found->version, kGgEmuInterface));
  }
  return found;
}

int small_multiprocessors(int whole) { return std::min(2, whole); }

Counters emulator_counters() {
  Counters counters;
  emulator()->counts([](void* context, const char* counter,
                        uint64_t value) { static_cast<Counters*>(context)->emplace_back(counter, value); },
                     &counters);
  return counters;
}

std::string long_emulation(double multiply_adds, int cores, const std::string& short_set) {
  // Measured on a core of an EPYC, comparison with the CPU included: 44 million a second in 01, 460 million
  // in 05b, 840 million in 07a. Empty rows of tiles and other programs take their share of that.
  constexpr double kLeast = 30e6, kMost = 800e6, kWorthALine = 60;
  const double longest = multiply_adds / cores / kLeast, shortest = multiply_adds / cores / kMost;
  if (longest <= kWorthALine) return "";
  const auto duration = [](double seconds) {
    return seconds < 100    ? format("%.0f seconds", seconds)
           : seconds < 6000 ? format("%.0f minutes", seconds / 60)
                            : format("%.1f hours", seconds / 3600);
  };
  return format(
      "emulating %.1f billion useful multiply-adds takes %s to %s, at 30 to 800 million a second on each of "
      "%d cores; --set %s takes seconds",
      multiply_adds * 1e-9, duration(shortest).c_str(), duration(longest).c_str(), cores, short_set.c_str());
}

}  // namespace gg
