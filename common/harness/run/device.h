// SPDX-License-Identifier: MIT
//
// The choice of the machine on which a chapter runs.

#pragma once

#include <string>

#include "common/harness/problem/chapter.h"
#include "common/harness/run/options.h"

namespace gg {

struct Device {
  std::string name;    // "NVIDIA H200"
  int capability = 0;  // 90 for 9.0
  int multiprocessors = 0;
  size_t l2_bytes = 0;
  std::string cuda;  // "13.0", the runtime's version
  bool emulated = false;
  // In one clause, where the emulator stands in for a GPU unasked; else empty.
  std::string why_no_gpu{};
  std::string unusable{};  // why the chapter cannot run here, in one sentence; empty if it can
};

// The GPU, or the device that the emulator plays. Where the emulator is to run the chapter but
// another CUDA runtime is loaded, the program starts itself again with `arguments` (argv).
Device find_device(Options::Device wanted, const Chapter& chapter, char** arguments = nullptr);
// The same. Throws gg::Error (no device) where it is unusable.
Device choose_device(Options::Device wanted, const Chapter& chapter, char** arguments = nullptr);
// Prints on stderr why the emulator stands in for a GPU unasked, where it does.
void say_if_emulator_stands_in(const Chapter& chapter, const Device& device);
// Why the chapter cannot run on a GPU here, in one sentence; empty if it can. Makes no context on
// the device: programs that start at the same time wait for each other's.
std::string why_not_on_gpu(const Chapter& chapter);

// The verdict on driver and runtime versions as the CUDA runtime numbers them (13000 for 13.0);
// empty if they fit.
std::string version_mismatch(int driver, int runtime);
// Why a GPU of this capability cannot run a chapter of this architecture; empty if it can.
std::string arch_mismatch(const std::string& name, int capability, Arch arch);

}  // namespace gg
