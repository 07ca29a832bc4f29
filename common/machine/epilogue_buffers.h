// SPDX-License-Identifier: MIT
//
// What an epilogue reads and writes beside A, B and D, on one machine: operands surrounded by NaN, outputs
// surrounded by guards, and the weights once more where they are discrete.

#pragma once

#include <array>
#include <memory>
#include <vector>

#include "common/machine/machine.h"

namespace gg {

struct Setup;

// The outputs of a launch, by the names of their files.
enum class Output { d, d_col, sfd_row, sfd_col, c, amax };
constexpr int kOutputs = 6;
const char* output_name(Output output);

// One tensor in a buffer with guards before and behind it.
struct TensorMemory {
  std::shared_ptr<void> memory;
  size_t bytes = 0;  // of the buffer
  size_t start = 0;  // byte of the tensor's first element
  size_t size = 0;   // of the tensor, in bytes
  void* first() const { return memory ? static_cast<char*>(memory.get()) + start : nullptr; }
};

class EpilogueBuffers {
 public:
  // For a packed layout of this shape; nothing is allocated for Operator::gemm.
  EpilogueBuffers(Machine& machine, const Setup& setup, const Shape& shape);

  // For another layout of as many rows, groups and columns. Discrete weights change their places.
  void set_layout(const Shape& shape, const Layout& layout, Problem& problem);
  // Operands, with `unowned` in every byte that no group owns; B and SFB from these dense ones if discrete.
  void fill(const EpilogueOperands& operands, const void* b, const uint8_t* sfb, int unowned);
  // Every output but D filled with a byte, amax of each group -inf.
  void poison(int byte);
  void reset_amax();

  const EpilogueOperands& operands() const { return operands_; }  // those that are there
  const TensorMemory& output(Output output) const {
    return outputs_[size_t(output)];
  }  // but D, which is elsewhere
  size_t bytes() const;

 private:
  TensorMemory tensor(size_t size, size_t guard, const char* what);
  void upload(const TensorMemory& tensor, const void* from, size_t size, int unowned);

  Machine& machine_;
  const Setup& setup_;
  int placed_ = 0;                                          // how often discrete weights got their places
  int64_t groups_ = 0, n_ = 0, b_each_ = 0, sfb_each_ = 0;  // bytes of one group's
  int64_t owned_rows_ = 0;
  TensorMemory alpha_, prob_, bias_, norm_const_, hadamard_, b_, sfb_, b_pointers_, sfb_pointers_;
  std::vector<size_t> b_places_, sfb_places_;  // of each group, from the buffer's start
  std::array<TensorMemory, kOutputs> outputs_;
  EpilogueOperands operands_;
};

// Random operands: whole numbers from -2 to 1 that keep sums exact, or normal ones. The transform is the
// Sylvester matrix for whole numbers and where the chapter computes no other, else random. NaN in those
// groups.
EpilogueOperands random_operands(const Setup& setup, const Shape& shape, const Fill& fill,
                                 const std::vector<bool>& nan_groups = {});

// (-1)^popcount(i & j): the natural-order Sylvester matrix, in codes of bf16.
std::vector<uint16_t> sylvester_matrix();

}  // namespace gg
