// SPDX-License-Identifier: MIT
//
// Memory of the host, as Linux tells it: proc(5), "/proc/meminfo"; "Control Group v2", memory.max.

#include "common/emu/core/state/host_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>

namespace gg::emu {
namespace {

size_t page_bytes() { return size_t(sysconf(_SC_PAGESIZE)); }

size_t group_file(const char* path, size_t otherwise) {
  std::ifstream file(path);
  size_t bytes = 0;
  return file >> bytes ? bytes : otherwise;
}

size_t available_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  size_t kilobytes = 0;
  while (file >> word) {
    if (word == "MemAvailable:" && file >> kilobytes) return kilobytes * 1024;
  }
  return size_t(sysconf(_SC_AVPHYS_PAGES)) * page_bytes();
}

}  // namespace

size_t total_host_bytes() {
  const size_t machine = size_t(sysconf(_SC_PHYS_PAGES)) * page_bytes();
  return std::min(machine, group_file("/sys/fs/cgroup/memory.max", SIZE_MAX));
}

size_t free_host_bytes() {
  const size_t limit = group_file("/sys/fs/cgroup/memory.max", SIZE_MAX);
  if (limit == SIZE_MAX) return available_bytes();
  const size_t used = group_file("/sys/fs/cgroup/memory.current", 0);
  return std::min(available_bytes(), limit - std::min(limit, used));
}

}  // namespace gg::emu
