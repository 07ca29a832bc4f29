// SPDX-License-Identifier: MIT
//
// Fused sums for CPUs with AVX2: vectors of 8 numbers.

#include <immintrin.h>

namespace gg::emu {
constexpr int kLanes = 8;

namespace {
using Register = __m256i;
inline bool any_bit(Register x) { return !_mm256_testz_si256(x, x); }
// 16-bit sums of two neighbouring products of bytes, those of `a` without a sign; 32-bit sums of
// two neighbours; a number in every 32 bits.
inline Register byte_products(Register a, Register b) { return _mm256_maddubs_epi16(a, b); }
inline Register add_16_bits(Register a, Register b) { return _mm256_add_epi16(a, b); }
inline Register neighbour_sums(Register a) { return _mm256_madd_epi16(a, _mm256_set1_epi16(1)); }
inline Register in_all(int x) { return _mm256_set1_epi32(x); }
inline __m256d to_doubles(__m128 x) { return _mm256_cvtps_pd(x); }
}  // namespace
}  // namespace gg::emu

#include "common/emu/core/units/fused_sums.h"
// This one wants what is in the one above.
#include "common/emu/core/units/block_scaled_sums.h"

namespace gg::emu {

const ManySums kManySumsAvx2 = {decode_lines, all_sums};
const BlockScaledSums kBlockScaledSumsAvx2 = all_packed_sums;

}  // namespace gg::emu
