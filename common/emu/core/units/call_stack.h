// SPDX-License-Identifier: MIT
//
// Calls of functions that have code of their own (Code::called). Each lane has a stack of them:
// where it goes on, its frame in local memory, and what the function's registers held for an
// earlier call of it that is not over.

#pragma once

#include <cstdint>
#include <vector>

#include "common/emu/core/state/grid.h"

namespace gg::emu {

// Bytes of local memory that calls of a thread may take: what a thread can have.
constexpr int64_t kMostFrames = int64_t(1) << 19;

struct CallStacks {
  struct Call {
    int function = 0;   // in Code::called
    int32_t back = 0;   // the instruction to go on at
    int64_t frame = 0;  // where it begins in the thread's local memory
    // The frame of the function's call that is not over; -1: there is none.
    int64_t before = -1;
    std::vector<int64_t> results;  // where the caller wants them, addresses in local memory
    std::vector<uint8_t> saved;    // the registers of that call
  };
  std::vector<Call> lanes[kLanes];
  std::vector<int64_t> frames[kLanes];  // by function: of its newest call, -1: there is none
};

// A lane enters a function: arguments come from these addresses of its local memory, results
// go to those. Returns the function's first instruction. Faults (bounds) where frames take
// more than kMostFrames.
int32_t enter_call(Warp& warp, const Instr& instr, int lane, int function,
                   const std::vector<int64_t>& arguments, const std::vector<int64_t>& results);
// A lane leaves the function that it is in. Returns the instruction behind the call.
int32_t leave_call(Warp& warp, int lane);

}  // namespace gg::emu
