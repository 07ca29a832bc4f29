// SPDX-License-Identifier: MIT
//
// The state that all functions of the emulator's CUDA runtime share: one device, its memory, the
// programs registered, the streams, the last error. Every function that the library exports is a
// few lines around `api`.

#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "common/emu/core/report/trace.h"
#include "common/emu/core/schedule/launches.h"
#include "common/emu/core/state/grid.h"
#include "common/emu/cudart/played_device.h"
#include "common/emu/cudart/program.h"
#include "common/emu/cudart/settings.h"
#include "common/emu/cudart/stream.h"

namespace gg::emu {

// Memory that host and kernels see at one address: pinned or managed.
struct HostVisible {
  cudaMemoryType type;
  uint64_t bytes;
  unsigned flags;
};

class Runtime {
 public:
  // Never destroyed: programs unregister themselves after static objects are gone.
  static Runtime& get();

  const Device& device();  // chosen when first asked for
  // Another device than the settings name, before it is asked for.
  void play(const std::string& like);
  void set_multiprocessors(int count);
  size_t memory_total() const { return memory_total_; }
  size_t memory_free() const;

  uint64_t allocate(size_t bytes);  // 0: not that much is free
  // Addresses, whose memory is not counted; 0: there are not that many.
  uint64_t reserve(size_t bytes);
  // Memory of a graph, that goes with the last owner. Freed meanwhile, it is there again at
  // the next launch.
  std::shared_ptr<void> allocate_for_graph(size_t bytes);  // null: not that much is free
  bool is_of_graph(uint64_t address) const { return of_graphs_.count(address) != 0; }
  uint64_t allocate_visible(size_t bytes, cudaMemoryType type, unsigned flags);
  bool release(uint64_t address);
  // The host-visible allocation that holds an address; null if none does.
  const HostVisible* visible(uint64_t address) const;

  Settings settings;
  GlobalMemory memory;
  Programs programs;
  Streams streams;
  std::unique_ptr<Trace> trace;  // null: not asked for
  std::mutex mutex;              // of the calls: one runs at a time, a launch to its end

  // Runs a launch that was submitted to a stream. It is held back if its kernel allows the next one
  // to begin early: a dependent one (cudaLaunchAttributeProgrammaticStreamSerialization) that comes
  // next in the same stream then runs up to its griddepcontrol.wait before it, in orders of an even
  // seed. Nobody else sees that it was held: every call that could, finishes it first.
  void run(const Launch& launch, CUstream_st* stream, bool dependent);
  void finish_held();

  // Counts of the launches that have ended. A program may end while one still runs in another
  // thread, so they have a mutex of their own.
  Counts counts();
  void set_counts(Counts counts);

 private:
  Runtime();

  std::unique_ptr<Device> device_;
  std::map<uint64_t, HostVisible> visible_;
  std::map<uint64_t, size_t> reserved_;  // bytes by address
  std::set<uint64_t> of_graphs_;
  size_t memory_total_ = 0, memory_at_start_ = 0, reserved_bytes_ = 0;
  void finish(HeldLaunch& launch);

  std::unique_ptr<HeldLaunch> held_;
  CUstream_st* held_stream_ = nullptr;
  Counts counts_;
  std::mutex counts_mutex_;
};

// A sentence on stderr, once.
void tell(const std::string& sentence);
// Says that a function, or a use of one, is not supported, once for each
// sentence; returns cudaErrorNotSupported.
cudaError_t unsupported(const std::string& what);
// The same for what common/emu/foreign has, in a build that leaves it out.
cudaError_t unsupported_here(const std::string& what);
// Says why a call fails, where its error alone would not help; returns the error.
cudaError_t refuse(cudaError_t error, const std::string& why);

// The error that a thread's last call that failed returned.
cudaError_t& last_error();

// The lock that api() holds, given back while host code of the program runs.
class Unlocked {
 public:
  Unlocked();
  ~Unlocked();
};

cudaError_t run_locked(cudaError_t (*body)(void*), void* context, bool finish_held);

// For the driver's functions, which want to be initialised and mostly a current context. The
// runtime initialises the driver at every call, and makes the primary context current where it
// wants one and the thread has none. hooks.h: without common/emu/foreign there is no driver.
void initialise();
void want_context();

// Runs a function of the runtime: alone, its error remembered, a fault reported and the program
// ended with code 3.
template <class Body>
cudaError_t api(Body body) {
  initialise();
  return run_locked([](void* context) { return (*static_cast<Body*>(context))(Runtime::get()); }, &body,
                    true);
}
// The same for a launch, and for queries of devices and kernels, which cannot see what kernels do.
template <class Body>
cudaError_t api_beside_launches(Body body) {
  initialise();
  return run_locked([](void* context) { return (*static_cast<Body*>(context))(Runtime::get()); }, &body,
                    false);
}

}  // namespace gg::emu
