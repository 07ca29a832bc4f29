// SPDX-License-Identifier: MIT
//
// The emulator is another libcudart.so.13: which one a program gets is decided by the loader when
// it starts, so a program that wants the emulator has to start again.

#include "common/harness/run/restart.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "common/harness/base/paths.h"
#include "common/harness/machine/emulator.h"
#include "common/kernel/error.h"

namespace gg {

// Set when a program starts itself again: why there is no GPU for it, or nothing. Nothing else of
// the first start lives on.
static constexpr const char* kRestarted = "GG_EMU_RESTARTED";

std::string why_no_gpu() {
  const char* const why = std::getenv(kRestarted);
  return emulator() && why ? why : "";
}

void play_device_of(const Chapter& chapter) {
  if (emulator() && std::getenv(kRestarted))
    emulator()->play(chapter.arch == Arch::sm_100a ? "b200" : "h200");
}

void restart_on_emulator(char** arguments, const std::string& why_no_gpu) {
  const std::string folder = in_build_tree("lib/emu"), runtime = folder + "/libcudart.so.13";
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
                format("not run, %s%sno emulator: there is no %s, which the target gg_emu_cudart makes",
                       why_no_gpu.c_str(), why_no_gpu.empty() ? "" : " and ", runtime.c_str()));
  }
  const char* before = std::getenv("LD_LIBRARY_PATH");
  const std::string path = folder + (before && *before ? std::string(":") + before : "");
  setenv("LD_LIBRARY_PATH", path.c_str(), 1);
  setenv(kRestarted, why_no_gpu.c_str(), 1);
  std::fflush(nullptr);
  execv("/proc/self/exe", arguments);
  throw Error(Exit::device_error,
              format("could not start itself again on the emulator: %s", std::strerror(errno)));
}

}  // namespace gg
