// SPDX-License-Identifier: MIT
//
// The options that say on which machine a chapter runs, and numbers as options take them.

#pragma once

#include <cstdint>
#include <string>

namespace gg {

struct MachineOptions {
  enum class Device { automatic, gpu, emulator };
  Device device = Device::automatic;
  uint64_t order_seed = 0;  // the emulator's order: of warps and of asynchronous effects
  bool order_skew = false;

  std::string order() const;  // "0:fair"

  // The order that the emulator was started with, where it is loaded: GG_EMU_ORDER.
  void take_order_of_emulator();
  // The values of --device and of --order. Throw gg::Error (bad input).
  void take_device(const std::string& value);
  void take_order(const std::string& value);
};

// The whole number that `text`, the value of --`option`, is. Throws gg::Error (bad input) if it is
// none, or lies outside [least, most].
int64_t whole_number(const std::string& option, const std::string& text, int64_t least, int64_t most);

}  // namespace gg
