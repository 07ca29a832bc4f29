// SPDX-License-Identifier: MIT
//
// Happens-before between the warps of a cluster, and what it exposes in shared memory: races, and
// ordinary writes that an asynchronous operation reads without a proxy fence. Every warp counts its
// own steps between synchronisations; a clock says how much of every other warp's work one has
// learnt of through barriers. Two accesses of the same byte by different warps, at least one of
// them a write, race if neither had learnt of the other (vector clocks, as in FastTrack, Flanagan
// and Freund, PLDI 2009). Lanes of one warp are told apart where some of them arrive at an mbarrier
// for all: what the others did counts as known only if the lanes met at a barrier before, as a
// shuffle or a vote orders no memory. Who learns, learns for its whole warp.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace gg::emu {

struct Block;
struct Warp;
struct Instr;

class Clock {
 public:
  // The last step of an agent of which one has learnt what all lanes did.
  uint32_t operator[](size_t agent) const { return agent < known_.size() ? known_[agent] : 0; }
  // Whether one has learnt of what these lanes of an agent did in a step: of all lanes, or from
  // these. No lanes: of what the warp did as one, such as wgmma, from any lane.
  bool knows(size_t agent, uint32_t ticks, uint32_t lanes) const {
    return ticks <= (*this)[agent] || (!told_.empty() && was_told(agent, ticks, lanes));
  }
  uint32_t of_warp_as_one(size_t agent) const;
  void tell(size_t agent, uint32_t ticks, uint32_t lanes);
  // How much of an agent's ordinary writes proxy fences have handed on to the asynchronous proxy.
  uint32_t fenced(size_t agent) const { return agent < fenced_.size() ? fenced_[agent] : 0; }
  void set(size_t agent, uint32_t ticks);
  void join(const Clock& other);
  void fence() { fenced_ = known_; }
  // How much of an agent's use of tensor memory has been handed on: by
  // tcgen05.fence::before_thread_sync, or by tcgen05.commit.
  uint32_t handed_on(size_t agent) const { return agent < handed_on_.size() ? handed_on_[agent] : 0; }
  void hand_on() { handed_on_ = known_; }
  void clear();

 private:
  struct Told {  // by some lanes, of what they did themselves
    size_t agent;
    uint32_t ticks, lanes;
  };
  [[gnu::noinline]] bool was_told(size_t agent, uint32_t ticks, uint32_t lanes) const;
  std::vector<uint32_t> known_, fenced_, handed_on_;
  std::vector<Told> told_;  // beyond known_
};

size_t agent_of(const Warp& warp);  // its number in the cluster

// A warp tells what it knows and starts a new step of its own; a warp learns what was told.
void release(Warp& warp, Clock& to);
// The same by some lanes: of the others' work it tells what they did before the lanes last met.
void release(Warp& warp, uint32_t lanes, Clock& to);
void meet(Warp& warp);  // the lanes, at a barrier that orders their memory
void acquire(Warp& warp, const Clock& from);
// fence.proxy.async: what the warp knows of is visible to asynchronous operations issued by whoever
// learns of it.
void fence_proxy(Warp& warp);

// How an access takes part.
enum class Access : uint8_t {
  plain,
  strong,  // atomic, volatile, relaxed and the like: no race with another strong one
  async,   // by the asynchronous proxy
};

struct ByteRun {  // of bytes of shared memory
  size_t offset = 0, bytes = 0;
};

// Records who last wrote and who since read every 4 bytes (a cell) of one block's shared memory.
// With agents 0 nothing is kept.
class Races {
 public:
  void resize(size_t bytes, size_t agents, const Block& block);
  bool on() const { return agents_ != 0; }
  // Lane `lane` of the warp touches [offset, offset + width). Raises race, or proxy if an
  // asynchronous read meets ordinary writes that no fence has handed on.
  void read(Warp& warp, const Instr& instr, int lane, size_t offset, int width,
            Access access = Access::plain);
  // Two stores of the same value do not race: `values`, null if not known.
  void write(Warp& warp, const Instr& instr, int lane, size_t offset, int width,
             Access access = Access::plain, const uint8_t* values = nullptr);

  // The same for whole cells of which nothing bad is to be said, many at once. False: `read` or
  // `write` will say what there is, if anything.
  // `lanes`: who touches them, 0: the warp as one.
  bool read_runs(const Warp& warp, const Instr& instr, uint32_t lanes, const ByteRun* runs, size_t count,
                 Access access);
  bool write_runs(const Warp& warp, const Instr& instr, uint32_t lanes, const ByteRun* runs, size_t count,
                  Access access);

 private:
  struct Write {
    uint32_t ticks = 0;  // 0: nobody
    uint16_t agent = 0;
    uint8_t bytes = 0;  // of the four, those of the last write
    Access access = Access::plain;
  };
  static constexpr size_t kCells = 64;  // of a page
  struct Writes {                       // the last ones of its cells
    Write last[kCells];
    uint32_t lanes[kCells];  // looked at only where there is a write; 0: the warp as one
    int32_t instrs[kCells];  // index into the code, for the report
  };
  struct Reads {          // by one agent
    uint32_t latest = 0;  // of the ticks
    uint32_t ticks[kCells];
    uint32_t lanes[kCells];
    int32_t instrs[kCells];
    uint8_t bytes[kCells];  // of the four, those read in this step
  };
  struct StrongRead {  // ld.volatile and the like: these race with plain writes only
    size_t agent = 0;
    uint32_t ticks = 0, lanes = 0;
    uint8_t bytes = 0;
    int32_t instr = 0;
  };
  struct Page {  // made as accesses come: most of a block's memory may lie idle
    std::unique_ptr<Writes> writes;
    std::map<size_t, std::vector<StrongRead>> strong;  // by cell
    std::vector<std::unique_ptr<Reads>> reads;         // [agent]
  };
  static constexpr uint8_t kEquals = 0x10;  // in Write::bytes: equals_ has more
  struct Equal {
    Write write;
    uint32_t lanes = 0;
    int32_t instr = 0;
  };
  const Writes& written(size_t page) const;
  Writes& writes_of(size_t page);
  Reads& reads_of(size_t page, size_t agent);
  bool knows_writes(const Warp& warp, size_t first, size_t end, Access access, bool reading,
                    uint64_t& known) const;
  bool knows_reads(const Warp& warp, size_t first, size_t end) const;
  [[gnu::noinline]] void conflict(Warp& warp, const Instr& instr, int lane, size_t cell, bool writing,
                                  bool wrote, size_t agent, uint32_t ticks, int32_t other) const;
  void keep_strong_read(const Warp& warp, const Instr& instr, uint32_t lanes, size_t cell, uint8_t bytes);
  [[gnu::noinline]] void check_strong_reads(Warp& warp, const Instr& instr, int lane, size_t cell,
                                            uint8_t bytes, Access access);
  [[gnu::noinline]] void report_proxy(const Warp& warp, const Instr& instr, int lane, size_t cell,
                                      size_t agent, int32_t other) const;

  bool same_values(size_t cell, uint8_t bytes, size_t offset, const uint8_t* values) const;
  [[gnu::noinline]] void check_equals(Warp& warp, const Instr& instr, int lane, size_t cell, uint8_t bytes,
                                      size_t offset, bool writing, const uint8_t* values);
  [[gnu::noinline]] uint8_t keep_equals(const Warp& warp, size_t cell, bool keep_last);
  const Warp& warp_of(size_t agent) const;

  const Block* block_ = nullptr;  // whose memory it is
  size_t agents_ = 0;
  std::vector<Page> pages_;
  // Cell -> stores of its value that raced with a later one.
  std::map<size_t, std::vector<Equal>> equals_;
};

}  // namespace gg::emu
