// SPDX-License-Identifier: MIT
//
// Timing on a GPU: contestants take turns, round by round, so clocks and heat treat them alike.

#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/harness/bench/nvml.h"

namespace gg {

// Measures what launches take. A test has one of its own, which knows it beforehand.
class Stopwatch {
 public:
  virtual ~Stopwatch() = default;
  virtual cudaStream_t stream() = 0;  // for all launches
  // Microseconds that the device spends on what `work` launches; `meanwhile` runs on the host
  // while it does.
  virtual double time(const std::function<void()>& work, const std::function<void()>& meanwhile) = 0;
  // Records what `work` launches into a graph. Each call of the result launches all of it again.
  virtual std::function<void()> record(const std::function<void()>& work) = 0;
  virtual void wait() = 0;  // until the device has done what was launched
  virtual DeviceState state() = 0;
};
std::unique_ptr<Stopwatch> gpu_stopwatch();

struct Contestant {
  std::string name;
  std::function<void(int set, cudaStream_t stream)> launch;  // one launch on buffer set `set`
  // Is the output of the first `sets` buffer sets right after `replay`, which runs what was timed
  // on them once more? Empty: nobody asks.
  std::function<bool(int sets, const std::function<void()>& replay)> right{};
  // A launch adds to its output. Then a batch has one launch for each set: `replay` adds once.
  bool adds = false;
};

struct Timing {  // microseconds per launch
  double median = 0, p10 = 0, p90 = 0;
  // Clocks of the multiprocessors, while busy; 0 where NVML is not there.
  int clock_mhz = 0, clock_after_mhz = 0;
  double power_w = 0;
  bool right = true;  // what was timed, run again behind the last round
};

// A GPU at its power limit sets its clock by what it drew in the last tenth of a second. Brief
// rounds, of 3 ms, all have the clock that they draw together: who needs fewer cycles wins. A
// sustained one, of 30 ms, comes behind 100 ms of the same contestant, which has the clock that its
// own power allows: who needs fewer joules wins.
enum class Rounds { brief, sustained };

// Launches rotate through `sets` buffer sets (1: warm). Launches shorter than 200 us are recorded
// into graphs of many, so that the host's launch rate does not show.
std::vector<Timing> time_contestants(const std::vector<Contestant>& contestants, int sets, Rounds rounds,
                                     Stopwatch& stopwatch);

// How many buffer sets of so many bytes a launch rotates through, so that all of them are more
// than twice the L2 and none is found there: cold. At most 4096; smaller problems cannot be cold
// and get 0.
int cold_sets(size_t bytes, size_t l2_bytes);

// One launch at a time after a pause, so that neither heat nor the power limit has lowered the
// clock: for ceilings.
Timing time_rested(const Contestant& contestant);

}  // namespace gg
