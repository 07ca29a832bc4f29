// SPDX-License-Identifier: MIT
//
// Looking for the emulator in this process, and reading what it counted.

#include "common/harness/machine/emulator.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>

#include "common/harness/base/duration.h"
#include "common/kernel/error.h"

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

int small_multiprocessors(int whole, int cluster) { return std::min(std::max(2, cluster), whole); }

Counters emulator_counters() {
  Counters counters;
  emulator()->counts([](void* context, const char* counter,
                        uint64_t value) { static_cast<Counters*>(context)->emplace_back(counter, value); },
                     &counters);
  return counters;
}

// Measured on a core of an EPYC, comparison with the CPU included: 44 million a second in 01,
// 460 million in 05b, 840 million in 07a. Empty rows of tiles and other programs take their
// share of that.
static constexpr double kLeastRate = 30e6, kMostRate = 800e6, kWorthALine = 60;

bool may_take_long(double multiply_adds, int cores) {
  return multiply_adds / cores / kLeastRate > kWorthALine;
}

std::string long_emulation(double multiply_adds, int cores, double rate, const std::string& short_set) {
  const double longest = multiply_adds / cores / (rate > 0 ? rate : kLeastRate);
  if (longest <= kWorthALine) return "";
  const std::string start =
                        format("emulating %.1f billion useful multiply-adds takes ", multiply_adds * 1e-9),
                    end = format("a second on each of %d cores; --set %s takes seconds", cores,
                                 short_set.c_str());
  if (rate > 0) {
    return start +
           format("about %s, at the %.0f million just measured ", duration_text(longest).c_str(),
                  rate * 1e-6) +
           end;
  }
  const std::string shortest = duration_text(multiply_adds / cores / kMostRate);
  return start +
         format("%s to %s, at %.0f to %.0f million ", shortest.c_str(), duration_text(longest).c_str(),
                kLeastRate * 1e-6, kMostRate * 1e-6) +
         end;
}

bool launches_are_listed() {
  const auto is_set = [](const char* variable) {
    const char* const value = std::getenv(variable);
    return value && *value;
  };
  return is_set("GG_EMU_TRACE") || is_set("GG_EMU_LAUNCHES");
}

}  // namespace gg
