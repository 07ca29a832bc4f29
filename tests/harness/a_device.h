// SPDX-License-Identifier: MIT
//
// Tests that need a device: the emulator where it is the runtime, or else a GPU.

#pragma once

#include <string>

#include "common/harness/machine/emulator.h"
#include "common/harness/run/device.h"

namespace gg {

// Why the test has no device; an empty text if it has one, which is chosen then.
inline std::string no_device() {
  if (emulator()) return "";
  try {
    choose_device(Options::Device::gpu, {});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace gg
