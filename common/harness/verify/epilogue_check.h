// SPDX-License-Identifier: MIT
//
// Every output of a launch with an epilogue against the range in which the reference says it lies.

#pragma once

#include <vector>

#include "common/harness/verify/epilogue_reference.h"
#include "common/harness/verify/judge.h"

namespace gg {

// Rows [first, first + rows) of a group, and the products there, row by row. Everything that the
// first rows alone decide can be judged; amax only where all rows are there.
struct Band {
  int group = 0, first = 0, rows = 0;
  std::vector<Range> products;  // [rows, N]
};
// Computes the products of all rows of these groups where that is at most 2^28 products, else of 32
// rows of three groups.
struct Products {
  // By which the products are made: a mistake in the product is made here.
  std::vector<Group> groups;
  std::vector<bool> skipped;  // one flag per group: not compared; empty: none
  uint64_t seed = 0;
};
std::vector<Band> products_of(const Matrices& matrices, const Layout& layout, const Products& products);

// Changes prob where a bias does not mix with it: in each row of A the largest value of one
// block of 32 columns comes within one ulp of where the code of its scale changes, from either
// side or onto it.
void aim_at_boundaries(const Buffers& buffers, const std::vector<Band>& bands, EpilogueOperands& operands,
                       uint64_t seed);

// Every output that the buffers have, as `images` has it, in the groups that are not skipped.
Findings compare_outputs(const Buffers& buffers, const std::vector<Band>& bands,
                         const std::vector<bool>& skipped, const OutputImages& images,
                         Mistake mistake = Mistake::none);

}  // namespace gg
