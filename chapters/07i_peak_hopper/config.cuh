// SPDX-License-Identifier: MIT
//
// The kernel's sizes, and what it is given.

#pragma once

#include <algorithm>
#include <type_traits>

#include "schedule.cuh"
#include "split_k.cuh"

namespace chapter {

constexpr int BK = 64;     // depth of a slice: rows of 128 bytes, the most that TMA swizzles
constexpr int HALF = 128;  // rows that a warpgroup's part of shared memory holds

struct Problem {
  gg::Offsets offsets;
  int groups, n, k;
  int counter = 0;     // for the claims of this launch
  int rows_each = 0;   // of every group, the caller says; 0: groups differ, or nobody knows
  Share share_each{};  // then: how these are shared out
};

// Tiles of up to BM rows; CONSUMERS warpgroups of 64 columns of D each; STAGES slices in shared memory.
// CLUSTER blocks side by side in N load each slice of A once, for all; or SPLIT blocks have a tile together,
// each a share of K.
template <int CONSUMERS_, int BM_, int STAGES_, int CLUSTER_ = 1, int SPLIT_ = 1>
struct Config {
  static constexpr int CONSUMERS = CONSUMERS_, BM = BM_, STAGES = STAGES_, CLUSTER = CLUSTER_, SPLIT = SPLIT_;
  static constexpr int BLOCKS = CLUSTER * SPLIT;  // of a cluster
  static_assert(CLUSTER == 1 || SPLIT == 1);
  static constexpr int BN = 64 * CONSUMERS, THREADS = 128 * (CONSUMERS + 1);
  static constexpr int A_BYTES = BM * ROW_BYTES, B_BYTES = BN * ROW_BYTES;  // of a slice
  static constexpr int STORE_BYTES = std::min(BM, HALF) * ROW_BYTES;        // of a warpgroup
  static constexpr int SUMS_BYTES =
      (SPLIT - 1) * SplitK<BM>::FLOATS * 4;  // of a warpgroup: other blocks' sums
  static constexpr int SHARED_BYTES = STAGES * (A_BYTES + B_BYTES) + CONSUMERS * (STORE_BYTES + SUMS_BYTES);
};

template <int BM>
struct Maps {
  CUtensorMap a[BM / STEP];  // for each number of rows: a block's part of a slice is one box, one instruction
  CUtensorMap b, d;
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
