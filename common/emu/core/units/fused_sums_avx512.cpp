// SPDX-License-Identifier: MIT
//
// Fused sums for CPUs with AVX-512: vectors of 16 numbers.

#include <immintrin.h>

namespace gg::emu {
constexpr int kLanes = 16;

namespace {
using Register = __m512i;
inline bool any_bit(Register x) { return _mm512_test_epi32_mask(x, x) != 0; }
// 16-bit sums of two neighbouring products of bytes, those of `a` without a sign; 32-bit sums of
// two neighbours; a number in every 32 bits.
inline Register byte_products(Register a, Register b) { return _mm512_maddubs_epi16(a, b); }
inline Register add_16_bits(Register a, Register b) { return _mm512_add_epi16(a, b); }
inline Register neighbour_sums(Register a) { return _mm512_madd_epi16(a, _mm512_set1_epi16(1)); }
inline Register in_all(int x) { return _mm512_set1_epi32(x); }
inline __m512d to_doubles(__m256 x) { return _mm512_maskz_cvtps_pd(0xFF, x); }
}  // namespace
}  // namespace gg::emu

#include "common/emu/core/units/fused_sums.h"
// This one wants what is in the one above.
#include "common/emu/core/units/block_scaled_sums.h"

namespace gg::emu {

const ManySums kManySumsAvx512 = {decode_lines, all_sums};
const BlockScaledSums kBlockScaledSumsAvx512 = all_packed_sums;

}  // namespace gg::emu
