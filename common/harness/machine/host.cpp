// SPDX-License-Identifier: MIT
//
// The machine that is host memory and host functions.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "common/harness/base/parallel.h"
#include "common/harness/machine/machine.h"
#include "common/harness/machine/overflow.h"

namespace gg {
namespace {

size_t available_host_bytes() {
  size_t kib = 0;
  char line[256];
  if (std::FILE* file = std::fopen("/proc/meminfo", "r")) {
    while (std::fgets(line, sizeof line, file) && std::sscanf(line, "MemAvailable: %zu kB", &kib) != 1) {
    }
    std::fclose(file);
  }
  return kib * 1024;
}

class HostMachine : public Machine {
 public:
  explicit HostMachine(size_t memory_limit) : memory_limit_(memory_limit) {}

  size_t free_bytes() override { return memory_limit_ ? memory_limit_ - used_ : available_host_bytes(); }

  void* allocate(size_t bytes, const char* what) override {
    const size_t rounded = (std::max<size_t>(bytes, 1) + 255) / 256 * 256;
    void* memory = rounded <= free_bytes() ? std::aligned_alloc(256, rounded) : nullptr;
    if (!memory) {
      throw Error(Exit::no_memory,
                  format("%s needs %zu bytes of host memory, %zu are free", what, bytes, free_bytes()));
    }
    if (memory_limit_) used_ += rounded;
    return memory;
  }
  void release(void* memory) override { std::free(memory); }

  void fill_bytes(void* memory, int byte, size_t bytes) override { std::memset(memory, byte, bytes); }
  void upload(void* to, const void* from_host, size_t bytes) override { copy(to, from_host, bytes); }
  void download(void* to_host, const void* from, size_t bytes) override { copy(to_host, from, bytes); }
  void copy(void* to, const void* from, size_t bytes) override {
    if (bytes) std::memcpy(to, from, bytes);
  }

  void fill(void* tensor, Format format, const std::vector<Region>& regions, const Fill& fill) override {
    const int32_t* quantiles = normal_quantiles();
    for (const Region& region : regions) {
      parallel_for(region.rows, std::max(1, 4096 / std::max(1, region.cols)),
                   [&](int64_t first, int64_t last) {
                     for (int64_t row = first; row < last; ++row) {
                       for (int col = 0; col < region.cols; ++col) {
                         const int64_t i = region.offset + row * region.ld + col;
                         store_code(tensor, format, i, random_code(fill, format, uint64_t(i), quantiles));
                       }
                     }
                   });
    }
  }

  void copy_regions(void* to, const void* from, Format format, const std::vector<Region>& regions) override {
    for (const Region& region : regions) {
      for (int64_t row = 0; row < region.rows; ++row) {
        const size_t byte = bytes_of(format, region.offset + row * region.ld);
        copy(static_cast<char*>(to) + byte, static_cast<const char*>(from) + byte,
             bytes_of(format, region.cols));
      }
    }
  }

  int64_t first_difference(const void* x, const void* y, size_t bytes) override {
    const char *p = static_cast<const char*>(x), *q = static_cast<const char*>(y);
    return std::memcmp(p, q, bytes) == 0 ? -1 : std::mismatch(p, p + bytes, q).first - p;
  }

  Comparison compare(const Matrices& matrices, const std::vector<Group>& groups,
                     const Limit& limit) override {
    Comparison all;
    std::mutex lock;
    for (const Group& group : groups) {
      constexpr int kRowsAtOnce = 512;  // bounds the memory of the reference
      for (int first = 0; first < group.m; first += kRowsAtOnce) {
        const int rows = std::min(kRowsAtOnce, group.m - first);
        std::vector<double> reference(size_t(rows) * size_t(group.n)), magnitude(reference.size());
        reference_rows(matrices, group, first, first + rows, reference.data(), magnitude.data());
        parallel_for(rows, std::max(8, 32768 / group.n), [&](int64_t begin, int64_t end) {
          Comparison part;
          for (int64_t i = begin * group.n; i < end * group.n; ++i) {
            const int row = first + int(i / group.n), col = int(i % group.n);
            const double sum = reference[size_t(i)];
            part.add(group.d.offset + row * group.d.ld + col,
                     judge_at(matrices, group, row, col, sum, magnitude[size_t(i)], limit), sum, limit);
          }
          const std::lock_guard<std::mutex> guard(lock);
          all.merge(part);
        });
      }
    }
    return all;
  }

  void run(const Work& work) override { work(nullptr); }
  std::function<void()> captured(const Work& work) override {
    return [work] { work(nullptr); };
  }

 private:
  size_t memory_limit_, used_ = 0;
};

}  // namespace

std::unique_ptr<Machine> host_machine(size_t memory_limit) {
  return std::make_unique<HostMachine>(memory_limit);
}

}  // namespace gg
