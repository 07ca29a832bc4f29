// SPDX-License-Identifier: MIT
//
// The emulator is another libcudart.so.13: which one a program gets is decided by the loader when it starts,
// so a program that wants the emulator has to start again.

#include "common/machine/emulator.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "common/run/results.h"

namespace gg {
namespace {

constexpr const char* kRestarted = "GG_EMU_RESTARTED";  // set for the program that was started again

// The file of the CUDA runtime in use.
std::string loaded_runtime() {
  Dl_info info{};
  void* const function = dlsym(RTLD_DEFAULT, "cudaRuntimeGetVersion");
  return function && dladdr(function, &info) ? info.dli_fname : "a part of the program";
}

}  // namespace

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

void restart_on_emulator(char** arguments, const Chapter& chapter, const std::string& why_no_gpu) {
  const std::string folder = in_build_tree("lib/emu"), runtime = folder + "/libcudart.so.13";
  const std::string no_gpu = why_no_gpu.empty() ? "" : "no usable GPU (" + why_no_gpu + ")";
  if (std::getenv(kRestarted)) {
    const std::string loaded = loaded_runtime();
    const char* why = loaded == runtime
                          ? "which is not the emulator"
                          : "for a DT_RPATH in the program goes before LD_LIBRARY_PATH: link it "
                            "with -Wl,--enable-new-dtags";
    throw Error(Exit::device_error, format("was started again to run on %s, but its CUDA runtime is %s, %s",
                                           runtime.c_str(), loaded.c_str(), why));
  }
  if (access(runtime.c_str(), R_OK) != 0) {
    throw Error(Exit::no_device,
                format("not run, %s%sno emulator: there is no %s, which building the whole tree makes",
                       no_gpu.c_str(), no_gpu.empty() ? "" : " and ", runtime.c_str()));
  }
  if (!no_gpu.empty()) std::fprintf(stderr, "%s: %s, so the emulator runs it\n", chapter.id, no_gpu.c_str());
  const char* before = std::getenv("LD_LIBRARY_PATH");
  const std::string path = folder + (before && *before ? std::string(":") + before : "");
  setenv("LD_LIBRARY_PATH", path.c_str(), 1);
  setenv("GG_EMU_LIKE", chapter.arch == Arch::sm_100a ? "b200" : "h200", 1);
  setenv(kRestarted, "1", 1);
  std::fflush(nullptr);
  execv("/proc/self/exe", arguments);
  throw Error(Exit::device_error,
              format("could not start itself again on the emulator: %s", std::strerror(errno)));
}

}  // namespace gg
