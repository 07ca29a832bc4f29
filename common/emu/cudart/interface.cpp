// SPDX-License-Identifier: MIT
//
// gg_emu_interface: what the harness may ask beyond the CUDA runtime.

#include "common/emu/cudart/interface.h"

#include "common/emu/core/report/count_report.h"
#include "common/emu/core/state/progress.h"
#include "common/emu/cudart/runtime.h"

namespace gg::emu {
namespace {

void* host(const void* device, size_t bytes) {
  void* found = nullptr;
  api([&](Runtime& rt) {
    found = rt.memory.host(reinterpret_cast<uint64_t>(device), bytes);
    if (found) rt.memory.open_to_host(reinterpret_cast<uint64_t>(device));
    return cudaSuccess;
  });
  return found;
}

void set_order(uint64_t seed, int skew) {
  api([&](Runtime& rt) {
    rt.settings.run.order = {seed, skew != 0};
    return cudaSuccess;
  });
}

void order(uint64_t* seed, int* skew) {
  api([&](Runtime& rt) {
    *seed = rt.settings.run.order.seed;
    *skew = rt.settings.run.order.skew;
    return cudaSuccess;
  });
}

void play(const char* like) {
  api([&](Runtime& rt) {
    rt.play(like);
    return cudaSuccess;
  });
}

void counts(void (*each)(void* context, const char* counter, uint64_t value), void* context) {
  std::vector<Counter> counters;
  api([&](Runtime& rt) {
    counters = summarise(rt.counts());
    return cudaSuccess;
  });
  for (const Counter& counter : counters) each(context, counter.name.c_str(), counter.value);
}

void reset_counts() {
  api([](Runtime& rt) {
    rt.set_counts({});
    return cudaSuccess;
  });
}

void set_multiprocessors(int count) {
  api([&](Runtime& rt) {
    rt.set_multiprocessors(count);
    return cudaSuccess;
  });
}

void* reserve(size_t bytes) {
  void* reserved = nullptr;
  api([&](Runtime& rt) {
    reserved = reinterpret_cast<void*>(rt.reserve(bytes));
    return cudaSuccess;
  });
  return reserved;
}

void doing(const char* what) {
  Runtime::get();  // it has read the settings
  if (what) {
    ProgressLine::get().begin(what);
  } else {
    ProgressLine::get().end();
  }
}

void set_readable(const void* device, const char* name, const GgEmuRange* ranges, size_t count) {
  const uint64_t address = reinterpret_cast<uint64_t>(device);
  Readable readable{name, {}};
  for (size_t i = 0; i < count; ++i)
    readable.ranges.push_back({address + ranges[i].begin, address + ranges[i].end});
  api([&](Runtime& rt) {
    rt.memory.set_readable(address, std::move(readable));
    return cudaSuccess;
  });
}

}  // namespace
}  // namespace gg::emu

const GgEmuInterface* gg_emu_interface() {
  static const GgEmuInterface functions = {.version = kGgEmuInterface,
                                           .host = gg::emu::host,
                                           .set_order = gg::emu::set_order,
                                           .order = gg::emu::order,
                                           .play = gg::emu::play,
                                           .counts = gg::emu::counts,
                                           .reset_counts = gg::emu::reset_counts,
                                           .set_multiprocessors = gg::emu::set_multiprocessors,
                                           .reserve = gg::emu::reserve,
                                           .doing = gg::emu::doing,
                                           .set_readable = gg::emu::set_readable};
  return &functions;
}
