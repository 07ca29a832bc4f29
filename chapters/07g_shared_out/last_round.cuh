// SPDX-License-Identifier: MIT
//
// The last round of tiles. Where the tiles are no multiple of the workers, most workers would rest in it.

#pragma once

namespace chapter {

constexpr int STEP = 32;        // rows of a tile, and wgmma's N, come in steps of it
constexpr int ROW_BYTES = 128;  // of a slice: the most that TMA swizzles
__host__ __device__ constexpr int round_up(int value, int step) { return (value + step - 1) / step * step; }

// The tiles left over for the last round may be cut into pieces. Each lane of a warp estimates what so many
// pieces would take, in cycles, and the least wins.
template <class C>
struct LastRound {
  int pieces;

  // `rows`: of all groups, times the columns of tiles.
  // [plan]
  __device__ LastRound(int tiles, float rows, int workers, int slices) {
    const int lane = int(threadIdx.x) % 32, my_pieces = lane % (C::BM / STEP) + 1;
    const int last = (tiles - 1) % workers + 1, height = min(C::BM, int(rows / float(tiles)) + 1);
    const float piece = cycles_of(round_up((height + my_pieces - 1) / my_pieces, STEP), slices);
    // Rounds of pieces. Workers do not end together, and wait for half a piece: a guess.
    const float cycles = (float((last * my_pieces + workers - 1) / workers) + 0.5f) * piece;
    const unsigned key = (__float_as_uint(cycles) & ~31u) | unsigned(lane);  // compares as the float does
    pieces = int(__reduce_min_sync(~0u, key)) % 32 % (C::BM / STEP) + 1;
  }
  // [/plan]

  // Cycles of a slice of a tile of so many rows: of its products, and to load 45 bytes a cycle from the L2.
  __device__ static constexpr int to_multiply(int rows) { return rows * C::BN / 32; }
  __device__ static constexpr int to_load(int rows) { return (rows / C::CLUSTER + C::BN) * ROW_BYTES / 45; }
  __device__ static float cycles_of(int rows, int slices) {  // of a whole tile
    return float(max(to_multiply(rows), to_load(rows))) * float(slices) + 1000;
  }
};

}  // namespace chapter
