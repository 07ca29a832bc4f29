// SPDX-License-Identifier: MIT
//
// The ring of stages in shared memory, as each warp walks through it.

#pragma once

namespace chapter {

template <int STAGES>
struct Ring {
  int stage = 0, phase = 0;  // phase: how often round, as a parity
  __device__ void next() {
    if (++stage < STAGES) return;
    stage = 0;
    phase ^= 1;
  }
};

}  // namespace chapter
