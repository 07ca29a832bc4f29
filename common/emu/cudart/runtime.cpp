// SPDX-License-Identifier: MIT
//
// The state behind the runtime: settings, memory, errors, the lock.

#include "common/emu/cudart/runtime.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "common/emu/core/report/count_report.h"
#include "common/emu/core/state/host_memory.h"
#include "common/emu/core/state/left_out.h"
#include "common/emu/core/state/progress.h"
#include "common/emu/cudart/settings.h"
#include "common/harness/base/files.h"

namespace gg::emu {
namespace {

thread_local std::unique_lock<std::mutex>* held = nullptr;

[[noreturn]] void end_program(const std::string& text, int code = 3) {
  ProgressLine::get().close();
  std::fflush(stdout);
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
  _exit(code);
}

void write_trace(Runtime& runtime) {
  if (!runtime.trace) return;
  std::fflush(stdout);
  try {
    write_file(runtime.settings.trace, runtime.trace->json());
    std::fprintf(stderr, "gg-emu: %s: %s\n", runtime.settings.trace.c_str(),
                 runtime.trace->summary().c_str());
  } catch (const Error& error) {
    end_program(std::string("gg-emu: ") + error.what() + "\n", int(error.code));
  }
}

void write_line_counts(Runtime& runtime) {
  try {
    write_file(runtime.settings.line_counts, line_counts_csv(runtime.counts()));
  } catch (const Error& error) {
    end_program(std::string("gg-emu: ") + error.what() + "\n", int(error.code));
  }
}

size_t page() { return size_t(sysconf(_SC_PAGESIZE)); }

}  // namespace

Runtime& Runtime::get() {
  static Runtime* runtime = [] {
    try {
      return new Runtime;
    } catch (const Error& error) {
      end_program(std::string("gg-emu: ") + error.what() + "\n", int(error.code));
    } catch (const std::exception& error) {
      end_program(std::string("gg-emu: ") + error.what() + "\n");
    }
  }();
  return *runtime;
}

// A program ends, and a launch is held back for a dependent one that did not come. Where another
// thread launches just now, nobody waits for that, as on a device.
static void end_held_launch() {
  Runtime& runtime = Runtime::get();
  const std::unique_lock lock(runtime.mutex, std::try_to_lock);
  if (!lock) return;
  try {
    runtime.finish_held();
  } catch (const std::exception& fault) {
    end_program(fault.what());
  }
}

// Arranges for what the program is to leave behind. A launch that still runs in another thread goes
// on meanwhile, and ends with the process, as on a device; it is not in the report.
Runtime::Runtime() : settings(read_settings()) {
  ProgressLine::get().set_patience(settings.progress_after);
  memory_total_ = std::min<size_t>(total_host_bytes(), memory.reserve_bytes());
  memory_at_start_ = std::min(free_host_bytes(), memory_total_);
  if (!settings.trace.empty()) {
    require_writable(settings.trace);
    trace = std::make_unique<Trace>();
    std::atexit([] { write_trace(Runtime::get()); });
  }
  if (!settings.line_counts.empty()) {
    require_writable(settings.line_counts);
    std::atexit([] { write_line_counts(Runtime::get()); });
  }
  if (settings.report) {
    std::atexit([] {
      std::fflush(stdout);
      print_report(stderr, Runtime::get().counts());
      const DeviceHeap::Live left = Runtime::get().memory.heap.live();
      if (left.blocks) {
        std::fprintf(stderr, "kernels' heap: %llu blocks of %llu bytes in all were never freed\n",
                     static_cast<unsigned long long>(left.blocks),
                     static_cast<unsigned long long>(left.bytes));
      }
    });
  }
  std::atexit(end_held_launch);  // runs before those
  std::atexit([] { ProgressLine::get().close(); });
}

void Runtime::run(const Launch& launch, CUstream_st* stream, bool dependent) {
  const Trace::Recording recording(trace.get(), launch);
  auto next = std::make_unique<HeldLaunch>(launch, memory, settings.run);
  if (held_ && dependent && stream == held_stream_ && settings.run.order.late) next->run_to_wait();
  finish_held();
  if (launches_dependents(*launch.code) && !trace) {  // a trace shows one launch at a time
    held_ = std::move(next);
    held_stream_ = stream;
  } else {
    finish(*next);
  }
}

void Runtime::finish_held() {
  if (const auto launch = std::move(held_)) finish(*launch);
}

void Runtime::finish(HeldLaunch& launch) {
  Counts sum = counts();
  launch.finish(&sum);
  set_counts(std::move(sum));
}

Counts Runtime::counts() {
  std::lock_guard lock(counts_mutex_);
  return counts_;
}

void Runtime::set_counts(Counts counts) {
  std::lock_guard lock(counts_mutex_);
  counts_ = std::move(counts);
}

const Device& Runtime::device() {
  if (!device_) {
    device_ =
        std::make_unique<Device>(*find_device(!settings.like.empty()                           ? settings.like
                                              : programs.all_fit(90) || !programs.all_fit(100) ? "h200"
                                                                                               : "b200"));
    if (settings.multiprocessors > 0) device_->multiprocessors = settings.multiprocessors;
    settings.run.multiprocessors = device_->multiprocessors;
  }
  return *device_;
}

void Runtime::play(const std::string& like) {
  check_like("device", like);
  settings.like = like;
  device_.reset();
}

void Runtime::set_multiprocessors(int count) {
  device();  // chosen before it is changed
  device_->multiprocessors = settings.run.multiprocessors = std::max(1, count);
}

size_t Runtime::memory_free() const {
  return memory_at_start_ - std::min<size_t>(memory_at_start_, memory.used_bytes() - reserved_bytes_);
}

uint64_t Runtime::allocate(size_t bytes) {
  const uint64_t address = bytes > memory_free() ? 0 : memory.allocate(bytes);
  if (address) memory.forget(address);
  return address;
}

std::shared_ptr<void> Runtime::allocate_for_graph(size_t bytes) {
  const uint64_t address = allocate(bytes);
  if (!address) return nullptr;
  of_graphs_.insert(address);
  return {reinterpret_cast<void*>(address), [this, address](void*) {
            of_graphs_.erase(address);
            release(address);
          }};
}

uint64_t Runtime::reserve(size_t bytes) {
  const uint64_t address = memory.allocate(bytes);
  if (!address) return 0;
  memory.forget(address);
  reserved_[address] = bytes;
  reserved_bytes_ += bytes;
  return address;
}

// The pages of the allocation, in the view that kernels' addresses are of and in ours, are made
// the same memory.
uint64_t Runtime::allocate_visible(size_t bytes, cudaMemoryType type, unsigned flags) {
  const size_t rounded = (bytes + page() - 1) / page() * page();
  if (rounded < bytes || rounded > memory_free()) return 0;
  const uint64_t address = memory.allocate(bytes, page());
  if (!address) return 0;
  const int file = memfd_create("gg-emu", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, off_t(rounded)) != 0)
    throw std::runtime_error("no memory file for host-visible memory");
  for (void* at : {reinterpret_cast<void*>(address), static_cast<void*>(memory.unchecked(address))}) {
    if (mmap(at, rounded, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) {
      throw std::runtime_error("host-visible memory could not be mapped");
    }
  }
  close(file);
  visible_[address] = {type, bytes, flags};
  return address;
}

bool Runtime::release(uint64_t address) {
  if (const auto reserved = reserved_.find(address); reserved != reserved_.end()) {
    reserved_bytes_ -= reserved->second;
    reserved_.erase(reserved);
  }
  const auto found = visible_.find(address);
  if (found != visible_.end()) {
    const size_t rounded = (found->second.bytes + page() - 1) / page() * page();
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    mmap(reinterpret_cast<void*>(address), rounded, PROT_NONE, flags, -1, 0);
    mmap(memory.unchecked(address), rounded, PROT_READ | PROT_WRITE, flags, -1, 0);
    visible_.erase(found);
  }
  return memory.release(address);
}

const HostVisible* Runtime::visible(uint64_t address) const {
  auto after = visible_.upper_bound(address);
  if (after == visible_.begin()) return nullptr;
  const auto& [begin, allocation] = *std::prev(after);
  return address < begin + std::max<uint64_t>(allocation.bytes, 1) ? &allocation : nullptr;
}

void tell(const std::string& sentence) {
  static auto& said = *new std::set<std::string>;  // never destroyed: see Runtime::get
  if (!said.insert(sentence).second) return;
  const ProgressLine::Aside aside(ProgressLine::get());
  std::fflush(stdout);
  std::fprintf(stderr, "gg-emu: %s\n", sentence.c_str());
}

cudaError_t refuse(cudaError_t error, const std::string& why) {
  tell(why);
  return error;
}

cudaError_t unsupported(const std::string& what) {
  return refuse(cudaErrorNotSupported, what + " is not supported by the emulator");
}

cudaError_t unsupported_here(const std::string& what) {
  return refuse(cudaErrorNotSupported, left_out(what));
}

cudaError_t& last_error() {
  thread_local cudaError_t error = cudaSuccess;
  return error;
}

Unlocked::Unlocked() {
  if (held) held->unlock();
}
Unlocked::~Unlocked() {
  if (held) held->lock();
}

cudaError_t run_locked(cudaError_t (*body)(void*), void* context, bool finish_held) {
  std::unique_lock lock(Runtime::get().mutex);
  std::unique_lock<std::mutex>* const outer = held;
  held = &lock;
  cudaError_t error = cudaSuccess;
  try {
    if (finish_held) Runtime::get().finish_held();
    error = body(context);
  } catch (const Fault& fault) {
    write_trace(Runtime::get());
    end_program(fault.what());
  } catch (const std::bad_alloc&) {
    error = cudaErrorMemoryAllocation;
  } catch (const std::exception& failure) {
    end_program(std::string("gg-emu: ") + failure.what() + "\n");
  }
  held = outer;
  if (error != cudaSuccess) last_error() = error;
  return error;
}

}  // namespace gg::emu

// Called by the functions that stubs.cmake writes: of names that nothing implements, and of those
// that only common/emu/foreign does.
extern "C" int gg_emu_unsupported(const char* name) {
  return gg::emu::api([&](gg::emu::Runtime&) { return gg::emu::unsupported(name); });
}
extern "C" int gg_emu_left_out(const char* name) {
  return gg::emu::api([&](gg::emu::Runtime&) { return gg::emu::unsupported_here(name); });
}
