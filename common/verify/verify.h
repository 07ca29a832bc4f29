// SPDX-License-Identifier: MIT
//
// Is a launch right? The trials (verify.cpp) on one problem, and what a failure looks like.

#pragma once

#include <optional>
#include <string>

#include "common/machine/buffers.h"

namespace gg {

// What a failure looks like; `unknown` when nothing we know explains it.
enum class Symptom {
  unknown,
  nan,               // NaN where a number belongs
  unwritten,         // the element still holds what was there before the launch
  stale,             // likewise, but only when what was there is a number: the previous output stays
  out_of_bounds,     // an element that no group owns was written
  padding_read,      // right only while elements that no group owns are not NaN
  neighbour_read,    // right only while the other groups' operands are not NaN
  nondeterministic,  // two launches on the same data differ
  swapped_expert,    // another expert's weights
  first_group_only,  // every group has the first expert's weights
  offset_by_one,     // the row above or below, or the wrong side of a group's end
  transposed_tile,   // rows and columns exchanged inside a tile
  square_only,       // a leading dimension or order that is right only for squares
  missing_k_slice,   // the sum stops early or starts late
  truncated,         // the output is cut instead of rounded to nearest even
  half_accumulator,  // sums beyond 2048 are off: accumulated in half precision
};
const char* symptom_name(Symptom symptom);

struct Failure {
  Symptom symptom = Symptom::unknown;
  std::string sentence;  // where, expected, got, and what it looks like
};

struct CheckOptions {
  uint64_t seed = 0;
  bool graph_replay =
      false;                // record the launch once and replay it with other offsets (chapters from 05a on)
  bool neighbours = false;  // also with NaN in the neighbouring groups' operands (set `edges`)
};

struct CheckResult {
  std::optional<Failure> failure;
  float worst_ratio = 0;   // random data: error over limit
  float worst_factor = 0;  // random data: what sum_factor would have had to be
};

// Runs every trial on one problem; stops at the first failure.
CheckResult check_problem(Machine& machine, const Setup& setup, const Launch& launch, const Shape& shape,
                          const CheckOptions& options);

// The same launch twice, over two fills, on operands read from files: NaN passes where the reference is NaN.
struct GivenOperands;
CheckResult check_given(Machine& machine, const Setup& setup, const Launch& launch,
                        const GivenOperands& given);

// Random data against the bound only: what is timed, and what peers computed. `buffers` hold operands and
// output.
Comparison check_output(Machine& machine, const Buffers& buffers, const Limit& limit, uint64_t seed);
Limit random_limit(const Setup& setup);
// Is D right after `run`, which finds it poisoned? On the random operands that are there.
bool right_on_random_data(Machine& machine, const Buffers& buffers, uint64_t seed,
                          const std::function<void()>& run);

// Uniform in +-16 up to K = 8192, halved for each fourfold K, so that every partial sum is exact in fp32.
int integer_range(int k);

// Other row counts for the same buffers: rotated by one group, or `step` rows moved where that changes
// nothing.
Shape other_offsets(const Shape& shape, int step = 1);

// diagnose.cpp: explains finite wrong values. Everything is in host memory; `failing` lists elements of D.
struct HostCopy {
  std::vector<char> a, b, d, before;
  Matrices matrices(const Formats& formats) const { return {a.data(), b.data(), d.data(), formats}; }
};
Failure explain_values(const HostCopy& copy, const Setup& setup, const Layout& layout, const Limit& limit,
                       const std::vector<int64_t>& failing);

struct Place {  // an element of D as a reader would name it
  int group = -1, row = 0, col = 0;
};
Place place_of(const Layout& layout, int64_t element);  // group -1 where no group owns it

}  // namespace gg
