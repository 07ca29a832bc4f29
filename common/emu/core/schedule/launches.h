// SPDX-License-Identifier: MIT
//
// Running launches, now or held until a later one wants it.

#pragma once

#include <cstdint>
#include <memory>

#include "common/emu/core/state/grid.h"

namespace gg::emu {

struct RunOptions {
  Order order;
  int workers = 0;
  int multiprocessors = 132;  // of the device it plays
  bool races = true;
  // False: what only looks for bugs in shared memory is left out, races too. Addresses are checked
  // all the same.
  bool checks = true;
  uint32_t allowed = 0;
  // Turns without a change, 20,000 rounds each, before a cluster is looked at: see polls_in_vain().
  int patience = 1000;
};

// Runs a launch to its end, clusters spread over `options.workers` threads (0: one per core).
// Throws Fault: of several, that of the first cluster. What was counted until then is in `counts`,
// if that is not null, all the same.
void run_launch(const Launch& launch, GlobalMemory& memory, const RunOptions& options, Counts* counts);

// A launch that need not run at once. With programmatic dependent launch a kernel begins while the
// one before it in the stream still runs, and griddepcontrol.wait waits for that one's end. The
// harshest order that this allows: the later one comes as far as its waits before the earlier one
// has done anything.
class HeldLaunch {
 public:
  // Throws Fault if no device takes such a launch. `memory` outlives it.
  HeldLaunch(const Launch& launch, GlobalMemory& memory, const RunOptions& options);
  ~HeldLaunch();
  HeldLaunch(const HeldLaunch&) = delete;
  HeldLaunch& operator=(const HeldLaunch&) = delete;

  // While the launch before it has not ended: each block, of a few hundred, runs until its warps
  // wait in griddepcontrol.wait or cannot go on for another reason. Throws Fault.
  void run_to_wait();
  // Runs it to its end; adds to `counts`, if not null, also where it throws Fault.
  void finish(Counts* counts);

 private:
  class Run;
  std::unique_ptr<Grid> grid_;
  std::unique_ptr<Run> run_;
};

// Does this kernel allow the one behind it to begin before it
// has ended (griddepcontrol.launch_dependents)?
bool launches_dependents(const Code& code);

}  // namespace gg::emu
