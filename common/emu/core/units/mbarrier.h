// SPDX-License-Identifier: MIT
//
// The mbarriers of a block as other families use them: arrivals and bytes that asynchronous
// operations bring. PTX ISA: "Parallel Synchronization and Communication Instructions: mbarrier".

#pragma once

#include <map>

#include "common/emu/core/units/async_operation.h"

namespace gg::emu {

constexpr int64_t kMbarrierMost = (1 << 20) - 1;  // arrivals, and bytes in either direction
constexpr int kMbarrierBytes = 8;

// A phase ends when no arrival is pending and as many bytes have come as were expected. Its parity
// is that of its number, which begins with 0.
struct Mbarrier {
  int64_t count = 0;     // arrivals that a phase wants
  int64_t pending = 0;   // that this one lacks
  int64_t tx = 0;        // bytes expected less bytes that have come; these may come first
  uint64_t phase = 0;    // the current one
  int64_t expected = 0;  // bytes, in this phase
  bool loads = false;    // a bulk or tensor copy has brought some of them
  bool loaded = false;   // the same of the phase before
  Clock arriving;        // of those who have arrived in this phase and before
  Clock ended;           // of those of the phases that have ended
  Party initialised;
  uint32_t initialised_at = 0;  // ticks of that warp's clock
  // Arrivals of this phase and of the one before, each warp once for each instruction: for reports.
  struct Arrival {
    const Warp* warp;
    const Instr* instr;
    Mask lanes;
  };
  std::vector<Arrival> arrivals, arrivals_before;
  std::vector<uint64_t> seen;  // warp of the block -> phases whose end it has seen
};

struct Mbarriers {
  std::map<size_t, Mbarrier> live;      // by offset in shared memory
  std::map<size_t, Party> invalidated;  // who did so last, of those that are no more
  struct Wait {                         // the newest of a lane
    bool on = false;                    // it is suspended, in try_wait
    uint64_t phase = 0, given_up = 0;
    size_t offset = 0;  // of the barrier
  };
  std::vector<Wait> waits;   // by thread, whole warps
  uint64_t given_up = 0;     // times that all suspended lanes were sent on with false
  int fruitless = 0;         // of these, since a barrier of this block last changed
  bool may_give_up = false;  // an effect is there that will do so
};

// Where a barrier is: those who signal it later look it up again.
struct BarrierAt {
  Block* block = nullptr;
  size_t offset = 0;
};
// The barrier a lane names, or one it names by place. Faults if there is none, or if nothing orders
// its initialisation before this use.
BarrierAt use_mbarrier(Warp& warp, const Instr& instr, int lane, const AddressOperand& operand);
void use_mbarrier(Warp& warp, const Instr& instr, int lane, const BarrierAt& at);
// The mbarrier that counts bytes which go to block `data`. It must be in that block. If another
// block is allowed, it is the one at the same place in `data`: an H200 looks at the offset only.
BarrierAt barrier_beside(Warp& warp, const Instr& instr, int lane, const Block& data, const BarrierAt& named);

// The changes that instructions and asynchronous operations make to an mbarrier. An arrival
// publishes `clock`, or nothing if it is null.
void mbarrier_expect(const Issuer& issuer, const BarrierAt& at, int64_t bytes);
// Publishes issuer.clock.
void mbarrier_complete(const Issuer& issuer, const BarrierAt& at, int64_t bytes);
void mbarrier_arrive(const Issuer& issuer, const BarrierAt& at, int64_t arrivals, const Clock* clock);

}  // namespace gg::emu
