// SPDX-License-Identifier: MIT
//
// One lane for all: PTX ISA, "Parallel synchronization and communication instructions: elect.sync". Needs
// sm_90.

#pragma once

#include <cstdint>

namespace gg::ptx {

// Who: all lanes of a warp together.
// Does: true in one of them, the same one every time. The compiler then knows that a single lane goes on;
// behind
//   `lane == 0` it does not, and makes of every TMA instruction a loop over the lanes that might be there.
__device__ inline bool elect_sync() {
  uint32_t elected;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "elect.sync _|p, 0xFFFFFFFF;\n"
      "selp.b32 %0, 1, 0, p;\n"
      "}"
      : "=r"(elected));
  return elected != 0;
}

}  // namespace gg::ptx
