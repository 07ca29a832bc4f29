// SPDX-License-Identifier: MIT
//
// A ring of places, each with mbarriers of its own, as a role walks through it.

#pragma once

namespace chapter {

template <int SIZE>
struct Ring {
  int stage = 0, phase = 0;  // phase: how often round, as a parity
  __device__ void next() {
    if (++stage == SIZE) {
      stage = 0;
      phase ^= 1;
    }
  }
};

}  // namespace chapter
