// SPDX-License-Identifier: MIT
//
// In the last round some workers may have no tile. Its tiles may each be cut into pieces of fewer rows, so
// that more workers have something.

#pragma once

#include "config.cuh"

namespace chapter {

constexpr int FLOP_PER_CYCLE = 4096;    // a multiprocessor's tensor cores, bf16 or f16
constexpr int L2_BYTES_PER_CYCLE = 45;  // to a multiprocessor, while all of them load (measured)
constexpr int CYCLES_AROUND = 1000;     // of a tile, beside its slices (worklog of chapter 07l, entry 28)

// Cycles of a slice of a tile of `rows` rows: those of its products or those of its loads, which are more.
template <class C>
__device__ constexpr int cycles_of_slice(int rows) {
  const int multiply = rows * C::BN * BK * 2 / FLOP_PER_CYCLE;
  const int load = (rows / C::CLUSTER + C::BN) * ROW_BYTES / L2_BYTES_PER_CYCLE;
  return max(multiply, load);
}
template <class C>
__device__ float cycles_of_tile(int rows, int slices) {
  return float(cycles_of_slice<C>(rows)) * float(slices) + CYCLES_AROUND;
}

// Who: a whole warp. Returns into how many pieces each tile of the last round is best cut. Each lane
// estimates what its number of pieces would take, and the least wins. uncut: the number of all tiles.
// uncut_rows: the sum of their rows.
// [pieces]
template <class C>
__device__ int pieces_of_last_round(int uncut, float uncut_rows, int workers, int slices) {
  const int lane = int(threadIdx.x) % 32, pieces = lane % (C::BM / STEP) + 1;
  const int last_tiles = (uncut - 1) % workers + 1;
  const int rows_each = min(C::BM, int(ceilf(uncut_rows / float(uncut))));  // the average
  const float piece_cycles = cycles_of_tile<C>(round_up((rows_each + pieces - 1) / pieces, STEP), slices);
  // Rounds of pieces, and a half: workers end the rounds before at different times, which costs half a piece
  // (a guess).
  const float cycles = (float((last_tiles * pieces + workers - 1) / workers) + 0.5f) * piece_cycles;
  const unsigned key = (__float_as_uint(cycles) & ~31u) | unsigned(lane);  // compares as the float does
  return int(__reduce_min_sync(~0u, key)) % 32 % (C::BM / STEP) + 1;
}
// [/pieces]

}  // namespace chapter
