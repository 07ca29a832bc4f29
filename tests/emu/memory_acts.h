// SPDX-License-Identifier: MIT
//
// A table of the instructions that touch a block's shared memory: how each is written, which bytes
// it touches and in which way, and how its warp waits for it. memory_checks_test.cpp plants
// mistakes with every one.

#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/emu/core/state/faults.h"
#include "common/emu/core/state/instr.h"

namespace memory_test {

enum class Who { lane, warp, warpgroup };

struct Act {
  std::string name;
  std::string before;  // PTX ahead of the instruction
  // It has a line of its own and touches the bytes from %r20 (or %rd20) on.
  std::string instruction;
  std::string issued;                        // behind it, until the operation is under way
  std::string weak;                          // a wait that is not enough, "": none
  std::string wait;                          // until it is over
  int reads = 0, writes = 0, alignment = 1;  // bytes
  Who who = Who::lane;
  bool async = false;   // through the asynchronous proxy
  bool strong = false;  // two such accesses do not race
  bool window = false;  // nobody may touch the bytes until its wait
  bool tensor = false;  // by the tensor core of sm_100a
  bool sm100 = false;
  bool lands_by_wait = false;  // its writes happen at the wait: cp.async
  int rank = 2;                // of the tensor map
};

// All of them: memory_acts.cpp, and those of the asynchronous proxy in memory_acts_async.cpp.
std::vector<Act> generic_acts();
std::vector<Act> async_acts();
std::vector<Act> all_acts();

// Every kernel begins with this: names of registers, mbarriers 0 to 3 of `bars` for one arrival,
// `tile` and `other` filled with `fill`, all behind a barrier.
std::string kernel(const Act& like, const std::string& body, bool fill = true);

// PTX that waits at the act's mbarrier, %r22.
std::string wait_at_mbarrier();
// Lanes other than those of the act jump over it.
std::string only(Who who, const std::string& body);

// A launch of one cluster, whose blocks have 256 threads.
struct Conditions {
  int rank = 2;  // of the tensor map
  uint64_t seed = 0;
  bool skew = false;
  int blocks = 1;
  bool freed = false;      // `in`, before the launch
  bool unwritten = false;  // nobody has written `in` and `out`
};
// The report of the fault; "" if there is none.
struct Outcome {
  std::string kind, report;
};
Outcome run(const std::string& ptx, const Conditions& conditions);

const char* family_name(gg::emu::Family family);  // "cp_async"

// The instruction at the line marked HERE, and the counters that it moved.
struct Counted {
  std::string opcode, family;
  std::map<std::string, uint64_t> moved;
};
Counted counted(const std::string& ptx, const Conditions& conditions);

// Marks a line of the PTX that a report must name.
constexpr const char* kHere = "  // HERE";
constexpr const char* kOther = "  // OTHER";
int line_of(const std::string& ptx, const std::string& mark);  // 0: it is not there
// The lines a report names: its own, then those of the others.
std::vector<int> lines_in(const std::string& report);
// "", or what is wrong: the run must end with this kind of fault at the line marked HERE, "": with
// none; with `other` its report also names the line marked OTHER.
std::string differs(const std::string& ptx, const Conditions& conditions, const std::string& kind,
                    bool other = false);

// The act's instruction, marked, with what goes before it; until it is under way; until it is over.
std::string marked(const Act& act, const char* mark);
std::string begun(const Act& act, const char* mark);
std::string done(const Act& act, const char* mark);

}  // namespace memory_test
