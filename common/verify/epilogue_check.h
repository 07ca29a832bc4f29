// SPDX-License-Identifier: MIT
//
// Every output of a launch with an epilogue against the reference, and what a launch must leave alone.

#pragma once

#include <array>
#include <string>
#include <vector>

#include "common/machine/buffers.h"
#include "common/verify/epilogue_reference.h"

namespace gg {

struct OutputImage {  // of one output's buffer on the host, guards included; empty where there is no such
                      // output
  std::vector<char> bytes;
  size_t start = 0;  // of the tensor
  const char* first() const { return bytes.data() + start; }
};
using OutputImages = std::array<OutputImage, kOutputs>;
OutputImages download_outputs(Machine& machine, const Buffers& buffers);

// Bytes that a launch must write, 1 each, over the whole buffer of an output; all others must stay.
std::vector<uint8_t> owned_bytes(const Buffers& buffers, Output output, size_t bytes);

// Rows [first, first + rows) of a group, and the products there, row by row. Everything that the first rows
// alone decide can be judged; amax only where all rows are there.
struct Band {
  int group = 0, first = 0, rows = 0;
  std::vector<Range> products;  // [rows, N]
};
// Of all rows of these groups where that is at most 2^28 products, else of 32 rows of three groups.
struct Products {
  std::vector<Group> groups;  // by which the products are made: a mistake in the product is made here
  std::vector<bool> skipped;  // one flag per group: not compared; empty: none
  uint64_t seed = 0;
};
std::vector<Band> products_of(const Matrices& matrices, const Layout& layout, const Products& products);

// Changes prob where a bias does not mix with it: in each row of A the largest value of one block of 32
// columns comes within one ulp of where the code of its scale changes, from either side or onto it.
void aim_at_boundaries(const Buffers& buffers, const std::vector<Band>& bands, EpilogueOperands& operands,
                       uint64_t seed);

struct OutputTally {
  int64_t checked = 0, failures = 0;
  int64_t loose = 0;  // right, but not the code of the middle of their range
  // The first that failed, where it lies in the image, and what it is.
  int group = 0, row = 0, col = 0;
  size_t byte = 0;
  uint32_t got = 0;
  std::string expected;
};
struct EpilogueComparison {
  std::array<OutputTally, kOutputs> of;
  int64_t products = 0, exact = 0;
  int64_t checked() const, failures() const, loose() const;
  const OutputTally* first_failure(Output& output) const;  // in the order in which a kernel makes them
};
EpilogueComparison compare_outputs(const Buffers& buffers, const std::vector<Band>& bands,
                                   const std::vector<bool>& skipped, const OutputImages& images,
                                   Mistake mistake = Mistake::none);

// Are all outputs right that are there, on the operands that are there?
bool right_outputs(Machine& machine, const Buffers& buffers, uint64_t seed);

Format format_of_output(const Formats& formats, Output output);

}  // namespace gg
