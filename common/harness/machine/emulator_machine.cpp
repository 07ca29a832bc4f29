// SPDX-License-Identifier: MIT
//
// The machine that is the emulator: memory and launches by its CUDA runtime, so that every
// address of a kernel is checked; data made and compared by the host machine, in the memory
// behind the emulator's.

#include <sys/resource.h>

#include <algorithm>

#include "common/harness/machine/cuda.h"
#include "common/harness/machine/emulator.h"

namespace gg {
namespace {

class EmulatorMachine : public CudaMachine {
 public:
  EmulatorMachine() {
    GG_CHECK(cudaDeviceGetAttribute(&all_, cudaDevAttrMultiProcessorCount, 0));
    whole_ = all_;
  }
  ~EmulatorMachine() override { emulator()->set_multiprocessors(all_); }

  // Where address space is limited there may not be enough for what nobody touches.
  bool reserves() const override {
    rlimit limit{};
    return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY;
  }
  void* reserve(size_t bytes, const char* what) override {
    void* const memory = emulator()->reserve(bytes);
    if (!memory)
      throw Error(Exit::no_memory,
                  format("%s needs %zu bytes of addresses, more than there are", what, bytes));
    return memory;
  }

  int play_small(bool small, int cluster) override {
    const int few = small_multiprocessors(whole_, cluster);
    if (few == whole_) return 0;
    emulator()->set_multiprocessors(small ? few : whole_);
    return few;
  }
  void play_at_most(int multiprocessors) override {
    whole_ = multiprocessors > 0 ? std::min(multiprocessors, all_) : all_;
    emulator()->set_multiprocessors(whole_);
  }

  void set_readable(void* memory, const char* name, const std::vector<ByteRange>& ranges) override {
    std::vector<GgEmuRange> each;
    for (const ByteRange& range : ranges) each.push_back({range.begin, range.end});
    emulator()->set_readable(memory, name, each.data(), each.size());
  }
  void doing(const std::string& what) override { emulator()->doing(what.empty() ? nullptr : what.c_str()); }
  void fill(void* tensor, Format format, const std::vector<Region>& regions, const Fill& fill) override {
    host_->fill(behind(tensor, regions, format), format, regions, fill);
  }
  void copy_regions(void* to, const void* from, Format format, const std::vector<Region>& regions) override {
    host_->copy_regions(behind(to, regions, format), behind(from, regions, format), format, regions);
  }
  int64_t first_difference(const void* x, const void* y, size_t bytes) override {
    return host_->first_difference(behind(x, bytes), behind(y, bytes), bytes);
  }
  Comparison compare(const Matrices& matrices, const std::vector<Group>& groups,
                     const Limit& limit) override {
    const Formats& formats = matrices.formats;
    const auto operand = [&](const void* tensor, Region Group::*region, Format format) {
      std::vector<Region> regions;
      for (const Group& group : groups) regions.push_back(group.*region);
      return behind(tensor, regions, format);
    };
    const auto scales = [&](const uint8_t* tensor, ScaleRegion Group::*region) {
      int64_t bytes = 0;  // up to the end of the last region
      for (const Group& group : groups) {
        bytes = std::max(bytes, (group.*region).offset + (group.*region).layout.bytes());
      }
      return tensor ? static_cast<const uint8_t*>(behind(tensor, size_t(bytes))) : nullptr;
    };
    Matrices on_host = matrices;
    on_host.a = operand(matrices.a, &Group::a, formats.a);
    on_host.b = operand(matrices.b, &Group::b, formats.b);
    on_host.d = operand(matrices.d, &Group::d, formats.d);
    on_host.sfa = scales(matrices.sfa, &Group::sfa);
    on_host.sfb = scales(matrices.sfb, &Group::sfb);
    return host_->compare(on_host, groups, limit);
  }

 private:
  static void* behind(const void* device, size_t bytes) {
    void* const memory = emulator()->host(device, bytes);
    if (!memory) {
      throw Error(Exit::device_error,
                  format("no allocation of the emulator holds %zu bytes at %p", bytes, device));
    }
    return memory;
  }
  static void* behind(const void* tensor, const std::vector<Region>& regions, Format format) {
    int64_t elems = 0;  // up to the end of the last region
    for (const Region& r : regions) {
      if (r.rows > 0) elems = std::max(elems, r.offset + (r.rows - 1) * r.ld + r.cols);
    }
    return behind(tensor, bytes_of(format, elems));
  }

  const std::unique_ptr<Machine> host_ = host_machine();
  int all_ = 0, whole_ = 0;  // multiprocessors of the device, and of what it plays as whole
};

}  // namespace

std::unique_ptr<Machine> emulator_machine() { return std::make_unique<EmulatorMachine>(); }

}  // namespace gg
