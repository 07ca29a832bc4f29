// SPDX-License-Identifier: MIT
//
// The lanes of a warp hold the elements of a matrix in a fragment of wmma. PTX ISA: "Warp Level
// Matrix Multiply-Accumulate Instructions: wmma". The ISA leaves the layout open. The one here
// is that of the machine code which ptxas of CUDA 13.0 makes for sm_80 and sm_90a, and it is the
// one of mma.sync.

#pragma once

#include <string>
#include <vector>

#include "common/emu/core/decode/decode.h"

namespace gg::emu {

struct WmmaShape {
  int m = 0, n = 0, k = 0;
  // With 8 rows and 32 columns hardware multiplies the transposed matrices: B comes first.
  bool transposed() const { return m < n; }
};

// A lane holds runs of neighbours. With `across` the index of a line and `along` the one within
// it, lane l holds of place p the elements (p.across + l / 4, p.along + l % 4 * run + e) for
// e < run. A line is a row of A, a column of B, and a row of C and D; of C and D of a transposed
// shape it is a column.
struct WmmaFragment {
  struct Place {
    int across = 0, along = 0;
  };
  std::vector<Place> places;
  int bits = 0;       // of an element
  int run = 1;        // elements of a lane at a place
  int registers = 1;  // that they fill
  // So many times the fragment has each register: of f16 some are held twice or more.
  int repeats = 1;
  bool by_row = false;  // a line is a row of the matrix
  int lines = 0, length = 0;
  const char* register_type = "b32";

  int distinct() const { return int(places.size()) * registers; }
  int all_registers() const { return distinct() * repeats; }
  int bytes() const { return all_registers() * (bits == 64 ? 8 : 4); }  // of a lane
};

// The fragment of matrix 'a', 'b' or 'c', which stands for D too, with elements of a type. Throws
// Unsupported where the type has no such shape.
WmmaFragment wmma_fragment(const WmmaShape& shape, char matrix, const std::string& type);

// Takes .m16n16k16 and the like. Throws Unsupported where no shape of wmma is left.
WmmaShape take_wmma_shape(Decoder& decoder);
// Takes all types of elements, in order, s4, u4 and b1 among them.
std::vector<std::string> take_wmma_types(Decoder& decoder);

}  // namespace gg::emu
