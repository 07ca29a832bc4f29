// SPDX-License-Identifier: MIT
//
// The reserve that global memory is cut from.

#include "common/emu/state/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace gg::emu {

void AlignedBytes::assign(const std::vector<uint8_t>& from) {
  data_.reset(static_cast<uint8_t*>(::operator new[](from.size(), std::align_val_t(64))));
  std::memcpy(data_.get(), from.data(), from.size());
}

GlobalMemory::GlobalMemory() {
  // Two views of the address range: what kernels see, where a host access faults, and what we use.
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* view = mmap(nullptr, kReserve, PROT_NONE, flags, -1, 0);
  void* backing = mmap(nullptr, kReserve, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (view == MAP_FAILED || backing == MAP_FAILED)
    throw std::runtime_error("no address space for global memory");
  base_ = reinterpret_cast<uint64_t>(view);
  next_ = base_;
  backing_ = static_cast<uint8_t*>(backing);
}

GlobalMemory::~GlobalMemory() {
  munmap(reinterpret_cast<void*>(base_), kReserve);
  munmap(backing_, kReserve);
}

uint64_t GlobalMemory::allocate(size_t bytes, uint64_t alignment) {
  const uint64_t address = (next_ + alignment - 1) / alignment * alignment;
  const uint64_t rounded = (uint64_t(bytes) + alignment - 1) / alignment * alignment + kGap;
  if (bytes > kReserve || address + rounded > base_ + kReserve) return 0;
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
  // Give whole pages back; the addresses are never handed out again, so a late access is told apart.
  constexpr uint64_t kPage = 4096;
  const uint64_t first = (address + kPage - 1) / kPage * kPage,
                 last = (address + found->second.bytes) / kPage * kPage;
  if (last > first) madvise(unchecked(first), last - first, MADV_DONTNEED);
  return true;
}

const Allocation* GlobalMemory::above(uint64_t address) const {
  const auto after = allocations_.upper_bound(address);
  return after == allocations_.end() ? nullptr : &after->second;
}
const Allocation* GlobalMemory::below(uint64_t address) const {
  auto after = allocations_.upper_bound(address);
  return after == allocations_.begin() ? nullptr : &std::prev(after)->second;
}

void SharedMemory::resize(size_t size) {
  bytes.assign(size, 0xFF);
  shadow.assign(size, 0);
  windows_.clear();
}

SharedMemory::Handle SharedMemory::open(const Window& window) {
  const uint8_t bit = window.writes ? kArriving : kBeingRead;
  uint8_t* const state = shadow.data();  // copies: to a compiler, stores of bytes could change the originals
  const size_t begin = window.begin, end = window.end;
  for (size_t i = begin; i < end; ++i) state[i] |= bit;
  return windows_.insert(windows_.end(), window);
}

void SharedMemory::close(Handle handle) {
  const Window window = *handle;
  windows_.erase(handle);
  uint8_t* const state = shadow.data();
  if (window.writes) {
    for (size_t i = window.begin; i < window.end; ++i) state[i] = uint8_t((state[i] & ~kArriving) | kWritten);
    return;
  }
  for (size_t i = window.begin; i < window.end; ++i) state[i] &= uint8_t(~kBeingRead);
  for (const Window& other : windows_) {  // what others still read stays marked
    if (other.writes) continue;
    for (size_t i = std::max(other.begin, window.begin); i < std::min(other.end, window.end); ++i)
      state[i] |= kBeingRead;
  }
}

const Window* SharedMemory::owner(size_t offset) const {
  for (const Window& window : windows_) {
    if (window.begin <= offset && offset < window.end) return &window;
  }
  return nullptr;
}

}  // namespace gg::emu
