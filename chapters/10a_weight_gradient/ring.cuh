// SPDX-License-Identifier: MIT
//
// The ring of stages in shared memory, as a warp walks through it. A worker's slices, of all its
// tiles, take the stages in turn. Tiles have different numbers of slices, so each tile says where in
// the ring it begins.

#pragma once

namespace chapter {

template <int STAGES>
struct Ring {
  static constexpr int POSITIONS = 2 * STAGES;  // stage and phase are the same again after so many slices

  int stage = 0;
  // A parity: lap % 2, where a lap is one use of all stages. In lap t, phase t of the stage's
  // `full` ends when the slice has landed: wait for `phase`. Phase t - 1 of its `empty` ends when
  // the stage's slice of lap t - 1 is multiplied: wait for `phase ^ 1`, which in lap 0 goes on at
  // once, as on any new mbarrier.
  int phase = 0;

  // `position`: the number of slices before, modulo POSITIONS.
  __device__ explicit Ring(int position) : stage(position % STAGES), phase(position / STAGES) {}
  __device__ void next() {
    if (++stage < STAGES) return;
    stage = 0;
    phase ^= 1;
  }
};

}  // namespace chapter
