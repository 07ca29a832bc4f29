// SPDX-License-Identifier: MIT
//
// An exhibit is a kernel with a mistake that somebody reported, and the same kernel without it. A
// program of the museum runs one of the two on the emulator:
//     build/bin/gg-emu build/tests/museum_hopper straddling_pair wrong
// Exit codes: 0 the result is right, 1 it is wrong, 2 the command line is, 3 the emulator
// reported a fault.

#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "common/harness/machine/emulator.h"
#include "common/harness/run/device.h"
#include "common/harness/verify/trials.h"
#include "common/kernel/check.h"
#include "tests/device_array.h"

namespace museum {

using Verdict = std::string;  // a sentence that says what is wrong; empty: nothing is

struct Exhibit {
  const char* name;
  Verdict (*wrong)();
  Verdict (*right)();
};

using testing_gg::Array;

// Small whole numbers, whose products and sums are exact.
inline float whole_number(int i) { return float(i * 7 % 11 - 5); }
template <class T>
std::vector<T> whole_numbers(int count) {
  std::vector<T> values;
  for (int i = 0; i < count; ++i) values.push_back(T(whole_number(i)));
  return values;
}

// The verdict of a plain loop over what the host expects.
inline Verdict compare(const std::vector<float>& got, const std::vector<float>& expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    if (got[i] != expected[i])
      return gg::format("element %zu: expected %g, got %g", i, double(expected[i]), double(got[i]));
  }
  return "";
}

// The verdict of the harness on a failure.
inline Verdict verdict_of(const std::optional<gg::Failure>& failure) {
  if (!failure) return "";
  return gg::format("FAILED (%s): %s", gg::symptom_name(failure->symptom), failure->sentence.c_str());
}
inline Verdict judged(const gg::Setup& setup, const gg::Launch& launch, const gg::Shape& shape) {
  return verdict_of(gg::check_problem(*gg::emulator_machine(), setup, launch, shape, {}).failure);
}

inline int show(int count, char** words, gg::Arch arch, const std::vector<Exhibit>& exhibits) {
  const std::string name = count == 3 ? words[1] : "", which = count == 3 ? words[2] : "";
  for (const Exhibit& each : exhibits) {
    if (name != each.name || (which != "wrong" && which != "right")) continue;
    try {
      gg::choose_device(gg::Options::Device::emulator, {.id = "museum", .arch = arch}, words);
      const Verdict verdict = which == "right" ? each.right() : each.wrong();
      std::printf("%s\n", verdict.empty() ? "right" : verdict.c_str());
      return int(verdict.empty() ? gg::Exit::ok : gg::Exit::check_failed);
    } catch (const gg::Error& error) {
      std::fprintf(stderr, "%s\n", error.what());
      return int(error.code);
    }
  }
  std::fprintf(stderr, "usage: %s EXHIBIT wrong|right, EXHIBIT being one of", words[0]);
  for (const Exhibit& each : exhibits) std::fprintf(stderr, " %s", each.name);
  std::fprintf(stderr, "\n");
  return int(gg::Exit::bad_input);
}

}  // namespace museum
