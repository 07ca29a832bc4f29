// SPDX-License-Identifier: MIT
//
// Records what each warp did, for chrome://tracing and Perfetto. The axis is issue order: the
// warp instructions of a block's cluster, counted as they are issued. It is no time, and says so
// in the file.

#pragma once

#include <memory>
#include <string>

#include "common/emu/core/state/grid.h"

namespace gg::emu {

class Trace {
 public:
  Trace();
  ~Trace();

  // Makes the instructions of a kernel tell of themselves; code that was not attached runs as ever.
  void attach(Code& code);
  // While one lives, the launch is recorded. With a null trace nothing happens.
  class Recording {
   public:
    Recording(Trace* trace, const Launch& launch);
    ~Recording();
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

   private:
    Trace* trace_;
    const Launch& launch_;
  };

  // Both cover the launches that have ended, whatever runs now.
  std::string json() const;
  std::string summary() const;  // what is there, and what was left out

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace gg::emu
