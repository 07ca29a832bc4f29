// SPDX-License-Identifier: MIT
//
// A reader's request, whatever the sizes: types, tile, layout, weights, tile scheduler, epilogue.

#pragma once

#include <map>
#include <string>

#include "common/harness/problem/epilogue.h"
#include "common/harness/problem/operands.h"
#include "common/kernel/error.h"
#include "common/kernel/types.cuh"

namespace gg {

enum class Weights {
  dense,    // B and its scales are one tensor each
  discrete  // each expert's are tensors of their own, given by address
};
enum class Scheduler {
  fixed,   // tiles by block index
  dynamic  // tiles by a counter in global memory
};

struct IdeasOff {  // every idea that can be switched off: is it?
  std::map<std::string, bool> by_name{};
};

struct Request {
  Formats formats{};
  bool wide_offsets = false;  // int64_t offsets
  bool accumulate = false;    // adds to what D holds
  ClusterTileShape tile{};
  int blocks = 0;  // of a persistent kernel; 0: the chapter chooses
  // By name; only those that were given.
  std::map<std::string, int> numbers{};
  BLayout b_layout = BLayout::kn;
  Weights weights = Weights::dense;
  Scheduler scheduler = Scheduler::fixed;
  Epilogue epilogue{};
  IdeasOff ideas_off{};
};

// Throws gg::Error (bad input) for what excludes each other.
void require_consistent(const Request& request);

}  // namespace gg
