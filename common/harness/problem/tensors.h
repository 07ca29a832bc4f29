// SPDX-License-Identifier: MIT
//
// The tensors of a problem as one list, whatever its operator: a plain product has A and B and one
// output D, an epilogue adds operands and outputs. Memory, files, trials and comparisons go
// through this list, so a new operator is a new row in `has_tensor` and `tensors_of`, its
// reference and its hypotheses.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/harness/base/random.h"
#include "common/harness/problem/layout.h"
#include "common/harness/problem/problem.h"

namespace gg {

enum class Tensor : uint8_t {
  // operands
  a,
  b,
  sfa,  // block scales of A and of B
  sfb,
  alpha,
  prob,
  bias,
  norm_const,
  hadamard,
  saved_c,  // of the forward pass
  // outputs, in the order in which what a launch changed is looked for
  d,
  d_col,
  sfd_row,
  sfd_col,
  c,
  amax,
  dprob,
  dbias,
};
constexpr int kTensors = int(Tensor::dbias) + 1;
constexpr bool is_output(Tensor tensor) { return tensor >= Tensor::d; }
const char* tensor_name(Tensor tensor);  // in sentences: "SFD_row"
const char* tensor_file(Tensor tensor);  // the file of it, without ".npy": "sfd_row"

// Does a problem have this tensor? Here alone it is decided which operator has which.
bool has_tensor(Tensor tensor, const Formats& formats, const Epilogue& epilogue);
Format format_of_tensor(Tensor tensor, const Formats& formats, const Epilogue& epilogue);

struct ByteRange {  // of a buffer
  size_t begin = 0, end = 0;
};

// One tensor in a buffer with guards before and behind it. Counts are elements of `format`.
struct TensorSpec {
  Tensor name = Tensor::d;
  Format format = Format::bf16;
  int64_t elems = 0;  // of the whole buffer
  int64_t start = 0;  // the tensor's first
  // The extents in the tensor's file: rows that no group owns are there.
  std::vector<int64_t> extents{};
  // Regions of the buffer that belong to groups: operands have numbers there, and a launch writes
  // these regions of an output and nothing else.
  std::vector<Region> owned{};
  // The value of every element before a launch, where it is no fill byte.
  std::optional<float> start_value{};
  std::optional<Fill> start_fill{};  // the same for values that differ

  int64_t size() const;  // of the tensor: the product of its extents
  size_t bytes() const { return bytes_of(format, elems); }
  size_t start_byte() const { return bytes_of(format, start); }
  // Where a launch may read: the tensor, or the matrices of groups that have their own. What lies
  // beside are guards.
  std::vector<ByteRange> readable() const;
};

// All tensors of a problem, operands before outputs. `layout` is that of the shape, of at
// least one group.
std::vector<TensorSpec> tensors_of(const Formats& formats, const Epilogue& epilogue, const Layout& layout);

// Operands of an epilogue on the host, with what no group owns left out.
struct EpilogueOperands {
  std::vector<float> alpha, prob;  // [G], [last offset or more]
  std::vector<char> bias;          // [G,N] of Epilogue::bias_format; empty: none
  std::vector<uint16_t> hadamard;  // [16,16] codes of bf16; empty: none
  std::vector<uint16_t> saved_c{};  // [last offset or more, 2N] of formats.c; empty: none
};

}  // namespace gg
