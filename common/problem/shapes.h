// SPDX-License-Identifier: MIT
//
// The shape sets: every size that any chapter is checked or timed with. No chapter has sizes of its own, and
// no set is square only, for squares hide transposed operands.

#pragma once

#include <string>
#include <vector>

#include "common/problem/problem.h"

namespace gg {

struct ShapeLimits {          // what `edges` asks of the chapter it probes
  int n_multiple = 1;         // least legal N, and its step
  int k_multiple = 1;         // least legal K, and its step
  TileShape tile = {64, 64};  // sizes one below and one above it are tried
  bool own_sizes = false;     // every group may have its own N and K
  uint64_t seed = 0;          // of the set `random`
  int pad_rows_to = 1;        // the rows of each group are rounded up to a multiple of this
};

// Sets that hold problems of several kinds: a chapter gets those that it supports, and a line for each other.
bool is_mixed(const std::string& set);

// Sets that probe the limits of a chapter: no problem twice, and NaN in the neighbouring groups' operands.
bool is_edges(const std::string& set);

struct ShapeSetInfo {
  const char* name;
  const char* what;
};
const std::vector<ShapeSetInfo>& shape_sets();

// The problems of a set. Throws gg::Error (bad input) that lists the known names for an unknown one.
std::vector<Shape> shape_set(const std::string& name, const ShapeLimits& limits);

// `rows` split by shares, each rounded down and the remainder dealt out from the front; the sum is exactly
// `rows`.
std::vector<int> split_rows(int rows, const std::vector<double>& shares);

}  // namespace gg
