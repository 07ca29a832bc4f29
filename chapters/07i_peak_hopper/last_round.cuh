// SPDX-License-Identifier: MIT
//
// The last round of tiles. Where the tiles are no multiple of the workers, most workers would rest in it.

#pragma once

#include <cmath>

namespace chapter {

constexpr int STEP = 32;        // rows of a tile, and wgmma's N, come in steps of it
constexpr int ROW_BYTES = 128;  // of a slice: the most that TMA swizzles
__host__ __device__ constexpr int round_up(int value, int step) { return (value + step - 1) / step * step; }

// The tiles left over for the last round may be cut into pieces. If all groups have `rows_each` (0: they do
// not), the last `more` groups may have a row of tiles more, all of these with fewer rows, so the round is
// full. Each lane of a warp estimates one such plan, in cycles, and the least wins.
template <class C>
struct LastRound {
  int more, pieces;

  // `rows`: of all groups, times the columns of tiles.
  // [plan]
  __device__ LastRound(int tiles, float rows, int workers, int slices, int tiles_n, int rows_each,
                       int groups) {
    const int lane = int(threadIdx.x) % 32, my_more = lane / (C::BM / STEP),
              my_pieces = lane % (C::BM / STEP) + 1;
    tiles += my_more * tiles_n;
    const int last = (tiles - 1) % workers + 1, height = min(C::BM, int(rows / float(tiles)) + 1);
    const float piece = cycles_of(round_up((height + my_pieces - 1) / my_pieces, STEP), slices);
    float cycles = float((tiles - last) / workers) * cycles_of(height, slices);  // all rounds but the last
    cycles += float((last * my_pieces + workers - 1) / workers) * piece;
    // Two guesses: it is chance who gets how many shorter tiles; and workers that do not end together wait
    // for half a piece.
    cycles += rows_each > 0 ? cycles_of(C::BM, slices) / 8 * float(my_more) : piece / 2;
    // A row of tiles more only if tiles lose at most a quarter of their rows, and none is a first tile.
    const int tiles_m = round_up(rows_each, C::BM) / C::BM;
    const bool may = MAY_HAVE_MORE && rows_each / (tiles_m + 1) >= C::BM / 4 * 3 &&
                     (groups - my_more) * tiles_m * tiles_n >= workers;
    if (my_more > 0 && !may) cycles = INFINITY;
    const unsigned key = (__float_as_uint(cycles) & ~31u) | unsigned(lane);  // compares as the float does
    const int best = int(__reduce_min_sync(~0u, key) % 32);
    more = best / (C::BM / STEP), pieces = best % (C::BM / STEP) + 1;
  }
  // [/plan]

  // Cycles of a slice of a tile of so many rows: of its products, and to load 45 bytes a cycle from the L2.
  __device__ static constexpr int to_multiply(int rows) { return rows * C::BN / 32; }
  __device__ static constexpr int to_load(int rows) { return (rows / C::CLUSTER + C::BN) * ROW_BYTES / 45; }
  __device__ static float cycles_of(int rows, int slices) {  // of a whole tile
    return float(max(to_multiply(rows), to_load(rows))) * float(slices) + 1000;
  }
  // Tiles with a quarter fewer rows still wait for products and not for loads.
  static constexpr bool MAY_HAVE_MORE =
      C::BM * 3 / 4 * C::BN / 32 >= (C::BM * 3 / 4 / C::CLUSTER + C::BN) * ROW_BYTES / 45;
};

}  // namespace chapter
