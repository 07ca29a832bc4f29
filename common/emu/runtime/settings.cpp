// SPDX-License-Identifier: MIT
//
// Reading options, the same from the environment and from gg-emu's command line.

#include "common/emu/runtime/settings.h"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "common/emu/runtime/played_device.h"

namespace gg::emu {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

void check_like(const std::string& option, const std::string& value) {
  if (!find_device(value))
    throw std::invalid_argument(option + " " + value + ": the devices are a100, h100, h200 and b200");
}

Order parse_order(const std::string& option, const std::string& value) {
  const size_t colon = value.find(':');
  const std::string seed = value.substr(0, colon),
                    policy = colon == std::string::npos ? "fair" : value.substr(colon + 1);
  const bool digits =
      !seed.empty() && seed.size() < 19 && seed.find_first_not_of("0123456789") == std::string::npos;
  if (!digits || (policy != "fair" && policy != "skew")) {
    throw std::invalid_argument(option + " " + value +
                                ": an order is a whole number, then perhaps :fair or :skew");
  }
  return {std::stoull(seed), policy == "skew"};
}

int parse_multiprocessors(const std::string& option, const std::string& value) {
  constexpr int kMost = 1024;
  const bool digits =
      !value.empty() && value.size() < 5 && value.find_first_not_of("0123456789") == value.npos;
  const int count = digits ? std::stoi(value) : 0;
  if (count < 1 || count > kMost)
    throw std::invalid_argument(option + " " + value + ": a device has 1 to 1024 multiprocessors");
  return count;
}

uint32_t parse_allowed(const std::string& option, const std::string& value) {
  uint32_t allowed = 0;
  for (size_t at = 0; at <= value.size();) {
    const size_t comma = std::min(value.find(',', at), value.size());
    const std::string name = value.substr(at, comma - at);
    FaultKind kind;
    if (!fault_kind(name, &kind)) {
      throw std::invalid_argument(option + " " + value + ": \"" + name +
                                  "\" is no kind of fault, gg-emu --help lists them");
    }
    if (!can_be_allowed(kind)) {
      throw std::invalid_argument(option + " " + value + ": nobody can go on behind a fault of kind \"" +
                                  name + "\", these kinds can be allowed: " + allowable_kinds());
    }
    allowed |= 1u << int(kind);
    at = comma + 1;
  }
  return allowed;
}

Settings read_settings() {
  Settings settings;
  settings.like = environment("GG_EMU_LIKE");
  if (!settings.like.empty()) check_like("GG_EMU_LIKE", settings.like);
  const std::string order = environment("GG_EMU_ORDER"), allow = environment("GG_EMU_ALLOW");
  if (!order.empty()) settings.run.order = parse_order("GG_EMU_ORDER", order);
  if (!allow.empty()) settings.run.allowed = parse_allowed("GG_EMU_ALLOW", allow);
  settings.report = !environment("GG_EMU_REPORT").empty();
  settings.trace = environment("GG_EMU_TRACE");
  settings.line_counts = environment("GG_EMU_LINE_COUNTS");
  settings.ptx = environment("GG_EMU_PTX");
  settings.launches = environment("GG_EMU_LAUNCHES");
  const std::string multiprocessors = environment("GG_EMU_MULTIPROCESSORS");
  if (!multiprocessors.empty())
    settings.multiprocessors = parse_multiprocessors("GG_EMU_MULTIPROCESSORS", multiprocessors);
  return settings;
}

}  // namespace gg::emu
