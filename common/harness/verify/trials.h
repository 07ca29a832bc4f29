// SPDX-License-Identifier: MIT
//
// Is a launch right? Several trials on one problem; the first that fails says what it looks like.

#pragma once

#include <optional>
#include <string>

#include "common/harness/machine/buffers.h"
#include "common/harness/verify/failure.h"

namespace gg {

struct CheckOptions {
  uint64_t seed = 0;
  // Record the launch once and replay it with other offsets (chapters from 05a on).
  bool graph_replay = false;
  bool neighbours = false;  // also with NaN in the neighbouring groups' operands (set `edges`)
  bool brief = false;       // only the trials that say so
};

struct CheckResult {
  std::optional<Failure> failure;
  float worst_ratio = 0;   // random data: error over limit
  float worst_factor = 0;  // random data: what sum_factor would have had to be
  std::string note{};      // of an epilogue: its outputs, and how random data fared
};

// Runs every trial on one problem; stops at the first failure.
CheckResult check_problem(Machine& machine, const Setup& setup, const Launch& launch, const Shape& shape,
                          const CheckOptions& options);

// The same launch twice, over two fills, on operands read from files: NaN passes where the
// reference is NaN, or a sum may overflow both ways.
struct GivenOperands;
CheckResult check_given(Machine& machine, const Setup& setup, const Launch& launch,
                        const GivenOperands& given);

// Uniform in +-16 up to K = 8192, halved for each fourfold K: partial sums are exact in fp32.
int integer_range(int k);

// Other row counts for the same buffers: rotated by one group, or `step` rows moved where
// that changes nothing.
Shape other_offsets(const Shape& shape, int step = 1);

}  // namespace gg
