// SPDX-License-Identifier: MIT
//
// In the last round some workers may have no tile. Its tiles may each be cut into pieces of fewer
// rows, so that more workers have something. Here: into how many.

#pragma once

#include "config.cuh"

namespace chapter {

// The model's three numbers. Entries are those of chapter 07l's worklog.
constexpr int FLOP_PER_CYCLE = 4096;  // physical: a multiprocessor's tensor cores, bf16 or f16
// Measured (entry 44): bytes that a multiprocessor reads from the L2 in a cycle, while all do.
constexpr int L2_BYTES_PER_CYCLE = 45;
// Fitted: cycles of a tile beside its slices. Stamps found 900 and 1080 (entries 56 and 28). The
// choice hardly depends on it.
constexpr int CYCLES_AROUND = 1000;

// Cycles of a slice of a tile of `rows` rows, a multiple of STEP: those of its products or those of
// its loads, whichever are more.
template <class C>
__device__ constexpr int cycles_of_slice(int rows) {
  const int multiply = rows * C::BN * BK * 2 / FLOP_PER_CYCLE;
  // The block reads its rows of A and its columns of B. What others' multicast brings
  // is not counted.
  const int load = (rows / C::CLUSTER + C::BN) * ROW_BYTES / L2_BYTES_PER_CYCLE;
  return max(multiply, load);
}
template <class C>
__device__ float cycles_of_tile(int rows, int slices) {
  return float(cycles_of_slice<C>(rows)) * float(slices) + CYCLES_AROUND;
}

// Returns into how many pieces each tile of the last round is cut, 1 to BM / STEP, the steps of
// a full tile: the number with the least estimate, of equal ones the least number. Who: a whole
// warp; each lane estimates what its number of pieces would take. All workers must pass the same,
// and get the same then.
// last_tiles: of the last round, 1 to `workers`. average_rows: of the launch's tiles; each tile of
// the last round is taken to have so many.
// [pieces]
template <class C>
__device__ int pieces_of_last_round(int last_tiles, float average_rows, int workers, int slices) {
  static_assert(C::BM / STEP <= 32, "each number of pieces has a lane");
  const int lane = int(threadIdx.x) % 32, pieces = lane % (C::BM / STEP) + 1;
  const int rows = min(C::BM, int(ceilf(average_rows)));
  const float piece_cycles = cycles_of_tile<C>(round_up((rows + pieces - 1) / pieces, STEP), slices);
  // Rounds of pieces, and a half: a guess at what it costs that workers end the rounds before at
  // different times. Because of it a full round of wide tiles is cut, too, and takes longer.
  const float cycles = (float((last_tiles * pieces + workers - 1) / workers) + 0.5f) * piece_cycles;
  // Bits of positive floats compare as the floats do. The lowest five make room for the lane.
  const unsigned key = (__float_as_uint(cycles) & ~31u) | unsigned(lane);
  return int(__reduce_min_sync(~0u, key)) % 32 % (C::BM / STEP) + 1;
}
// [/pieces]

}  // namespace chapter
