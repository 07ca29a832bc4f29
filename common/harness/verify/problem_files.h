// SPDX-License-Identifier: MIT
//
// Problems in folders of .npy files, one a tensor: read with --in, written with --out.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/harness/machine/buffers.h"
#include "common/harness/problem/chapter.h"

namespace gg {

struct GivenOperands {
  Shape shape;
  // The groups' matrices one behind the other, each dense; b has one only if it is shared.
  std::vector<char> a, b;
  int64_t rows_of_a = 0;       // may exceed the last offset
  std::vector<char> sfa, sfb;  // the files' bytes, where A and B have block scales
  Request request{};           // what was asked, with what the folder says of offsets and epilogue
  EpilogueOperands of_epilogue{};

  void fill(Buffers& buffers, int unowned) const;
};

std::string numbered_file(const char* name, int group);  // "b_00003.npy"

constexpr const char* kFromFiles = "files";  // the set of a problem that --in gives

// Throws gg::Error (bad input) with one sentence that names the file, what is wrong and what to do;
// `types` are all that the chapter has.
std::unique_ptr<GivenOperands> read_operands(const std::string& dir, const Setup& setup,
                                             const Chapter& chapter, bool shared_b,
                                             const std::vector<Formats>& types = {});

// One launch over an output of 0xFF bytes, on random data or on what was given; then every tensor
// goes to `dir`.
void write_problem(Machine& machine, const Setup& setup, const Launch& launch, const Shape& shape,
                   const GivenOperands* given, uint64_t seed, const std::string& dir);

}  // namespace gg
