// SPDX-License-Identifier: MIT
//
// Global memory: allocations at addresses no host access can reach, each remembered after it is
// freed. Shared memory: bytes with a shadow that knows which were written and which an asynchronous
// operation still owns.

#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "common/emu/core/state/race.h"
#include "common/emu/core/state/written.h"

namespace gg::emu {

// Generic addresses: shared memory of cluster rank r lies at kSharedWindow + (r << 24), local
// memory of a thread at kLocalWindow. Global memory has real, but inaccessible, host addresses.
constexpr uint64_t kSharedWindow = 0x0100000000000000ull, kSharedWindowBytes = 1ull << 32;
constexpr uint64_t kLocalWindow = 0x0200000000000000ull, kLocalWindowBytes = 1ull << 32;
constexpr uint64_t kFunctionWindow = 0x0300000000000000ull;  // no memory: a function's address

// Shared memory starts here: the first KB is the system's, as on hardware.
constexpr int64_t kSharedStart = 0x400;

class AlignedBytes {  // for vector code
 public:
  void assign(const std::vector<uint8_t>& from);
  uint8_t* data() { return data_.get(); }

 private:
  struct Free {
    void operator()(uint8_t* p) const { ::operator delete[](p, std::align_val_t(64)); }
  };
  std::unique_ptr<uint8_t[], Free> data_;
};

struct BulkGroup;  // bulk_groups.h
struct TensorMapChanges;

// The ranges of a buffer that hold a tensor. Beside them are guards: kernels do not read there.
struct Readable {
  struct Range {
    uint64_t begin = 0, end = 0;  // addresses
  };
  std::string name;           // "the bias"
  std::vector<Range> ranges;  // ascending

  bool holds(uint64_t address, uint64_t count) const {
    for (const Range& r : ranges) {
      if (address >= r.begin && address < r.end) return count <= r.end - address;
    }
    return count == 0;
  }
};

struct Allocation {
  uint64_t begin = 0, bytes = 0;
  bool freed = false;
  bool heap = false;  // a kernel's malloc gave it
  // Whether its bytes have no value before somebody writes them, and, if so, whether all were.
  bool tracked = false;
  bool all_written = true;
  std::shared_ptr<const Readable> readable = {};  // null: all of it
  // All of [address, address + count), whatever that wraps around to.
  bool holds(uint64_t address, uint64_t count) const {
    return address >= begin && address - begin <= bytes && count <= bytes - (address - begin);
  }
};

// The heap gives malloc and free of kernels blocks in a stretch of addresses of its own, which are
// never handed out twice. Kernels on several threads may use it at once.
class DeviceHeap {
 public:
  static constexpr uint64_t kUsualLimit = 8 << 20;  // cudaLimitMallocHeapSize

  // All blocks lie in these bytes.
  void open(uint64_t begin, uint64_t bytes);
  bool is_open() const { return end_ != 0; }
  bool holds(uint64_t address) const { return address >= begin_ && address < end_; }
  void set_limit(uint64_t bytes) { limit_ = bytes; }

  // Aligned to 16 bytes; 0 for no bytes, and where the blocks would exceed the limit.
  uint64_t allocate(uint64_t bytes);
  enum class Release { done, unknown, freed_before };
  Release release(uint64_t address);
  // As in GlobalMemory, among the blocks.
  const Allocation* below(uint64_t address) const;
  const Allocation* above(uint64_t address) const;
  // Blocks that nobody has freed, and their bytes.
  struct Live {
    uint64_t blocks = 0, bytes = 0;
  };
  Live live() const;

 private:
  mutable std::mutex mutex_;  // of all below
  uint64_t begin_ = 0, end_ = 0, next_ = 0, limit_ = kUsualLimit;
  Live live_;
  std::map<uint64_t, Allocation> blocks_;
};

// Allocated and freed between launches only; kernels on several threads may look things up.
class GlobalMemory {
 public:
  // Takes 4 TiB of address space, twice and an eighth of it; where a limit leaves less (ulimit
  // -v, a job's), about half of what it leaves. Throws gg::Error (no memory) where that is less
  // than 64 MiB.
  GlobalMemory();
  ~GlobalMemory();
  GlobalMemory(const GlobalMemory&) = delete;
  GlobalMemory& operator=(const GlobalMemory&) = delete;

  // Aligned to `alignment`, and nothing else in the last such unit of it; 0 when the reserve is
  // exhausted. A gap that belongs to nobody follows every allocation. Its bytes are zeros and
  // count as written.
  uint64_t allocate(size_t bytes, uint64_t alignment = 256);
  bool release(uint64_t address);  // false if no live allocation starts there
  uint64_t used_bytes() const { return used_; }
  // Kernels read so much, and no more, of the live allocation that starts here; nothing happens
  // if none does.
  void set_readable(uint64_t address, Readable readable);
  // The kernels' heap. Before a kernel uses it, open_heap() takes its addresses out of the reserve.
  DeviceHeap heap;
  void open_heap();

  // The allocation that starts at an address or nearest below it; null if there is none.
  const Allocation* below(uint64_t address) const;
  const Allocation* above(uint64_t address) const;  // the nearest that starts above it
  // Where we keep [address, address + bytes) if one live allocation holds all of it, else null.
  uint8_t* host(uint64_t address, uint64_t bytes) const {
    const Allocation* a = below(address);
    return a && !a->freed && !a->heap && bytes <= a->bytes && address - a->begin <= a->bytes - bytes
               ? unchecked(address)
               : nullptr;
  }
  uint8_t* unchecked(uint64_t address) const { return backing_ + (address - base_); }
  // Whether the address was in an allocation that is released.
  bool freed(uint64_t address) const {
    const Allocation* a = below(address);
    return a && a->freed && address - a->begin < a->bytes;
  }
  bool reserved(uint64_t address) const { return address >= base_ && address < base_ + reserve_; }
  // The most that allocations can be, with their gaps.
  uint64_t reserve_bytes() const { return reserve_; }

  // Nobody has written the allocation that starts there: what cudaMalloc gives, and a graph's
  // allocation each time that it runs. Throughout, an address outside all allocations is one
  // of the host.
  void forget(uint64_t address);
  // The host reaches the allocation without the runtime, which cannot see what it writes there.
  void open_to_host(uint64_t address);
  bool is_written(uint64_t address, uint64_t bytes) const;
  // Between launches: the host has filled the bytes, or copied as many from `from`, to `real`
  // for the host.
  void was_filled(uint64_t address, uint64_t bytes);
  void was_copied(uint64_t to, uint64_t from, uint64_t bytes, uint8_t* real, uint64_t seed);
  // For kernels, of an allocation that holds the bytes. To settle is to give values to those that
  // were not written, which the seed decides.
  bool is_written(const Allocation& a, uint64_t address, uint64_t bytes) const {
    return a.all_written || written_.all(address - base_, bytes);
  }
  void mark_written(uint64_t address, uint64_t bytes) { written_.mark(address - base_, bytes); }
  void settle(uint64_t address, uint64_t bytes, uint64_t seed);

  std::shared_ptr<TensorMapChanges> tensor_maps;  // in it, by kernels (units/tensor_map_use.cpp)

 private:
  // Address space, not memory: pages come when touched.
  static constexpr uint64_t kReserve = 1ull << 42;
  static constexpr uint64_t kLeastReserve = 1ull << 26;
  // Between allocations, so that an index which is wrong by a row misses the next one.
  static constexpr uint64_t kGap = 1 << 20;
  bool map(uint64_t bytes);                  // false: there is no address space for so many
  Allocation* tracked_at(uint64_t address);  // null: none that is tracked holds it

  uint64_t reserve_ = 0, base_ = 0, next_ = 0, used_ = 0;
  uint8_t* backing_ = nullptr;
  WrittenBytes written_;
  std::mutex settling_;
  std::map<uint64_t, Allocation> allocations_;
};

// Bytes that an asynchronous operation under way reads, or will write.
struct Window {
  size_t begin = 0, end = 0;  // offsets in shared memory
  bool writes = false;
  bool reduces = false;        // it writes as other reductions and atomic operations may meanwhile
  const Warp* warp = nullptr;  // who issued it,
  const Instr* instr = nullptr;
  int lane = 0;
  const BulkGroup* group = nullptr;  // of the lane, that waits for it; null: it is no bulk store
};

class SharedMemory {
 public:
  enum : uint8_t {
    kWritten = 1,    // somebody wrote this byte
    kArriving = 2,   // an asynchronous operation will write it
    kBeingRead = 4,  // an asynchronous operation still reads it
    kMbarrier = 8,   // part of a live mbarrier
    // An asynchronous reduction will change it: for others as kArriving.
    kReducing = 16,
    // The value written there is one that nobody gave, see undefined.h.
    kUndefined = 32,
    kAtRest = kWritten | kUndefined,  // what a byte may be that anybody may write
  };
  std::vector<uint8_t> bytes, shadow;
  Races races;
  bool checked = true;  // else accesses neither look at the shadow nor change it

  void resize(size_t size);  // all bytes 0xFF, none written
  // A window opens when the operation is issued and closes when its effects are there. Closing one
  // that writes marks its bytes written.
  using Handle = std::list<Window>::iterator;
  Handle open(const Window& window);
  void close(Handle window);
  const Window* owner(size_t offset) const;  // of a byte that is arriving or being read

 private:
  std::list<Window> windows_;
};

}  // namespace gg::emu
