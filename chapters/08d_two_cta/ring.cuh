// SPDX-License-Identifier: MIT
//
// A ring of stages, of accumulators or the like, each with mbarriers. A role is at number `stage`.

#pragma once

namespace chapter {

template <int SIZE>
struct Ring {
  int stage = 0;
  // A parity: lap % 2, where a lap is one use of the whole ring. In lap t a reader waits for phase
  // t of `full`, `ready` or the like: for `phase`. A writer waits until what lap t - 1 left there
  // has been read, for phase t - 1 of `empty`, `taken` or the like: for `phase ^ 1`, which in lap 0
  // goes on at once, as on any new mbarrier.
  int phase = 0;
  __device__ void next() {
    if (++stage == SIZE) {
      stage = 0;
      phase ^= 1;
    }
  }
};

}  // namespace chapter
