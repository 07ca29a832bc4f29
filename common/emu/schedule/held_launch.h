// SPDX-License-Identifier: MIT
//
// A launch that need not run at once. With programmatic dependent launch a kernel begins while the one before
// it in the stream still runs, and griddepcontrol.wait waits for that one's end. The harshest order that this
// allows: the later one comes as far as its waits before the earlier one has done anything.

#pragma once

#include <memory>

#include "common/emu/state/grid.h"

namespace gg::emu {

class HeldLaunch {
 public:
  // Throws Fault if no device takes such a launch. `memory` outlives it.
  HeldLaunch(const Launch& launch, GlobalMemory& memory, const RunOptions& options);
  ~HeldLaunch();
  HeldLaunch(const HeldLaunch&) = delete;
  HeldLaunch& operator=(const HeldLaunch&) = delete;

  // While the launch before it has not ended: each block, of a few hundred, runs until its warps wait in
  // griddepcontrol.wait or cannot go on for another reason. Throws Fault.
  void run_to_wait();
  // Runs it to its end; adds to `counts`, if not null, also where it throws Fault.
  void finish(Counts* counts);

 private:
  class Run;
  std::unique_ptr<Grid> grid_;
  std::unique_ptr<Run> run_;
};

// Does this kernel allow the one behind it to begin before it has ended (griddepcontrol.launch_dependents)?
bool launches_dependents(const Code& code);

}  // namespace gg::emu
