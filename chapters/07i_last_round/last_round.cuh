// SPDX-License-Identifier: MIT
//
// In the last round some workers may have no tile. Its tiles may each be cut into pieces of fewer rows, so
// that more workers have something.

#pragma once

#include "config.cuh"

namespace chapter {

constexpr int FLOP_PER_CYCLE = 4096;  // a multiprocessor's tensor cores, bf16 or f16
// Bytes that a multiprocessor gets a cycle of what it asks the L2 for, while all of them ask (measured).
constexpr int L2_BYTES_PER_CYCLE = 45;
constexpr int CYCLES_AROUND = 1000;  // of a tile, beside its slices (worklog of chapter 07l, entry 28)

// Cycles of a slice of a tile of `rows` rows: those of its products or those of its loads, which are more.
template <class C>
__device__ constexpr int cycles_of_slice(int rows) {
  const int multiply = rows * C::BN * BK * 2 / FLOP_PER_CYCLE;
  // The block asks for its rows of A and its columns of B. What others' multicast brings is not counted.
  const int load = (rows / C::CLUSTER + C::BN) * ROW_BYTES / L2_BYTES_PER_CYCLE;
  return max(multiply, load);
}
template <class C>
__device__ float cycles_of_tile(int rows, int slices) {
  return float(cycles_of_slice<C>(rows)) * float(slices) + CYCLES_AROUND;
}

// Who: a whole warp. Returns into how many pieces each tile of the last round is best cut. Each lane
// estimates what its number of pieces would take, and the least wins. last_tiles: of the last round.
// average_rows: of a tile of the launch.
// [pieces]
template <class C>
__device__ int pieces_of_last_round(int last_tiles, float average_rows, int workers, int slices) {
  const int lane = int(threadIdx.x) % 32, pieces = lane % (C::BM / STEP) + 1;
  const int rows = min(C::BM, int(ceilf(average_rows)));
  const float piece_cycles = cycles_of_tile<C>(round_up((rows + pieces - 1) / pieces, STEP), slices);
  // Rounds of pieces, and a half: workers end the rounds before at different times, which costs
  // half a piece (a guess).
  const float cycles = (float((last_tiles * pieces + workers - 1) / workers) + 0.5f) * piece_cycles;
  const unsigned key = (__float_as_uint(cycles) & ~31u) | unsigned(lane);  // compares as the float does
  return int(__reduce_min_sync(~0u, key)) % 32 % (C::BM / STEP) + 1;
}
// [/pieces]

}  // namespace chapter
