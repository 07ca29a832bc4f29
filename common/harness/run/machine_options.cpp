// SPDX-License-Identifier: MIT
//
// Values of --device, --order and of options that are numbers.

#include "common/harness/run/machine_options.h"

#include <cerrno>
#include <cstdlib>

#include "common/harness/base/text.h"
#include "common/harness/machine/emulator.h"

namespace gg {

std::string MachineOptions::order() const {
  return format("%llu:%s", static_cast<unsigned long long>(order_seed), order_skew ? "skew" : "fair");
}

void MachineOptions::take_order_of_emulator() {
  if (const GgEmuInterface* const emu = emulator()) {
    int skew = 0;
    emu->order(&order_seed, &skew);
    order_skew = skew;
  }
}

void MachineOptions::take_device(const std::string& value) {
  GG_REQUIRE(value == "auto" || value == "gpu" || value == "emu",
             "--device %s: auto, gpu or emu are accepted", value.c_str());
  device = value == "gpu" ? Device::gpu : value == "emu" ? Device::emulator : Device::automatic;
}

void MachineOptions::take_order(const std::string& value) {
  const std::vector<std::string> parts = split(value, ':');
  order_seed = uint64_t(whole_number("order", parts[0], 0, INT64_MAX));
  GG_REQUIRE(parts.size() == 1 || (parts.size() == 2 && (parts[1] == "fair" || parts[1] == "skew")),
             "--order %s: S, S:fair or S:skew are accepted", value.c_str());
  order_skew = parts.size() == 2 && parts[1] == "skew";
}

int64_t whole_number(const std::string& option, const std::string& text, int64_t least, int64_t most) {
  char* rest = nullptr;
  errno = 0;
  const long long value = std::strtoll(text.c_str(), &rest, 10);
  GG_REQUIRE(!text.empty() && !*rest && !errno, "--%s %s: not a whole number: give one", option.c_str(),
             text.c_str());
  GG_REQUIRE(value >= least && value <= most, "--%s %s: must lie between %lld and %lld: give one of these",
             option.c_str(), text.c_str(), static_cast<long long>(least), static_cast<long long>(most));
  return value;
}

}  // namespace gg
