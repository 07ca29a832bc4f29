// SPDX-License-Identifier: MIT
//
// Reading options, the same from the environment and from gg-emu's command line.

#include "common/emu/cudart/settings.h"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "common/emu/cudart/played_device.h"

namespace gg::emu {

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

double parse_seconds(const std::string& option, const std::string& value) {
  constexpr size_t kMostDigits = 6;
  const size_t point = std::min(value.find('.'), value.size());
  const std::string whole = value.substr(0, point),
                    fraction = value.substr(std::min(point + 1, value.size()));
  const bool digits = (whole + fraction).find_first_not_of("0123456789") == value.npos;
  if (!digits || whole.empty() || whole.size() > kMostDigits || fraction.size() > kMostDigits)
    throw std::invalid_argument(option + " " + value + ": give seconds, 0 to 999999, as 5 or 0.5");
  return std::strtod(value.c_str(), nullptr);
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

namespace {

using Takes = Setting::Takes;
using Text = const std::string&;

constexpr Setting kSettings[] = {
    {"--like", "GG_EMU_LIKE", "a100|h100|h200|b200",
     "the device it plays; default h200, or b200 for a program that holds only sm_100a PTX", Takes::value,
     [](Settings& s, Text name, Text value) {
       check_like(name, value);
       s.like = value;
     }},
    {"--order", "GG_EMU_ORDER", "S[:fair|skew]", "order of warps and of asynchronous effects, default 0:fair",
     Takes::value, [](Settings& s, Text name, Text value) { s.run.order = parse_order(name, value); }},
    {"--report", "GG_EMU_REPORT", "", "counts of each kernel on stderr when the program ends", Takes::nothing,
     [](Settings& s, Text, Text) { s.report = true; }},
    {"--allow", "GG_EMU_ALLOW", "KIND[,KIND]",
     "warn about these faults and go on, as hardware does: kinds with a * below", Takes::list,
     [](Settings& s, Text name, Text value) { s.run.allowed = parse_allowed(name, value); }},
    {"--trace", "GG_EMU_TRACE", "FILE",
     "what each warp did, for chrome://tracing and Perfetto: load, mma, wait, epilogue,\n"
     "other. The axis is issue order, 1 us for each warp instruction, not time",
     Takes::new_file, [](Settings& s, Text, Text value) { s.trace = value; }},
    {"--line-counts", "GG_EMU_LINE_COUNTS", "FILE", "how often warps executed each line of PTX, as CSV",
     Takes::new_file, [](Settings& s, Text, Text value) { s.line_counts = value; }},
    {"--multiprocessors", "GG_EMU_MULTIPROCESSORS", "N",
     "the device has N of them and not its own number: programs that fill a device end sooner", Takes::value,
     [](Settings& s, Text name, Text value) { s.multiprocessors = parse_multiprocessors(name, value); }},
    {"--ptx", "GG_EMU_PTX", "FILE",
     "PTX that runs in place of the program's module that has its first kernel", Takes::file,
     [](Settings& s, Text, Text value) { s.ptx = value; }},
    {"--launches", "GG_EMU_LAUNCHES", "FILE", "gets the names of the kernels launched, a line each",
     Takes::new_file, [](Settings& s, Text, Text value) { s.launches = value; }},
    {"--progress-after", "GG_EMU_PROGRESS_AFTER", "SECONDS",
     "work of more than so many seconds shows on a terminal how far it is, default 5; 0: all work", Takes::value,
     [](Settings& s, Text name, Text value) { s.progress_after = parse_seconds(name, value); }},
};

}  // namespace

std::span<const Setting> user_settings() { return kSettings; }

Settings read_settings() {
  Settings settings;
  for (const Setting& setting : kSettings) {
    const char* const value = std::getenv(setting.variable);
    if (value && *value) setting.take(settings, setting.variable, value);
  }
  return settings;
}

}  // namespace gg::emu
