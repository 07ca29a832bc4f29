// SPDX-License-Identifier: MIT
//
// Memory of the host that the program registers. Copies need nothing more; where the program asks
// for its address on the device, its pages become the same memory as an allocation of the device.

#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>

#include "common/emu/core/state/memory.h"

namespace gg::emu {

struct Registered {
  uint64_t bytes = 0;
  unsigned flags = 0;
  uint64_t device = 0;  // where kernels see the first byte; 0: nobody has asked
};

class RegisteredMemory {
 public:
  // cudaErrorHostMemoryAlreadyRegistered if one that is registered overlaps it.
  cudaError_t add(void* host, size_t bytes, unsigned flags);
  // cudaErrorHostMemoryNotRegistered unless one starts there. Its bytes stay as they are.
  cudaError_t remove(GlobalMemory& memory, void* host);
  // The registered range that holds an address; null if none does.
  const Registered* find(const void* host, uint64_t* begin) const;
  // Where kernels see this byte. cudaErrorInvalidValue if it is not registered,
  // cudaErrorNotSupported for memory that is a file's or a stack. While it runs no other thread may
  // write to these pages.
  cudaError_t device_address(GlobalMemory& memory, const void* host, uint64_t* device);

 private:
  std::map<uint64_t, Registered> ranges_;
};

// All that the program has registered.
RegisteredMemory& registered_memory();

}  // namespace gg::emu
