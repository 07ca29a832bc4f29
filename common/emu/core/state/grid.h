// SPDX-License-Identifier: MIT
//
// The machine that executes PTX: a grid of clusters of blocks of warps of 32 lanes. schedule/
// decides who runs next.

#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/emu/core/state/counts.h"
#include "common/emu/core/state/faults.h"
#include "common/emu/core/state/instr.h"
#include "common/emu/core/state/memory.h"
#include "common/emu/core/state/order_random.h"
#include "common/emu/core/state/race.h"
#include "common/emu/core/state/warp.h"
#include "common/emu/core/text/ptx.h"

namespace gg::emu {

struct Cluster;
struct Grid;

struct Barrier {  // bar.sync and its kin, one of 16 per block
  // From the first arrival until all are there; those who wait keep it.
  struct Phase {
    int arrived = 0, expected = 0;  // threads
    bool whole_block = false;       // no count was given
    bool done = false;
    // bar.red: threads that brought a predicate, and those that said true.
    int voters = 0, votes = 0;
    const Instr* entered_by = nullptr;  // the newest arrival
    const Warp* entered_warp = nullptr;
    Clock clock;  // of those who have arrived
  };
  std::shared_ptr<Phase> phase;  // null: nobody is there
};

struct Mbarriers;  // the mbarriers of a block, units/mbarrier.h
class Tmem;        // tensor memory of a block, tmem.h

struct Block {
  Grid* grid = nullptr;
  Cluster* cluster = nullptr;
  int64_t linear = 0;  // in the grid
  int id[3] = {0, 0, 0};
  int rank = 0;  // in its cluster
  SharedMemory shared;
  std::map<size_t, Origin> undefined;  // where values without one in it come from, by their offset
  Barrier barriers[16];
  std::shared_ptr<Mbarriers> mbarriers;
  std::shared_ptr<Tmem> tmem;  // null: nothing has asked for it
  std::vector<std::unique_ptr<Warp>> warps;
  int live_warps = 0;
  int threads = 0;
  // Registers that warps have given back by setmaxnreg: a thread's, for all 32 of a warp.
  int spare_registers = 0;
};

struct ClusterTrace;    // report/trace.cpp
struct LaunchProgress;  // progress.h

// An effect that happens by itself some time after it was asked for: a bulk copy, say. The
// scheduler calls `complete` once, as soon or as late as the order wants.
struct Effect {
  std::function<void()> complete;
  uint64_t due = 0;  // a round of the scheduler
};

struct ClusterBarrier {
  int arrived = 0;
  uint64_t generation = 0;
  Clock clock, last_clock;
};

// The blocks of a cluster run together; without clusters, one block.
struct Cluster {
  Grid* grid = nullptr;
  int id[3] = {0, 0, 0};
  std::vector<std::unique_ptr<Block>> blocks;  // by rank
  std::vector<Effect> effects;
  Clock fences;  // race.h
  ClusterBarrier barrier;
  uint64_t round = 0;
  // Drawn by the skewed order: for turns of warps, for effects, for late lanes.
  Random turns, delays, lanes;
  // Nothing else has changed for a while: lanes that have fallen behind go on.
  bool nobody_is_late = false;
  // Counts what could let a spinning warp go on: bytes of memory that got another value, arrivals,
  // effects, ends of warps.
  uint64_t changes = 0;
  const Allocation* last_buffer = nullptr;  // where its last access of global memory was
  std::shared_ptr<ClusterTrace> trace;      // null: it is not recorded
  // A value that nobody gave is somewhere in shared or local memory.
  bool undefined = false;
  // By a warp that looks at all that it reads, see doubt_all().
  bool doubted = false;
  // A lane has seen that no cluster was left to cancel, isa/cluster_launch.cpp.
  bool no_more_cancels = false;
};

struct Launch {
  const Code* code = nullptr;
  int grid[3] = {1, 1, 1}, block[3] = {1, 1, 1}, cluster[3] = {1, 1, 1};
  int64_t dynamic_shared = 0;
  int registers = 0;  // of a thread, by the machine code for the device; 0: not known
  // Its blocks may wait for each other: cooperative groups' grid barrier works.
  bool cooperative = false;
  std::vector<uint8_t> params;
};

struct Order {  // of warps and of asynchronous effects
  Order() = default;
  Order(uint64_t seed, bool skew) : seed(seed), skew(skew), late(seed % 2 == 0) {}

  uint64_t seed = 0;
  bool skew = false;
  // Effects come as late as the program allows, else at once; what the seed's parity means.
  bool late = true;
};

struct Grid {
  Launch launch;
  GlobalMemory* memory = nullptr;
  uint64_t params_address = 0;  // the parameter block as device memory, for generic addresses
  // The workspace of a cooperative launch, as its threads see it: %envreg1 and %envreg2.
  uint64_t workspace = 0;
  Order order;
  int multiprocessors = 0;  // of the device: %nsmid
  bool races = true, checks = true;
  uint32_t allowed = 0;  // bits of FaultKind: warn instead of fault
  // tcgen05 instructions are in the code: as many more agents as there are warps.
  bool tensor_cores = false;
  bool before_ended = true;  // the launches before it have: griddepcontrol.wait waits for that
  // Block, address: which change of a tensor map the block may use.
  std::map<std::pair<int64_t, uint64_t>, uint64_t> tensor_maps_acquired;
  LaunchProgress* progress = nullptr;  // what its clusters count in; null: nobody looks
  // Takes a cluster that has not started out of the launch and returns its index, x fastest; -1:
  // none is left.
  std::function<int64_t()> cancel_next;
};

}  // namespace gg::emu
