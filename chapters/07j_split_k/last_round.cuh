// SPDX-License-Identifier: MIT
//
// In the last round some workers may have no tile. Its tiles may each be cut into pieces of fewer rows, so
// that more workers have something.

#pragma once

#include "config.cuh"

namespace chapter {

// A slice of a tile takes so many cycles: as its products do, 4096 FLOP a cycle, or as its way from the L2
// does, whichever is longer. Each multiprocessor got 45 bytes a cycle where all of them loaded (measured).
template <class C>
__device__ constexpr int cycles_of_slice(int rows) {
  const int multiply = rows * C::BN / 32, load = (rows / C::CLUSTER + C::BN) * ROW_BYTES / 45;
  return max(multiply, load);
}
// A tile takes about 1000 cycles beside those of its slices (worklog of chapter 07l, entry 28).
template <class C>
__device__ float cycles_of_tile(int rows, int slices) {
  return float(cycles_of_slice<C>(rows)) * float(slices) + 1000;
}

// Returns into how many pieces each tile of the last round is best cut. `rows`: of all groups, times the
// columns of tiles. Who: a whole warp. Each lane estimates what so many pieces would take, and the least
// wins.
// [pieces]
template <class C>
__device__ int pieces_of_last_round(int tiles, float rows, int workers, int slices) {
  const int lane = int(threadIdx.x) % 32, pieces = lane % (C::BM / STEP) + 1;
  const int last = (tiles - 1) % workers + 1, height = min(C::BM, int(rows / float(tiles)) + 1);
  const float piece = cycles_of_tile<C>(round_up((height + pieces - 1) / pieces, STEP), slices);
  // Rounds of pieces. Workers do not end together, and wait for half a piece: a guess.
  const float cycles = (float((last * pieces + workers - 1) / workers) + 0.5f) * piece;
  const unsigned key = (__float_as_uint(cycles) & ~31u) | unsigned(lane);  // compares as the float does
  return int(__reduce_min_sync(~0u, key)) % 32 % (C::BM / STEP) + 1;
}
// [/pieces]

}  // namespace chapter
