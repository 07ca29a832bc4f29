// SPDX-License-Identifier: MIT
//
// Fused sums for CPUs with AVX-512: vectors of 16 numbers.

namespace gg::emu {
constexpr int kLanes = 16;
}

#include "common/emu/isa/fused_sums.h"
// This one wants what is in the one above.
#include "common/emu/isa/block_scaled_sums.h"

namespace gg::emu {

const ManySums kManySumsAvx512 = {decode_lines, all_sums};
const BlockScaledSums kBlockScaledSumsAvx512 = all_packed_sums;

}  // namespace gg::emu
