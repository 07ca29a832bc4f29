// SPDX-License-Identifier: MIT
//
// The shape sets: every size that any chapter is checked or timed with. No chapter has sizes of its
// own, and no set is square only, for squares hide transposed operands.

#pragma once

#include <string>
#include <vector>

#include "common/harness/problem/layout.h"

namespace gg {

struct ShapeLimits {          // what `edges` asks of the chapter it probes
  int n_multiple = 1;         // least legal N, and its step
  int k_multiple = 1;         // least legal K, and its step
  TileShape tile = {64, 64};  // sizes one below and one above it are tried
  bool own_sizes = false;     // every group may have its own N and K
  uint64_t seed = 0;          // of the set `random`
  int pad_rows_to = 1;        // the rows of each group are rounded up to a multiple of this
};

struct ShapeSet {
  const char* name;
  const char* what;
  bool small = false;  // quick enough on the emulator for checks that repeat launches
  // Probes the chapter's limits: no problem twice, and NaN in the neighbouring groups' operands.
  bool edges = false;
  // Problems of several kinds: a chapter gets those it supports, and a line for each other.
  bool mixed = false;
  std::vector<Shape> (*make)(const ShapeLimits&);
};
const std::vector<ShapeSet>& shape_sets();

// The set of this name; null for "own", the problem that a reader gives, and for unknown names.
const ShapeSet* find_shape_set(const std::string& name);
bool is_edges(const std::string& set);
bool is_mixed(const std::string& set);
// "own" too: a reader's problem is as small as the reader wants.
bool is_small(const std::string& set);

// The problems of a set. Throws gg::Error (bad input), with the known names, for an unknown one.
std::vector<Shape> shape_set(const std::string& name, const ShapeLimits& limits);

// `rows` split by shares, each rounded down and the remainder dealt out from the front; the sum
// is exactly `rows`.
std::vector<int> split_rows(int rows, const std::vector<double>& shares);

}  // namespace gg
