// SPDX-License-Identifier: MIT
//
// The machine that executes PTX: a grid of clusters of blocks of warps of 32 lanes. An instruction is decoded
// once into an Instr whose handler works on a whole warp; isa/ holds the handlers, one file per family, and
// schedule.cpp decides who runs next.

#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "common/emu/state/faults.h"
#include "common/emu/state/memory.h"
#include "common/emu/state/race.h"
#include "common/emu/text/ptx.h"

namespace gg::emu {

constexpr int kLanes = 32;
using Mask = uint32_t;
constexpr Mask kAllLanes = 0xFFFFFFFFu;

struct Instr;
struct Warp;
struct Block;
struct Cluster;
struct Grid;

// What the scheduler does after an instruction.
enum class Next : uint8_t {
  go_on,   // to the next instruction
  branch,  // the lanes executed go to instr.target, those whose guard was false to the next instruction
  jump,    // each lane goes to warp.jump_to[lane]
  exit,    // the lanes executed end
  wait,    // done, but these lanes may not go on before fragment.ready() says so
  retry,   // not done: wait as above, then execute it again
};
using Handler = Next (*)(Warp&, const Instr&, Mask);

struct Instr {  // what every execution asks for comes first, in a line or two of the cache
  Handler run = nullptr;
  uint32_t d = 0, d2 = 0;             // destinations: offsets in the warp's register file, 0 for none
  uint32_t s[4] = {0, 0, 0, 0};       // sources, likewise: immediates and special registers live there too
  int64_t offset = 0;                 // of an address; or an immediate
  uint8_t variant = 0, variant2 = 0;  // what the family wants to remember
  uint16_t count = 1;                 // elements of a vector
  uint16_t bytes = 0;                 // of one element in memory
  Space space = Space::none;
  uint8_t address_bits = 64;  // of the base register in s[3], see access.h
  bool any_rank = false;      // .shared::cluster: may reach other blocks of the cluster
  bool converged = false;     // .aligned or .sync: all live lanes, or those of `members`, come together
  bool own_checks = false;    // its handler looks for registers unwritten or under way itself
  bool straight = false;      // nothing to ask before it is executed: see find_straight()
  bool asks = true;           // some register that it reads may be unwritten
  bool records = true;        // what it writes is remembered, as some instruction asks whether it is written
  int32_t index = 0;          // in the code
  uint32_t guard = 0;         // predicate; 0: none
  int32_t guard_register = -1;
  bool guard_negated = false;
  uint32_t members = 0;                               // slot of a membermask; 0: all live lanes
  int32_t target = 0;                                 // of a branch: index of an instruction
  const uint32_t* list = nullptr;                     // slots of long operand lists
  const int32_t *reads = nullptr, *writes = nullptr;  // register indices, ended by -1
  const void* extra = nullptr;                        // what a family needs beyond this
  const Statement* statement = nullptr;
  const Function* function = nullptr;  // the statement's
  const Module* module = nullptr;
};

// A kernel ready to run: instructions, and the layout of a warp's register file.
struct Code {
  const uint64_t number = next_number();  // no other has it, also none that is made when this one is gone
  const Module* module = nullptr;
  const Function* function = nullptr;
  std::vector<Instr> instrs;
  std::vector<Register> registers;       // all, by index: the kernel's, then those of the functions it calls
  std::vector<uint32_t> register_slots;  // register index -> offset
  size_t file_bytes = 0;                 // of a warp's register file
  std::vector<uint8_t> initial;          // its first contents: immediates, one copy per lane
  struct Special {  // a special register; or %shared and %param, addresses of `component` bytes in there
    std::string name;
    int component;
    uint32_t slot;
    int bits;
  };
  std::map<std::pair<uint64_t, int>, uint32_t> constants;               // value and bits -> slot
  std::vector<Special> specials;                                        // filled in when a warp starts
  std::map<std::tuple<std::string, int, int>, uint32_t> special_slots;  // by name, component and bits
  int64_t shared_bytes = 0;                        // static: the module's and the functions'
  int64_t local_bytes = 0;                         // of a thread
  std::map<std::string, int64_t> shared_symbols;   // shared addresses in the block of rank 0
  std::map<std::string, uint64_t> global_symbols;  // device addresses of .global and .const variables
  std::vector<std::unique_ptr<uint32_t[]>> lists;
  std::vector<std::unique_ptr<int32_t[]>> register_lists;
  std::vector<std::shared_ptr<void>> extras;

 private:
  static uint64_t next_number() {
    static std::atomic<uint64_t> next = 0;
    return next++;
  }
};

struct Fragment {  // lanes of a warp that are at the same place
  Mask mask = 0;
  int32_t pc = 0;
  bool parked = false;          // at a converged instruction, until the lanes it wants have come
  std::function<bool()> ready;  // empty: runnable
  int32_t waits_at = 0;         // the instruction that set it
  std::function<std::string()>
      waits_for;  // for the report of a deadlock: "mbarrier 0x400, phase 3: 1 arrival pending"
};

struct CopyGroups;  // cp.async of the lanes of a warp, isa/cp_async.cpp
struct WgmmaState;  // wgmma of a warp under way, isa/wgmma.cpp
struct BulkGroups;  // bulk copies that lanes wait for by group, isa/bulk.cpp

struct Warp {
  Block* block = nullptr;
  int index = 0;  // in the block
  Mask live = 0;  // lanes that have not ended
  std::vector<Fragment> fragments;
  Fragment* running = nullptr;  // whose instruction is being executed
  uint32_t steps = 0;           // since fragments came to be; see schedule.cpp
  int32_t jump_to[kLanes];
  AlignedBytes file;          // registers: element of lane l at slot + l * size; predicates take a byte
  std::vector<Mask> written;  // register index -> lanes that have written it
  // Registers that an asynchronous operation still reads or writes: index -> lanes; empty while there are
  // none.
  std::vector<Mask> in_flight;
  const Instr* in_flight_by = nullptr;
  // Registers that instructions have read or written since the last wgmma.fence, which sets the size; empty
  // before it.
  std::vector<uint8_t> touched;
  std::vector<uint8_t> local;  // kLanes times Code::local_bytes
  std::shared_ptr<CopyGroups> copies;
  std::shared_ptr<WgmmaState> wgmma;
  std::shared_ptr<BulkGroups> bulk;
  Clock clock;                   // race.h
  Clock released;                // what it knew at its last releasing fence: relaxed arrivals tell this
  Clock observed;                // what relaxed waits have seen: known from the next acquiring fence on
  size_t agent = 0;              // its number in the cluster
  bool cluster_arrived = false;  // at the cluster barrier, of this generation
  uint64_t cluster_generation = 0;

  template <class T>
  T* at(uint32_t slot) {
    return reinterpret_cast<T*>(file.data() + slot);
  }
  int thread_of(int lane) const { return index * kLanes + lane; }
};

struct Barrier {                    // bar.sync and its kin, one of 16 per block
  struct Phase {                    // from the first arrival until all are there; those who wait keep it
    int arrived = 0, expected = 0;  // threads
    bool whole_block = false;       // no count was given
    bool done = false;
    int voters = 0, votes = 0;          // bar.red: threads that brought a predicate, and those that said true
    const Instr* entered_by = nullptr;  // the newest arrival
    const Warp* entered_warp = nullptr;
    Clock clock;  // of those who have arrived
  };
  std::shared_ptr<Phase> phase;  // null: nobody is there
};

struct Mbarriers;  // the mbarriers of a block, isa/mbarrier.cpp

struct Block {
  Grid* grid = nullptr;
  Cluster* cluster = nullptr;
  int64_t linear = 0;  // in the grid
  int id[3] = {0, 0, 0};
  int rank = 0;  // in its cluster
  SharedMemory shared;
  Barrier barriers[16];
  std::shared_ptr<Mbarriers> mbarriers;
  std::vector<std::unique_ptr<Warp>> warps;
  int live_warps = 0;
  int threads = 0;
};

struct ClusterTrace;  // trace.cpp

// An effect that happens by itself some time after it was asked for: a bulk copy, say. The scheduler calls
// `complete` once, as soon or as late as the order wants.
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
  uint64_t random = 0;  // state of the order's generator
  // Counts what could let a spinning warp go on: bytes of memory that got another value, arrivals, effects,
  // ends of warps.
  uint64_t changes = 0;
  const Allocation* last_buffer = nullptr;  // where its last access of global memory was
  std::shared_ptr<ClusterTrace> trace;      // null: it is not recorded
};

struct Launch {
  const Code* code = nullptr;
  int grid[3] = {1, 1, 1}, block[3] = {1, 1, 1}, cluster[3] = {1, 1, 1};
  int64_t dynamic_shared = 0;
  std::vector<uint8_t> params;
};

// Counts of one kernel, per instruction of its code.
struct InstrCounts {
  uint64_t warps = 0, lanes = 0;    // times executed by a warp; by lanes
  uint64_t bytes = 0, sectors = 0;  // asked for by lanes; 32-byte sectors of global memory touched
  uint64_t wavefronts = 0, least_wavefronts = 0;  // of shared memory: taken, and without bank conflicts
  uint64_t waits = 0;                             // times a warp had to wait here
  uint64_t multiply_adds = 0;
};
using Counts = std::map<const Code*, std::vector<InstrCounts>>;

struct Order {  // of warps and of asynchronous effects
  uint64_t seed = 0;
  bool skew = false;
};

struct Grid {
  Launch launch;
  GlobalMemory* memory = nullptr;
  uint64_t params_address = 0;  // the parameter block as device memory, for generic addresses
  Order order;
  int multiprocessors = 0;  // of the device: %nsmid
  bool races = true, checks = true;
  uint32_t allowed = 0;  // bits of FaultKind: warn instead of fault
  // Block, address: which change of a tensor map the block may use.
  std::map<std::pair<int64_t, uint64_t>, uint64_t> tensor_maps_acquired;
};

// The counts of the worker thread that runs now.
InstrCounts& counts_of(const Instr& instr);

// barrier.cpp: lanes of the warp have ended. Threads that have ended are waited for no longer.
void threads_ended(Warp& warp);

// mbarrier.cpp: the barrier that a lane last asked about, and what it lacks, for reports.
std::string asked_mbarrier(Warp& warp, int lane);

// decode.cpp. An instruction it does not know faults when it is executed. `global_symbols`: device addresses
// of the module's .global and .const variables.
std::unique_ptr<Code> decode(const Module& module, const Function& function,
                             const std::map<std::string, uint64_t>& global_symbols = {});

// schedule.cpp: runs a launch to its end, clusters spread over `workers` threads (0: one per core). Throws
// Fault: of several, that of the first cluster. What was counted until then is in `counts` all the same.
struct RunOptions {
  Order order;
  int workers = 0;
  int multiprocessors = 132;  // of the device it plays
  bool races = true;
  // False: what only looks for bugs in shared memory is left out, races too. Addresses are checked all the
  // same.
  bool checks = true;
  uint32_t allowed = 0;
};
void run_launch(const Launch& launch, GlobalMemory& memory, const RunOptions& options, Counts* counts);

}  // namespace gg::emu
