// SPDX-License-Identifier: MIT
//
// The types of a problem's matrices and the layout of B.

#pragma once

#include "common/kernel/block_scales.h"
#include "common/kernel/formats.h"

namespace gg {

struct Formats {  // formats of a problem, known when run
  Format a = Format::bf16, b = Format::bf16, d = Format::bf16;
  BlockFormat scaled = BlockFormat::none;  // of A and B
  Format c = Format::bf16;                 // where an epilogue stores C
  bool operator==(const Formats&) const = default;
  GG_HD bool has_scales() const { return scaled != BlockFormat::none; }
  GG_HD BlockScaling scaling() const { return block_scaling(scaled); }
  // "bf16", or "bf16,f16" where A and B differ, or "mxfp8". The text lives as long as the program.
  const char* name() const;
};

// A launch computes one of two products of each group g, which has rows M_g of A, and of D or B.
enum class Product {
  forward,         // D [M_g,N] = A [M_g,K] * B_g: the sum is over K
  weight_gradient  // D_g [K,N] = A^T * B, A [M_g,K] and B [M_g,N]: the sum is over the group's rows
};

enum class BLayout { kn, nk };  // [G,K,N], N contiguous, or [G,N,K], K contiguous
const char* layout_name(BLayout layout);

}  // namespace gg
