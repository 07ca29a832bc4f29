// SPDX-License-Identifier: MIT
//
// Random operands that are made on the host: what an epilogue reads, and block scales.

#pragma once

#include <vector>

#include "common/harness/machine/machine.h"
#include "common/harness/problem/tensors.h"

namespace gg {

// Whole numbers from -2 to 1 that keep sums exact, or normal ones. The transform is the Sylvester
// matrix for whole numbers and where the chapter computes no other, else random. NaN in the groups
// of `nan_groups` (one flag per group; empty: none). Empty where the epilogue has no such operand.
EpilogueOperands random_operands(const Formats& formats, const Epilogue& epilogue, const Shape& shape,
                                 const Fill& fill, const std::vector<bool>& nan_groups = {});

// (-1)^popcount(i & j): the natural-order Sylvester matrix, in codes of bf16.
std::vector<uint16_t> sylvester_matrix();

// Buffers of block scales of A and B: random ones where groups own rows and columns, 0 in the
// padding of those, and the byte `unowned` everywhere else.
struct ScaleImages {
  std::vector<uint8_t> a, b;
};
ScaleImages random_scales(const Formats& formats, const Layout& layout, const Fill& a_fill,
                          const Fill& b_fill, const std::vector<bool>& nan_groups, int unowned);

// The largest whole number up to which the format has all, 6 for E2M1, which lacks 5; 16 at most.
int whole_numbers(Format format);
// Whole numbers up to range_a and range_b with scales of 1 to 2^a and 1 to 2^b: how far the scales
// may reach so that every sum of k products is an exact fp32, with a bit to spare.
struct ScaleSpans {
  int a = 0, b = 0;
};
ScaleSpans scale_spans(int k, int range_a, int range_b);

}  // namespace gg
