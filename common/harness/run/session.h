// SPDX-License-Identifier: MIT
//
// The state that checking, counting and timing share: the chapter, what was asked of it, the
// machine, and the outcome.

#pragma once

#include <algorithm>
#include <functional>
#include <memory>

#include "common/harness/machine/buffers.h"
#include "common/harness/run/device.h"
#include "common/harness/run/options.h"
#include "common/harness/verify/failure.h"

namespace gg {

struct Tally {  // of the problems so far
  int checked = 0, failed = 0;
  // Among those: problems in other forms than the one that was asked for.
  int forms = 0, failed_forms = 0;
  float worst_ratio = 0, worst_factor = 0;  // of random data: verify/trials.h
};

struct Session {
  const Chapter& chapter;
  const Options& options;
  const Launch& launch;
  Setup setup;
  Device device{};
  std::unique_ptr<Machine> machine{};
  Tally tally{};

  uint64_t bench_seed() const { return options.seed + 1000; }  // of the first set of buffers
};

// How this chapter wants its problems, with these options.
Setup setup_of(const Chapter& chapter, const Options& options);

// Random data on these buffers, over poison: what fails here is neither timed nor counted.
bool correct(Session& session, Buffers& buffers, const std::function<void(cudaStream_t)>& launch);
// The likely mistake in outputs that `correct` refused.
Failure why_wrong(Session& session, const Buffers& buffers);

}  // namespace gg
