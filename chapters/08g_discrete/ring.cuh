// SPDX-License-Identifier: MIT
//
// A ring of stages, of accumulators or the like, each with mbarriers. A role is at number `stage`.

#pragma once

namespace chapter {

template <int SIZE>
struct Ring {
  int stage = 0, phase = 0;  // phase: the parity of the lap, one use of the whole ring
  __device__ void next() {
    if (++stage == SIZE) {
      stage = 0;
      phase ^= 1;
    }
  }
};

}  // namespace chapter
