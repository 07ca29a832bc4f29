// SPDX-License-Identifier: MIT
//
// A fault stops a run. It has a kind with a short name, the place, and a sentence of likely cause.

#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace gg::emu {

enum class FaultKind : uint8_t {
  unsupported,  // an instruction, modifier or call the emulator does not know
  bounds,       // an address outside every allocation
  // Inside memory that was freed, or shared memory of another block that has ended.
  use_after_free,
  alignment,        // an access not aligned to its size
  uninit_shared,    // a read of shared memory that nobody wrote
  uninit_global,    // a read of memory of cudaMalloc that nobody wrote
  uninit_register,  // a read of a register that nobody wrote
  async_window,     // touching what an asynchronous operation still reads or writes
  proxy,            // ordinary writes read by an asynchronous operation without a proxy fence
  deadlock,         // nobody can go on
  diverged,         // an instruction for all lanes reached by some only
  barrier,          // misuse of bar or barrier.cluster
  // A bar with a count or a form that hardware refuses, a second barrier.cluster.arrive.
  barrier_count,
  // Misuse of an mbarrier: initialised twice, its bytes used as memory, a foreign token.
  mbarrier,
  mbarrier_state,  // an mbarrier not initialised, or with more arrivals or bytes than it can count
  descriptor,      // a matrix descriptor of wgmma or tcgen05 that does not fit its use
  tensor_map,      // 128 bytes that are no tensor map, or one that does not fit its use
  exit,            // a block ends while a copy still reads or writes its shared memory
  race,            // two warps touch the same shared bytes, one writes, nothing orders them
  trap,            // trap, brkpt, a failed assertion
  launch,          // a launch that no device accepts
  uninit_tmem,     // a read of tensor memory that nobody wrote
  // Misuse of tcgen05: allocation, several lanes that issue, two cta_groups in a kernel.
  tcgen05,
  tcgen05_fence,  // tensor memory handed from warp to warp without the fences of tcgen05
  // A generic address where an instruction wants one of shared memory, or the reverse.
  address_space,
  tmem_lane,  // a lane of tensor memory counted through both blocks of a pair
};
constexpr int kFaultKinds = 26;
const char* fault_name(FaultKind kind);  // "uninit-shared"
bool fault_kind(const std::string& name, FaultKind* kind);

// Whether --allow can make warnings of a kind: hardware goes on, and the emulator does
// what hardware is known to do. At all others hardware stops too, or nothing is known that
// could come next.
constexpr bool can_be_allowed(FaultKind kind) {
  switch (kind) {
    case FaultKind::uninit_shared:
    case FaultKind::uninit_global:
    case FaultKind::uninit_register:
    case FaultKind::async_window:
    case FaultKind::proxy:
    case FaultKind::barrier:
    case FaultKind::mbarrier:
    case FaultKind::descriptor:
    case FaultKind::exit:
    case FaultKind::race:
    case FaultKind::uninit_tmem:
    case FaultKind::tcgen05_fence:
    case FaultKind::address_space:
    case FaultKind::tmem_lane:
      return true;
    default:
      return false;
  }
}
std::string allowable_kinds();   // their names: "uninit-shared, uninit-register, ..."
std::string fault_kinds_help();  // every kind on a line of its own, for --help

// The kinds that raise() takes and those that raise_final() takes. The compiler refuses the other
// kinds: no place can stop at a fault that is allowed, or go on behind one that cannot be.
struct AllowableKind {
  FaultKind kind;
  consteval AllowableKind(FaultKind k) : kind(k) {
    if (!can_be_allowed(k)) throw "raise_final is for this kind";
  }
};
struct FinalKind {
  FaultKind kind;
  consteval FinalKind(FaultKind k) : kind(k) {
    if (can_be_allowed(k)) throw "raise is for this kind";
  }
};

struct Warp;
struct Block;
struct Instr;
struct Launch;

class Fault : public std::runtime_error {
 public:
  Fault(FaultKind kind, const std::string& report) : std::runtime_error(report), kind(kind) {}
  FaultKind kind;
};

// The other side of a conflict.
struct Party {
  const Warp* warp = nullptr;
  const Instr* instr = nullptr;
  int lane = -1;
  std::string did;                         // "wrote these bytes", "issued the copy"
  uint32_t lanes = 0;                      // in place of a lane: some of the warp
  std::vector<const Warp*> likewise = {};  // of the same block, who did the same
};

// Raises a fault at this instruction of this lane (-1: the warp as a whole). `what` says what
// happened and what was expected, with numbers; `cause` what the likely mistake is. Returns only if
// the kind is allowed, having printed the report as a warning, once per instruction.
void raise(AllowableKind kind, const Warp& warp, const Instr& instr, int lane, const std::string& what,
           const std::string& cause, const std::vector<Party>& others = {});
// Whether raise() would say nothing and return, as such a fault is allowed and was reported at this
// instruction. Where a kernel runs into one again and again, ask before the text is made.
bool was_told(AllowableKind kind, const Warp& warp, const Instr& instr);
// The same where going on makes no sense.
[[noreturn]] void raise_final(FinalKind kind, const Warp& warp, const Instr& instr, int lane,
                              const std::string& what, const std::string& cause,
                              const std::vector<Party>& others = {});

// A launch that cannot be.
[[noreturn]] void raise_launch(const Launch& launch, const std::string& what, const std::string& cause);

// "kernel.cuh:57   x = tile[i];" and on lines of their own "through mbarrier.cuh:110,
// mbarrier.cuh:88", "called at launch.cuh:20" and "PTX line 310: ld.shared.u32 %r5, [%r4]", for
// reports. The first line is the innermost one that is no wrapper's.
std::string place_of(const Instr& instr);
// That first line in two parts, "kernel.cuh:57" and "x = tile[i];"; empty where the PTX does not
// tell or the file is not at hand. A file that was changed since the code was made is told of in
// place of its text.
struct SourceLine {
  std::string place, text;
};
SourceLine source_of(const Instr& instr);
// "block 3, warp 5"; without the block where it is that of `from`.
std::string warp_text(const Warp& warp, const Block& from);

std::string hex(uint64_t value);
// "lane 5", "lanes 0-15", "lanes 0x55555555".
std::string lanes_text(uint32_t lanes);
std::string lanes_do(uint32_t lanes, const std::string& verb);  // "lane 5 reads", "lanes 0-15 read"
// A mangled name's last part: "tile" of "_ZZ...E4tile".
std::string plain_name(const std::string& name);

}  // namespace gg::emu
