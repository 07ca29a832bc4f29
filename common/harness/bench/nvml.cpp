// SPDX-License-Identifier: MIT
//
// NVML by its C interface, looked up with dlopen.

#include "common/harness/bench/nvml.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

namespace gg {

DeviceState device_state() {
  // NVML API reference: nvmlDeviceGetClockInfo with NVML_CLOCK_SM = 1; power comes in milliwatts.
  struct Nvml {
    void* device = nullptr;
    int (*clock)(void*, int, unsigned*) = nullptr;
    int (*power)(void*, unsigned*) = nullptr;
    Nvml() {
      void* so = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
      if (!so) return;
      const auto init = reinterpret_cast<int (*)()>(dlsym(so, "nvmlInit_v2"));
      const auto by_bus =
          reinterpret_cast<int (*)(const char*, void**)>(dlsym(so, "nvmlDeviceGetHandleByPciBusId_v2"));
      char bus[32] = {};
      int current = 0;
      if (!init || !by_bus || init() != 0) return;
      if (cudaGetDevice(&current) != cudaSuccess ||
          cudaDeviceGetPCIBusId(bus, sizeof bus, current) != cudaSuccess)
        return;
      if (by_bus(bus, &device) != 0) device = nullptr;
      clock = reinterpret_cast<decltype(clock)>(dlsym(so, "nvmlDeviceGetClockInfo"));
      power = reinterpret_cast<decltype(power)>(dlsym(so, "nvmlDeviceGetPowerUsage"));
    }
  };
  static const Nvml nvml;
  DeviceState state;
  unsigned value = 0;
  if (nvml.device && nvml.clock && nvml.clock(nvml.device, 1, &value) == 0) state.clock_mhz = int(value);
  if (nvml.device && nvml.power && nvml.power(nvml.device, &value) == 0) state.power_w = value / 1000.0;
  return state;
}

}  // namespace gg
