// SPDX-License-Identifier: MIT
//
// The ring of stages in shared memory, as a warp walks through it. Each warp that loads or
// multiplies has a Ring of its own and calls next() once for every slice: so all count alike.

#pragma once

namespace chapter {

template <int STAGES>
struct Ring {
  int stage = 0;
  // A parity: lap % 2, where a lap is one use of all stages. In lap t, phase t of the stage's
  // `full` ends when the slice has landed: wait for `phase`. Phase t - 1 of its `empty` ends when
  // the stage's slice of lap t - 1 is multiplied: wait for `phase ^ 1`, which in lap 0 goes on at
  // once, as on any new mbarrier.
  int phase = 0;
  __device__ void next() {
    if (++stage < STAGES) return;
    stage = 0;
    phase ^= 1;
  }
};

}  // namespace chapter
