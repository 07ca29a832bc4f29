// SPDX-License-Identifier: MIT
//
// Tensor memory of a block: 128 lanes of 512 columns of 32 bits, which tcgen05 instructions
// allocate, write and read. PTX ISA: "Tensor Memory", "Tensor Memory Allocation". Beside the cells
// stands what the checks want: which columns are allocated, which cells were written, and who used
// which cells last.

#pragma once

#include <array>
#include <deque>
#include <optional>

#include "common/emu/core/state/grid.h"

namespace gg::emu {

constexpr int kTmemLanes = 128, kTmemColumns = 512;
constexpr int kTmemQuarters = kTmemLanes / kLanes;  // warp w reaches quarter w % 4 by ld and st
constexpr int kTmemUnit = 32;                       // columns: the least that is allocated

// An address of tensor memory: lane in bits 16 and up, column in bits 0-15. Bits 30 and 31 are
// ignored: the byte number of scale factors stands there.
struct TmemAddress {
  int lane = 0, column = 0;
  explicit TmemAddress(uint32_t bits) : lane(int(bits >> 16 & 0x3FFF)), column(int(bits & 0xFFFF)) {}
};

// Lanes, one bit each, of consecutive columns.
struct TmemRegion {
  std::array<Mask, kTmemQuarters> lanes = {};
  int column = 0, columns = 0;
  bool outside = false;  // it has lanes past the last one as well

  bool overlaps(const TmemRegion& other) const;
  bool covers(const TmemRegion& other) const;
};
// Lanes [lane, lane + lanes) of columns [column, column + columns).
TmemRegion tmem_region(int lane, int lanes, int column, int columns);

enum class TmemUse : uint8_t { read, write };

class Tmem {
 public:
  explicit Tmem(Block& block);

  // The 128 lanes of a column, one behind the other: lane l of column c is at<T>(c)[l], and columns
  // follow each other. T has 32 bits.
  template <class T>
  T* at(int column) {
    return reinterpret_cast<T*>(cells_.data()) + size_t(column) * kTmemLanes;
  }

  // ---- allocation ----
  // The first free columns, `columns` of them (a power of two from 32 on), that begin at a multiple
  // of that; -1: there are none.
  int find(int columns) const;
  void allocate(int column, int columns, const Warp& warp, const Instr& instr);
  // Columns of the allocation that begins here; 0 if none does.
  int allocated_at(int column) const;
  // Gives them back. A fault (race, async-window) unless all uses of them are ordered before.
  void release(Warp& warp, const Instr& instr, int column);
  std::string allocations_text() const;  // "columns 0-127 and 256-511 are allocated"
  std::vector<Party> allocations() const;
  bool relinquished = false;  // no more allocations by this block
  TmemLoads tmem_loads;       // for counts
  // The one of the block's tcgen05 instructions; 0: it has executed none that has one.
  int cta_group = 0;

  // ---- checks ----
  // Lane `lane` of `agent` (a warp, or its tensor core) touches the region. Faults: columns that
  // are not allocated (bounds); a read of cells that nobody wrote (uninit-tmem); a use by another
  // agent that nothing orders before this one (race); a use that has not been waited for
  // (async-window); a use by another warp without the fences of tcgen05 between the two
  // (tcgen05-fence). `open`: this use ends only at finish(). The cells that are written count as
  // written from now on.
  void touch(Warp& agent, const Instr& instr, int lane, const TmemRegion& region, TmemUse use,
             bool open = false);
  // The open uses by a warp of this kind are over: tcgen05.wait.
  void finish(const Warp& warp, TmemUse use);

  // A pair's alloc, dealloc or relinquish: a warp of each block comes, see tcgen05_alloc.cpp.
  struct Meeting {
    const Warp* warp = nullptr;
    const Instr* instr = nullptr;
    int columns = 0;  // that it asks for or gives back
    int result = 0;   // of alloc: the first of them
    bool met = false;
  };
  std::optional<Meeting> meeting;

 private:
  struct Columns {  // an allocation
    int count = 0;  // 0: none begins here
    const Warp* warp = nullptr;
    const Instr* instr = nullptr;
  };
  struct Use {
    TmemRegion region;
    const Warp* agent = nullptr;
    const Instr* instr = nullptr;
    int lane = 0;
    TmemUse use = TmemUse::read;
    bool open = false;
    uint32_t issued = 0;  // ticks of the agent's clock when it was issued,
    uint32_t over = 0;    // and when it was over
  };
  bool allocated(int column) const;
  std::string text(const TmemRegion& region) const;
  std::string too_early(const Warp& agent, TmemUse use, const Use& earlier) const;
  void check_allocated(const Warp& agent, const Instr& instr, int lane, const TmemRegion& region) const;
  void check_written(const Warp& agent, const Instr& instr, int lane, const TmemRegion& region) const;
  void check_order(Warp& agent, const Instr& instr, int lane, const TmemRegion& region, TmemUse use,
                   bool fences) const;
  void check_fences(Warp& agent, const Instr& instr, int lane, TmemUse use, const Use& earlier) const;
  void conflict(const Warp& agent, const Instr& instr, int lane, const TmemRegion& region, TmemUse use,
                const Use& earlier, bool learnt) const;

  Block& block_;
  AlignedBytes cells_;
  std::vector<std::array<Mask, kTmemQuarters>> written_;  // by column
  std::array<Columns, kTmemColumns / kTmemUnit> columns_ = {};
  std::vector<Use> uses_;  // without those that a later write has covered
};

// The block's; it is made when first asked for.
Tmem& tmem_of(Block& block);
// A block has ended, at this instruction of this warp. Faults (tcgen05) if it has columns left.
void check_tmem_freed(const Warp& warp, const Instr& instr);

// The tensor core works through the operations that a warp has issued, in order, while the warp
// goes on. So it is an agent of its own in what is ordered before what: `agent` stands for it as a
// warp without lanes, whose clock knows what the warp knew at the last issue.
struct TensorCore {
  Warp agent;
  Clock fenced;  // what the warp knew at its last tcgen05.fence::after_thread_sync
  // Where the newest products write their sums, by the ticks of the agent's clock when they were
  // issued: for reports.
  std::map<uint32_t, TmemRegion> sums;
  std::deque<std::function<void()>> operations;  // oldest first
};
TensorCore& tensor_core_of(Warp& warp);
// Remembers a product for product_text.
void note_product(const Warp& agent, const TmemRegion& sums);
// "the product of columns 0-127" that an agent which is a tensor core issued at these ticks of its
// clock, the last of them; "an operation" if there is none.
std::string product_text(const Warp& agent, uint32_t ticks);

}  // namespace gg::emu
