// SPDX-License-Identifier: MIT
//
// The kernel's sizes, and what it is given.

#pragma once

#include <type_traits>

#include "schedule.cuh"

namespace chapter {

constexpr int BK = 64, ROW_BYTES = 128;  // depth of a slice: rows of 128 bytes, the most that TMA swizzles
constexpr int STEP = 32;                 // rows of a tile, and wgmma's N, come in steps of it

struct Problem {
  gg::Offsets offsets;
  int groups, n, k;
};

// Tiles of up to BM rows; CONSUMERS warpgroups of 64 columns of D each; STAGES slices in shared memory.
template <int CONSUMERS_, int BM_, int STAGES_>
struct Config {
  static constexpr int CONSUMERS = CONSUMERS_, BM = BM_, STAGES = STAGES_;
  static constexpr int BN = 64 * CONSUMERS, THREADS = 128 * (CONSUMERS + 1);
  static constexpr int A_BYTES = BM * ROW_BYTES, B_BYTES = BN * ROW_BYTES;  // of a slice
  static constexpr int SHARED_BYTES = STAGES * (A_BYTES + B_BYTES);
};

template <int BM>
struct Maps {
  CUtensorMap a[BM / STEP];  // for each number of rows: A's part of a slice is one box, one instruction
  CUtensorMap b;
};

// Calls f with the least width that holds `rows`, as a constant: wgmma's N is part of the instruction.
template <int WIDTH, class F>
__device__ __forceinline__ void with_width_for(int rows, F& f) {
  if constexpr (WIDTH > STEP) {
    if (rows <= WIDTH - STEP) return with_width_for<WIDTH - STEP>(rows, f);
  }
  f(std::integral_constant<int, WIDTH>());
}

}  // namespace chapter
