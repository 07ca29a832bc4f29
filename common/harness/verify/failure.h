// SPDX-License-Identifier: MIT
//
// Failures: their names, and their places.

#pragma once

#include <string>

#include "common/harness/problem/layout.h"

namespace gg {

// The mistake that a failure looks like; `unknown` when nothing we know explains it.
enum class Symptom {
  unknown,
  nan,               // NaN where a number belongs
  unwritten,         // the element still holds what was there before the launch
  stale,             // likewise where that is a number: the previous output stays
  out_of_bounds,     // an element that no group owns was written
  padding_read,      // right only while elements that no group owns are not NaN
  neighbour_read,    // right only while the other groups' operands are not NaN
  nondeterministic,  // two launches on the same data differ
  overlapping,       // right only if each launch waits for the one before it
  swapped_expert,    // another expert's weights
  first_group_only,  // every group has the first expert's weights
  offset_by_one,     // the row above or below, or the wrong side of a group's end
  transposed_tile,   // rows and columns exchanged inside a tile
  square_only,       // a leading dimension or order that is right only for squares
  missing_k_slice,   // the sum stops early or starts late
  other_stage,       // the last slice of K is multiplied from where another slice is
  other_place,       // the columns or rows of another place
  missing_swizzle,   // chunks of 16 bytes are taken from where they lie without a swizzle
  overrun,           // the rows of a group that follow another one are overwritten by it
  truncated,         // the output is cut instead of rounded to nearest even
  half_accumulator,  // sums beyond 2048 are off: accumulated in half precision
  wrong_scale,       // a block is multiplied by a scale that belongs elsewhere
  swapped_halves,    // the two elements of a byte exchanged
  wrong_epilogue,    // a factor, a rounding, a place or an order of steps behind the product
};
const char* symptom_name(Symptom symptom);

struct Failure {
  Symptom symptom = Symptom::unknown;
  std::string sentence;  // where, expected, got, and what it looks like
};

// The index of sample `i` among so many elements where every `stride`-th is taken: the first one,
// and then one anywhere in each stride, for a fixed step may meet the same column in every row.
size_t sample_at(size_t i, size_t stride, size_t count);

struct Place {  // an element of D as a reader would name it
  int group = -1, row = 0, col = 0;
};
Place place_of(const Layout& layout, int64_t element);  // group -1 where no group owns it

}  // namespace gg
