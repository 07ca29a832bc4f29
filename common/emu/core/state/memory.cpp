// SPDX-License-Identifier: MIT
//
// The reserve that global memory is cut from.

#include "common/emu/core/state/memory.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "common/kernel/error.h"

namespace gg::emu {

void AlignedBytes::assign(const std::vector<uint8_t>& from) {
  data_.reset(static_cast<uint8_t*>(::operator new[](from.size(), std::align_val_t(64))));
  std::memcpy(data_.get(), from.data(), from.size());
}

namespace {

// Address space that a limit leaves this process; all that there is where none is set.
uint64_t address_space_left() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  std::ifstream statm("/proc/self/statm");  // proc(5): the first number is the size in pages
  uint64_t pages = 0;
  statm >> pages;
  const uint64_t taken = pages * uint64_t(sysconf(_SC_PAGESIZE));
  return limit.rlim_cur - std::min<uint64_t>(limit.rlim_cur, taken);
}

}  // namespace

// Two views of the address range: what kernels see, where a host access faults, and what we use.
bool GlobalMemory::map(uint64_t bytes) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* const view = mmap(nullptr, bytes, PROT_NONE, flags, -1, 0);
  void* const backing = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (view != MAP_FAILED && backing != MAP_FAILED && written_.open(bytes)) {
    reserve_ = bytes;
    base_ = next_ = reinterpret_cast<uint64_t>(view);
    backing_ = static_cast<uint8_t*>(backing);
    return true;
  }
  if (view != MAP_FAILED) munmap(view, bytes);
  if (backing != MAP_FAILED) munmap(backing, bytes);
  return false;
}

GlobalMemory::GlobalMemory() {
  const uint64_t left = address_space_left();  // the program itself needs as much again
  for (uint64_t bytes = std::min(kReserve, left / 4 >> 12 << 12); bytes >= kLeastReserve;
       bytes = bytes / 2 >> 12 << 12) {
    if (map(bytes)) return;
  }
  throw Error(
      Exit::no_memory,
      format("the emulator wants %llu bytes of address space or more, for device memory and for itself, and "
             "%llu are left: raise the limit (ulimit -v, or the job's), to unlimited if you can",
             static_cast<unsigned long long>(4 * kLeastReserve), static_cast<unsigned long long>(left)));
}

GlobalMemory::~GlobalMemory() {
  munmap(reinterpret_cast<void*>(base_), reserve_);
  munmap(backing_, reserve_);
}

uint64_t GlobalMemory::allocate(size_t bytes, uint64_t alignment) {
  const uint64_t address = (next_ + alignment - 1) / alignment * alignment;
  const uint64_t rounded = (uint64_t(bytes) + alignment - 1) / alignment * alignment + kGap;
  if (bytes > reserve_ || address + rounded > base_ + reserve_) return 0;
  allocations_[address] = {address, bytes, false};
  next_ = address + rounded;
  used_ += bytes;
  return address;
}

bool GlobalMemory::release(uint64_t address) {
  const auto found = allocations_.find(address);
  if (found == allocations_.end() || found->second.freed) return false;
  found->second.freed = true;
  used_ -= found->second.bytes;
  // Give whole pages back; the addresses are never used again, so a late access is recognised.
  static const uint64_t page = uint64_t(sysconf(_SC_PAGESIZE));
  const uint64_t first = (address + page - 1) / page * page,
                 last = (address + found->second.bytes) / page * page;
  if (last > first) madvise(unchecked(first), last - first, MADV_DONTNEED);
  written_.give_back(address - base_, found->second.bytes);
  return true;
}

namespace {

// The value of a byte that nobody wrote, by its place.
uint8_t garbage(uint64_t at, uint64_t seed) {
  constexpr uint64_t kPlaces = 0x9E3779B97F4A7C15ull, kSeeds = 0xD1B54A32D192ED03ull;
  uint64_t z = (at / 8 + 1) * kPlaces + (seed + 1) * kSeeds;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return uint8_t((z ^ (z >> 31)) >> (8 * (at % 8)));
}

}  // namespace

Allocation* GlobalMemory::tracked_at(uint64_t address) {
  const auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return nullptr;
  Allocation& found = std::prev(after)->second;
  return found.tracked && found.holds(address, 1) ? &found : nullptr;
}

void GlobalMemory::forget(uint64_t address) {
  Allocation& a = allocations_.at(address);
  written_.clear(address - base_, a.bytes);
  a.tracked = true;
  a.all_written = false;
}

void GlobalMemory::open_to_host(uint64_t address) {
  Allocation* const a = tracked_at(address);
  if (!a) return;
  a->tracked = false;
  a->all_written = true;
}

bool GlobalMemory::is_written(uint64_t address, uint64_t bytes) const {
  const Allocation* const a = reserved(address) ? below(address) : nullptr;
  return !a || is_written(*a, address, bytes);
}

void GlobalMemory::was_filled(uint64_t address, uint64_t bytes) {
  Allocation* const a = tracked_at(address);
  if (!a || a->all_written) return;
  if (bytes == a->bytes) {
    a->all_written = true;
  } else {
    mark_written(address, bytes);
  }
}

// Bytes without a value stay so in memory that is tracked, and are garbage elsewhere.
void GlobalMemory::was_copied(uint64_t to, uint64_t from, uint64_t bytes, uint8_t* real, uint64_t seed) {
  if (is_written(from, bytes)) return was_filled(to, bytes);
  Allocation* const a = tracked_at(to);
  if (!a) {
    written_.each_unwritten(from - base_, bytes,
                            [&](uint64_t at) { real[at - (from - base_)] = garbage(at, seed); });
    return;
  }
  if (a->all_written) mark_written(a->begin, a->bytes);
  a->all_written = false;
  written_.copy(to - base_, from - base_, bytes);
}

void GlobalMemory::settle(uint64_t address, uint64_t bytes, uint64_t seed) {
  const std::lock_guard lock(settling_);
  written_.each_unwritten(address - base_, bytes, [&](uint64_t at) { backing_[at] = garbage(at, seed); });
  mark_written(address, bytes);
}

void GlobalMemory::set_readable(uint64_t address, Readable readable) {
  const auto found = allocations_.find(address);
  if (found == allocations_.end() || found->second.freed) return;
  found->second.readable = std::make_shared<const Readable>(std::move(readable));
}

const Allocation* GlobalMemory::above(uint64_t address) const {
  if (heap.holds(address)) {
    if (const Allocation* block = heap.above(address)) return block;
  }
  auto after = allocations_.upper_bound(address);
  if (after != allocations_.end() && heap.holds(after->first)) {
    if (const Allocation* block = heap.above(address)) return block;
    ++after;
  }
  return after == allocations_.end() ? nullptr : &after->second;
}
const Allocation* GlobalMemory::below(uint64_t address) const {
  if (heap.holds(address)) {
    if (const Allocation* block = heap.below(address)) return block;
  }
  auto after = allocations_.upper_bound(address);
  if (after != allocations_.begin() && heap.holds(std::prev(after)->first)) {
    const Allocation* block = heap.holds(address) ? nullptr : heap.below(address);
    if (block) return block;
    --after;
  }
  return after == allocations_.begin() ? nullptr : &std::prev(after)->second;
}

void GlobalMemory::open_heap() {
  if (heap.is_open()) return;
  const uint64_t bytes = reserve_ / 16, used = used_;
  const uint64_t begin = allocate(bytes);
  if (!begin) throw std::bad_alloc();
  used_ = used;
  heap.open(begin, bytes);
}

void DeviceHeap::open(uint64_t begin, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  begin_ = next_ = begin;
  end_ = begin + bytes;
}

uint64_t DeviceHeap::allocate(uint64_t bytes) {
  constexpr uint64_t kAlignment = 16, kGapBytes = 256;  // a gap belongs to nobody
  std::lock_guard lock(mutex_);
  if (bytes == 0 || bytes > limit_ || live_.bytes > limit_ - bytes) return 0;
  const uint64_t taken = (bytes + kAlignment - 1) / kAlignment * kAlignment + kGapBytes;
  if (taken > end_ - next_) return 0;
  const uint64_t address = next_;
  next_ += taken;
  blocks_[address] = {address, bytes, false, true, true, false};
  ++live_.blocks;
  live_.bytes += bytes;
  return address;
}

DeviceHeap::Release DeviceHeap::release(uint64_t address) {
  std::lock_guard lock(mutex_);
  const auto found = blocks_.find(address);
  if (found == blocks_.end()) return Release::unknown;
  if (found->second.freed) return Release::freed_before;
  found->second.freed = true;
  --live_.blocks;
  live_.bytes -= found->second.bytes;
  return Release::done;
}

const Allocation* DeviceHeap::below(uint64_t address) const {
  std::lock_guard lock(mutex_);
  const auto after = blocks_.upper_bound(address);
  return after == blocks_.begin() ? nullptr : &std::prev(after)->second;
}
const Allocation* DeviceHeap::above(uint64_t address) const {
  std::lock_guard lock(mutex_);
  const auto after = blocks_.upper_bound(address);
  return after == blocks_.end() ? nullptr : &after->second;
}
DeviceHeap::Live DeviceHeap::live() const {
  std::lock_guard lock(mutex_);
  return live_;
}

void SharedMemory::resize(size_t size) {
  bytes.assign(size, 0xFF);
  shadow.assign(size, 0);
  windows_.clear();
}

SharedMemory::Handle SharedMemory::open(const Window& window) {
  const uint8_t bit = window.reduces ? kReducing : window.writes ? kArriving : kBeingRead;
  // Copies: to a compiler, stores of bytes could change the originals.
  uint8_t* const state = shadow.data();
  const size_t begin = window.begin, end = window.end;
  for (size_t i = begin; i < end; ++i) state[i] |= bit;
  return windows_.insert(windows_.end(), window);
}

void SharedMemory::close(Handle handle) {
  const Window window = *handle;
  windows_.erase(handle);
  uint8_t* const state = shadow.data();
  if (window.writes && !window.reduces) {
    for (size_t i = window.begin; i < window.end; ++i)
      state[i] = uint8_t((state[i] & ~(kArriving | kUndefined)) | kWritten);
    return;
  }
  const uint8_t bit = window.reduces ? kReducing : kBeingRead;
  for (size_t i = window.begin; i < window.end; ++i) state[i] &= uint8_t(~bit);
  for (const Window& other : windows_) {  // what others still read, or reduce, stays marked
    if (other.writes != window.writes || other.reduces != window.reduces) continue;
    for (size_t i = std::max(other.begin, window.begin); i < std::min(other.end, window.end); ++i)
      state[i] |= bit;
  }
}

const Window* SharedMemory::owner(size_t offset) const {
  for (const Window& window : windows_) {
    if (window.begin <= offset && offset < window.end) return &window;
  }
  return nullptr;
}

}  // namespace gg::emu
