// SPDX-License-Identifier: MIT
//
// Choosing the device, and saying in one sentence why there is none.

#include "common/harness/run/device.h"

#include <cuda_runtime_api.h>

#include <cstdio>

#include "common/harness/machine/emulator.h"
#include "common/harness/run/restart.h"

namespace gg {

static std::string version_text(int version) { return format("%d.%d", version / 1000, version % 1000 / 10); }

std::string version_mismatch(int driver, int runtime) {
  if (driver == 0) return "no NVIDIA driver is installed";
  // Minor versions of one major version are compatible both ways (CUDA Compatibility,
  // "Minor Version Compatibility").
  if (driver / 1000 < runtime / 1000) {
    return format("the driver supports CUDA %s, this program's runtime is CUDA %s: install a newer driver",
                  version_text(driver).c_str(), version_text(runtime).c_str());
  }
  return "";
}

std::string arch_mismatch(const std::string& name, int capability, Arch arch) {
  const std::string has =
      format("%s has compute capability %d.%d", name.c_str(), capability / 10, capability % 10);
  if (arch == Arch::sm_80 && capability < 80) return has + ", this chapter needs 8.0 or later";
  if (arch == Arch::sm_90a && capability != 90) return has + ", this chapter needs exactly 9.0 (Hopper)";
  // Code for sm_100a runs on no other architecture, not on one of the same family either (CUDA C++
  // Programming Guide, "Architecture-Specific Features").
  if (arch == Arch::sm_100a && capability != 100)
    return has + ", this chapter needs exactly 10.0 (Blackwell: B200)";
  return "";
}

// The first device of the CUDA runtime in use; `why` says what is wrong with it.
static Device first_device(const Chapter& chapter, std::string& why) {
  int driver = 0, runtime = 0, count = 0;
  GG_CHECK(cudaDriverGetVersion(&driver));
  GG_CHECK(cudaRuntimeGetVersion(&runtime));
  why = version_mismatch(driver, runtime);
  if (!why.empty()) return {};
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {
    why = format("the driver reports no usable GPU (%s)", cudaGetErrorString(error));
  } else if (count == 0) {
    why = "the driver reports no GPU";
  }
  if (!why.empty()) return {};
  cudaDeviceProp properties{};
  GG_CHECK(cudaGetDeviceProperties(&properties, 0));
  const Device device = {properties.name,
                         properties.major * 10 + properties.minor,
                         properties.multiProcessorCount,
                         size_t(properties.l2CacheSize),
                         version_text(runtime),
                         emulator() != nullptr,
                         why_no_gpu()};
  why = arch_mismatch(device.name, device.capability, chapter.arch);
  return device;
}

std::string why_not_on_gpu(const Chapter& chapter) {
  if (emulator()) return "this program was started on the emulator";
  std::string why;
  first_device(chapter, why);
  return why;
}

Device find_device(Options::Device wanted, const Chapter& chapter, char** arguments) {
  play_device_of(chapter);
  if (!emulator() && wanted == Options::Device::emulator) restart_on_emulator(arguments, "");
  std::string why;
  Device device = first_device(chapter, why);
  if (emulator() && wanted == Options::Device::gpu) why = why_not_on_gpu(chapter);
  if (why.empty()) {
    GG_CHECK(cudaSetDevice(0));
  } else if (emulator() || wanted == Options::Device::gpu) {
    device.unusable = "not run, no usable GPU: " + why;
  } else {
    restart_on_emulator(arguments, "no usable GPU (" + why + ")");
  }
  return device;
}

void say_if_emulator_stands_in(const Chapter& chapter, const Device& device) {
  if (!device.why_no_gpu.empty())
    std::fprintf(stderr, "%s: %s, so the emulator runs it\n", chapter.id, device.why_no_gpu.c_str());
}

Device choose_device(Options::Device wanted, const Chapter& chapter, char** arguments) {
  const Device device = find_device(wanted, chapter, arguments);
  if (!device.unusable.empty()) throw Error(Exit::no_device, device.unusable);
  return device;
}

}  // namespace gg
