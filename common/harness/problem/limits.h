// SPDX-License-Identifier: MIT
//
// The problems that a chapter works on: its limits, its shape sets, and a reader's own.

#pragma once

#include <string>
#include <vector>

#include "common/harness/problem/chapter.h"
#include "common/harness/problem/layout.h"
#include "common/harness/problem/request.h"

namespace gg {

constexpr int kMostGroups = 4096;
constexpr int kMostExperts = 1024;                     // groups, where there is an epilogue
constexpr int kMostRows = INT32_MAX - 2 * kGuardRows;  // of all groups together
int most_groups(const Chapter& chapter);

// N and K must be multiples of these, beyond what the chapter says, for what was chosen.
struct Steps {
  int n = 1, k = 1;
  std::string why_n{}, why_k{};
};
// A number of the chapter's own may want K in its multiples. Block-scaled types want rows of A
// of whole 16 bytes; with them a chapter with an epilogue, rows of B and D too, and pairs of
// gate and up.
Steps steps_of(const Chapter& chapter, const Request& request);

struct Multiples {  // what the rows of a group, N and K must be multiples of, all told
  int m = 1, n = 1, k = 1;
};
Multiples multiples_of(const Chapter& chapter, const Steps& steps);

// Throws gg::Error (bad input) with the offending number and what to do if the chapter does not
// support the shape.
void refuse_unsupported(const Shape& shape, const Chapter& chapter, const Steps& steps = {});

// Returns those of these sets that the chapter lists.
std::vector<std::string> sets_of(const Chapter& chapter, const List<const char*>& sets);
std::vector<std::string> default_check_sets(const Chapter& chapter);
std::vector<std::string> default_bench_sets(const Chapter& chapter);
std::vector<std::string> default_count_sets(const Chapter& chapter);

struct ProblemOptions {  // a request, and the problems for which it is made
  Request request{};
  std::vector<int> m, n, k;  // --m, --n, --k: one problem in place of the sets
  uint64_t seed = 0;
  bool shared_b = false;

  bool one_problem() const { return !m.empty(); }
};

// The one problem that the options name, or those of the sets. Refuses what the chapter does
// not support with the offending number; of a mixed set such problems are left out, each
// with a sentence.
std::vector<Shape> shapes_for(const ProblemOptions& options, const Chapter& chapter,
                              const std::vector<std::string>& sets, std::vector<std::string>& left_out);

}  // namespace gg
