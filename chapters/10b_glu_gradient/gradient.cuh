// SPDX-License-Identifier: MIT
//
// A consumer multiplies a tile's sums by alpha, which gives y. From y and C it makes the gradients
// of gates and ups: D. It also makes the tile's parts of dprob and dbias.

#pragma once

#include "boxes.cuh"
#include "common/kernel/epilogue.cuh"
#include "common/kernel/epilogue_glu.cuh"
#include "common/kernel/ptx/cvt.cuh"
#include "config.cuh"
#include "sums.cuh"

namespace chapter {

// A thread has sums of two of a half's 64 rows: of this one, and of the one 8 rows below.
__device__ inline int thread_row(int thread) { return thread / 32 * 16 + thread % 32 / 4; }

// Factors of a thread's rows in a tile: prob[half][i] is that of row half * 64 + thread_row + i * 8.
// It is 0 if that row is not the tile's: make_box relies on it. They are read before the tile is
// multiplied, so that make_gradients need not wait for memory.
struct Factors {
  float alpha, prob[2][2];

  __device__ Factors(const Operands& operands, const Tile& tile, int thread)
      : alpha(operands.alpha[tile.group]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int row = half * HALF + thread_row(thread) + i * 8;
        prob[half][i] = row < tile.rows ? operands.prob[tile.row0 + row] : 0;
      }
    }
  }
};

// The sum of each of 16 values over the eight lanes whose numbers are alike modulo 4. Lane l gets
// two of them, those of numbers l / 4 * 2 and the next one, in sums[0] and sums[1]. In three rounds
// a lane keeps half of the values, and gives its partner the other half: 14 shuffles where 16 sums
// by themselves take 48. `column` in make_gradients relies on which lane gets which.
// [fold]
template <int KEPT = 8>
__device__ __forceinline__ void fold(float (&sums)[16], int lane) {
  const bool keeps_second = lane & 2 * KEPT;
#pragma unroll
  for (int i = 0; i < KEPT; ++i) {
    const float given = keeps_second ? sums[i] : sums[i + KEPT];
    const float kept = keeps_second ? sums[i + KEPT] : sums[i];
    sums[i] = kept + __shfl_xor_sync(~0u, given, 2 * KEPT);
  }
  if constexpr (KEPT > 2) fold<KEPT / 2>(sums, lane);
}
// [/fold]

// Who: a whole consumer, when box `box` of C has landed. Writes the box of D there. `sums`: of the
// box's half of the tile. `rows`: the box's rows from this one on count as zeros, so none for 64 or
// more, and all for 0 or less. Adds to dprob, of this thread's two rows, and to dbias, of its 8
// columns of gates and then their ups.
// [box]
template <class C, class Activation>
__device__ __forceinline__ void make_box(Activation activation, const Boxes<C>& boxes, int box,
                                         const float (&sums)[BN / 2], float alpha, const float (&prob)[2],
                                         int rows, int thread, float (&dprob)[2], float (&dbias)[16]) {
  // A pair has four times 8 columns of y, and a thread 4 sums of each 8, as wgmma leaves them: two
  // neighbouring columns of its first row, then the same two of the row 8 below.
  static_assert(UNITS / 8 == 4 && PAIRS * 4 * 4 == BN / 2);
#pragma unroll
  for (int chunk = 0; chunk < UNITS / 8; ++chunk) {
    uint32_t words[4];
    boxes.read(box, chunk, words);
#pragma unroll
    for (int i = 0; i < 2; ++i) {  // of the two rows
      float gate_gradient[2], up_gradient[2];
      // After the tile's last row, and from column n on, C is 0 (Boxes::load), but y may be NaN: y is
      // made 0. So foreign rows, whose prob is 0 (Factors), add 0 to dbias, those columns 0 to dprob.
      const bool is_ours = thread_row(thread) + i * 8 < rows;
#pragma unroll
      for (int e = 0; e < 2; ++e) {  // of the two columns in a word: bf16 are the upper half of an f32
        const uint32_t shift = e == 0 ? 16 : 0, mask = 0xFFFF0000;
        const float gate = gg::epilogue::float_of(words[i] << shift & mask),
                    up = gg::epilogue::float_of(words[2 + i] << shift & mask);
        const float y =
            is_ours ? gg::epilogue::scaled(sums[(box / 2 * 4 + chunk) * 4 + i * 2 + e], alpha) : 0;
        const gg::epilogue::GluGradient gradient = activation(gate, up, y, prob[i]);
        gate_gradient[e] = gradient.gate;
        up_gradient[e] = gradient.up;
        dprob[i] += gradient.prob;
        dbias[chunk * 2 + e] += gradient.gate;
        dbias[8 + chunk * 2 + e] += gradient.up;
      }
      words[i] = gg::ptx::cvt_rn_x2<bf16>(gate_gradient[0], gate_gradient[1]);
      words[2 + i] = gg::ptx::cvt_rn_x2<bf16>(up_gradient[0], up_gradient[1]);
    }
    boxes.write(box, chunk, words);
  }
}
// [/box]

// Who: a whole consumer. Stores the parts of dprob of a half's 64 rows. The first `rows` of them are
// the tile's, none for 0 or less, and no others are stored. `part`: where the first one's goes.
__device__ inline void store_dprob(float* part, float (&dprob)[2], int rows, int thread) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    // The four lanes of a row have all its columns.
    for (int bit = 1; bit < 4; bit *= 2) dprob[i] += __shfl_xor_sync(~0u, dprob[i], bit);
    const int row = thread_row(thread) + i * 8;
    if (thread % 4 == 0 && row < rows) part[row] = dprob[i];
  }
}

// Who: a whole consumer. `upper`, `lower`: sums of the tile's halves. `col0`: its first column of y;
// from n on nothing is stored. `all_rows`: the length of a row of parts.prob, which is that of all
// groups' rows in memory.
// [gradients]
template <class C, class Activation>
__device__ __forceinline__ void make_gradients(Activation activation, const float (&upper)[BN / 2],
                                               const float (&lower)[BN / 2], const Factors& factors,
                                               const Tile& tile, int col0, Boxes<C>& boxes,
                                               WarpSums& warp_sums, const Parts& parts, int all_rows, int n,
                                               int thread) {
  const int lane = thread % 32;
  const bool has_lower = tile.rows > HALF;  // as in config.cuh
  float dprob_upper[2] = {}, dprob_lower[2] = {};
#pragma unroll
  for (int box = 0; box < TILE_BOXES; box += 2) {
    float dbias[16] = {};
    // Columns from n on count as zeros too. B is 0 there, but if A is infinite, y is NaN.
    const int counted = col0 + box / 2 * UNITS < n ? tile.rows : 0;
    boxes.wait(box);
    make_box<C>(activation, boxes, box, upper, factors.alpha, factors.prob[0], counted, thread, dprob_upper,
                dbias);
    if (has_lower) {
      boxes.put(box);
      boxes.wait(box + 1);
      make_box<C>(activation, boxes, box + 1, lower, factors.alpha, factors.prob[1], counted - HALF, thread,
                  dprob_lower, dbias);
    } else {
      boxes.sync();  // as in the put above: all have read warp_sums of the pair before
    }
    fold(dbias, lane);
    // Lanes 0 to 15 have gates, the others ups; lane / 4 % 4 is the chunk (fold).
    const int column = lane / 16 * UNITS + lane / 4 % 4 * 8 + lane % 4 * 2;  // of the box
    *reinterpret_cast<float2*>(&warp_sums.of[thread / 32][column]) = {dbias[0], dbias[1]};
    boxes.put(has_lower ? box + 1 : box);  // after it, all warps' sums are there
    const int bias_column = 2 * col0 + box / 2 * BOX + thread;
    if (thread < BOX && bias_column < 2 * n) {
      float sum = 0;
#pragma unroll
      for (int warp = 0; warp < 4; ++warp) sum += warp_sums.of[warp][thread];
      parts.bias[int64_t(Parts::row(tile.row0, tile.group)) * 2 * n + bias_column] = sum;
    }
  }
  if (col0 >= n) return;
  float* const dprob_part = parts.prob + int64_t(col0 / BN) * all_rows + tile.row0;
  store_dprob(dprob_part, dprob_upper, tile.rows, thread);
  store_dprob(dprob_part + HALF, dprob_lower, tile.rows - HALF, thread);
}
// [/gradients]

}  // namespace chapter
