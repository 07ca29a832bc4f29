// SPDX-License-Identifier: MIT
//
// The driver's readings of the device while it works.

#pragma once

namespace gg {

// Clock and power through NVML, loaded at run time; zeros where it cannot be.
struct DeviceState {
  int clock_mhz = 0;
  double power_w = 0;
};
DeviceState device_state();

}  // namespace gg
