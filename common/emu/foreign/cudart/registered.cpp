// SPDX-License-Identifier: MIT
//
// Registered memory, and its pages in two places: mmap(2), memfd_create(2), proc(5).

#include "common/emu/foreign/cudart/registered.h"

#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/emu/cudart/runtime.h"

namespace gg::emu {
namespace {

struct Pages {
  uint64_t begin, bytes;
};
Pages pages_of(uint64_t begin, uint64_t bytes) {
  const uint64_t page = uint64_t(sysconf(_SC_PAGESIZE)), first = begin / page * page;
  return {first, (begin + bytes - first + page - 1) / page * page};
}

// Whether all pages are the process's own memory, that it may write, and none is of the stack
// of this thread.
bool can_move(const Pages& pages) {
  std::ifstream maps("/proc/self/maps");
  const uint64_t here = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  uint64_t reached = pages.begin;
  for (std::string line; reached < pages.begin + pages.bytes && std::getline(maps, line);) {
    std::istringstream words(line);
    uint64_t begin = 0, end = 0, inode = 0;
    char dash = 0;
    std::string rights, offset, device;
    words >> std::hex >> begin >> dash >> end >> rights >> offset >> device >> std::dec >> inode;
    if (end <= reached) continue;
    if (begin > reached || inode != 0 || rights != "rw-p" || (begin <= here && here < end)) return false;
    reached = end;
  }
  return reached >= pages.begin + pages.bytes;
}

void map_or_throw(void* at, size_t bytes, int flags, int file) {
  if (mmap(at, bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED, file, 0) == MAP_FAILED)
    throw std::runtime_error("registered memory could not be mapped");
}

// Pages hold more than the program's own objects: a sanitizer must not look, nor see a memcpy.
[[gnu::no_sanitize_address]] void copy_pages(void* to, const void* from, size_t bytes) {
  auto* const words = static_cast<volatile uint64_t*>(to);
  const auto* const source = static_cast<const volatile uint64_t*>(from);
  for (size_t i = 0; i < bytes / sizeof *words; ++i) words[i] = source[i];
}

// Makes the pages and the device's the same memory.
void share(const Pages& pages, uint8_t* device) {
  const int file = memfd_create("gg-emu", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, off_t(pages.bytes)) != 0)
    throw std::runtime_error("no memory file for registered memory");
  map_or_throw(device, pages.bytes, MAP_SHARED, file);
  void* const host = reinterpret_cast<void*>(pages.begin);
  copy_pages(device, host, pages.bytes);
  map_or_throw(host, pages.bytes, MAP_SHARED, file);
  close(file);
}

// Gives the process pages of its own again, with what is in them now.
void part(const Pages& pages, uint8_t* device) {
  constexpr int kOwn = MAP_PRIVATE | MAP_ANONYMOUS;
  void* const host = reinterpret_cast<void*>(pages.begin);
  map_or_throw(host, pages.bytes, kOwn, -1);
  copy_pages(host, device, pages.bytes);
  map_or_throw(device, pages.bytes, kOwn | MAP_NORESERVE, -1);
}

}  // namespace

cudaError_t RegisteredMemory::add(void* host, size_t bytes, unsigned flags) {
  const uint64_t begin = reinterpret_cast<uint64_t>(host);
  const auto after = ranges_.lower_bound(begin);
  if (after != ranges_.end() && after->first - begin < bytes) return cudaErrorHostMemoryAlreadyRegistered;
  uint64_t other = 0;
  if (find(host, &other)) return cudaErrorHostMemoryAlreadyRegistered;
  ranges_[begin] = {bytes, flags, 0};
  return cudaSuccess;
}

cudaError_t RegisteredMemory::remove(GlobalMemory& memory, void* host) {
  const auto found = ranges_.find(reinterpret_cast<uint64_t>(host));
  if (found == ranges_.end()) return cudaErrorHostMemoryNotRegistered;
  const auto [begin, range] = *found;
  if (range.device) {
    const Pages pages = pages_of(begin, range.bytes);
    const uint64_t device = range.device - (begin - pages.begin);
    part(pages, memory.unchecked(device));
    memory.release(device);
  }
  ranges_.erase(found);
  return cudaSuccess;
}

const Registered* RegisteredMemory::find(const void* host, uint64_t* begin) const {
  const uint64_t address = reinterpret_cast<uint64_t>(host);
  auto after = ranges_.upper_bound(address);
  if (after == ranges_.begin()) return nullptr;
  const auto& [first, range] = *std::prev(after);
  *begin = first;
  return address - first < range.bytes ? &range : nullptr;
}

cudaError_t RegisteredMemory::device_address(GlobalMemory& memory, const void* host, uint64_t* device) {
  uint64_t begin = 0;
  if (!find(host, &begin)) return cudaErrorInvalidValue;
  Registered& range = ranges_.at(begin);
  if (!range.device) {
    const Pages pages = pages_of(begin, range.bytes);
    if (!can_move(pages)) {
      return unsupported(
          "registered memory on the device that is a file's, a stack, or shares a page with another");
    }
    const uint64_t place = memory.allocate(begin - pages.begin + range.bytes, pages_of(0, 1).bytes);
    if (!place) return cudaErrorMemoryAllocation;
    share(pages, memory.unchecked(place));
    range.device = place + (begin - pages.begin);
  }
  *device = range.device + (reinterpret_cast<uint64_t>(host) - begin);
  return cudaSuccess;
}

// Never destroyed, as Runtime.
RegisteredMemory& registered_memory() {
  static auto* memory = new RegisteredMemory;
  return *memory;
}

}  // namespace gg::emu
