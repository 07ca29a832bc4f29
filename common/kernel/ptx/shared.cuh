// SPDX-License-Identifier: MIT
//
// Addresses of shared memory. PTX ISA, "State Spaces: Shared State Space", "Generic Addressing".

#pragma once

#include <cstdint>

namespace gg::ptx {

// Who: any thread. The 32-bit address that shared-memory instructions take, of an object
// in shared memory.
__device__ inline uint32_t shared_addr(const void* object) {
  return uint32_t(__cvta_generic_to_shared(object));
}

}  // namespace gg::ptx
