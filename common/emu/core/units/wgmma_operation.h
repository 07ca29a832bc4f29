// SPDX-License-Identifier: MIT
//
// A decoded wgmma.mma_async, what must be true when it is issued, its sums, and what a warpgroup
// has under way.

#pragma once

#include <algorithm>
#include <deque>
#include <vector>

#include "common/emu/core/decode/decode.h"
#include "common/emu/core/state/access.h"
#include "common/emu/core/units/footprint.h"
#include "common/emu/core/units/fused_sum.h"
#include "common/emu/core/units/operand_layout.h"

namespace gg::emu {

constexpr int kWarpgroupWarps = 4;
constexpr int kWarpRows = 16;  // rows of A and D that one warp has

struct WgmmaForm {  // one decoded wgmma.mma_async
  int n = 0, k = 0;
  Narrow a, b;
  Cut cut;
  bool a_in_registers = false, negate_a = false, negate_b = false;
  OperandShape a_shape, b_shape;
  std::vector<uint32_t> d_slots, a_slots;
  std::vector<int32_t> d_registers, a_registers;  // indices, ascending
  std::vector<int32_t> others;                    // of descriptors and scale-d
};

inline const WgmmaForm& form_of(const Instr& in) { return *static_cast<const WgmmaForm*>(in.extra); }

struct WgmmaOperation {
  const Instr* instr = nullptr;
  uint64_t a = 0, b = 0;  // descriptors
  bool accumulates = false;

  bool operator==(const WgmmaOperation& other) const = default;
};

struct WgmmaGroup {  // between two commits
  std::vector<WgmmaOperation> operations[kWarpgroupWarps];
  std::vector<uint64_t> units;    // of shared memory that they read, a bit each
  const Instr* reader = nullptr;  // one of them
  std::vector<SharedMemory::Handle> windows;
  Clock clock;  // of the warps that have committed it
};

// The state of a warpgroup; its four warps share it.
struct WgmmaState {
  struct Of {
    Warp* warp = nullptr;
    uint64_t commits = 0;   // groups it has committed
    uint64_t released = 0;  // groups it has waited for
    size_t waits = 0;       // wait_group instructions it has come to
    bool waiting = false;
    bool fenced = false;  // a wgmma.fence since its last commit
  };
  Of of[kWarpgroupWarps];
  std::deque<WgmmaGroup> groups;  // the first is number `first`
  uint64_t first = 0, done = 0;   // `done` groups have their sums
  std::vector<uint64_t> commits_at_wait;
  Footprints footprints;

  WgmmaGroup& group(uint64_t number) {
    while (number - first >= groups.size()) groups.emplace_back();
    return groups[size_t(number - first)];
  }
  uint64_t committed_by_all() const {
    uint64_t least = of[0].commits;
    for (const Of& each : of) least = std::min(least, each.commits);
    return least;
  }
};

// Returns which of the four warps it is.
inline int part_of(const Warp& w) { return w.index % kWarpgroupWarps; }

// wgmma_checks.cpp: what must be true when an operation is issued.
// Faults if a lane has not written the register.
void require_written(Warp& w, const Instr& in, int32_t index, const char* cause);

// Registers that are not under way: ordinary instructions may have touched them, so a fence must
// have followed. PTX is what a compiler made of a program, and it moves the initialisation of
// registers, so a fence anywhere since the last commit is taken for it. It is a proxy fault as the
// fence is to registers what fence.proxy.async is to shared memory.
void check_registers(Warp& w, WgmmaState& state, const Instr& in, bool accumulates);
// Each warp answers for its rows of A and for all of B: written, and handed on to the asynchronous
// proxy. The units that the whole warpgroup reads go to the group, once.
void check_operands(Warp& w, WgmmaState& state, WgmmaGroup& group, const WgmmaOperation& operation);

// wgmma_sums.cpp: D = A * B + D, or A * B, for `parts` of the four warps from `first_part` on.
void multiply(WgmmaState& state, const WgmmaOperation& operation, int first_part, int parts);

}  // namespace gg::emu
