// SPDX-License-Identifier: MIT
//
// Fused sums for CPUs with AVX2: vectors of 8 numbers.

namespace gg::emu {
constexpr int kLanes = 8;
}

#include "common/emu/isa/fused_sums.h"
// This one wants what is in the one above.
#include "common/emu/isa/block_scaled_sums.h"

namespace gg::emu {

const ManySums kManySumsAvx2 = {decode_lines, all_sums};
const BlockScaledSums kBlockScaledSumsAvx2 = all_packed_sums;

}  // namespace gg::emu
