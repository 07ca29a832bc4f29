// SPDX-License-Identifier: MIT
//
// Fused sums for CPUs of any kind: vectors of 4 numbers, made by the compiler into what they have.

#include <bit>
#include <cstdint>

namespace gg::emu {
constexpr int kLanes = 4;

namespace {
using Register [[gnu::vector_size(16)]] = int32_t;
using Shorts [[gnu::vector_size(16)]] = int16_t;
using TwoLongs [[gnu::vector_size(16)]] = int64_t;
using TwoFloats [[gnu::vector_size(8)]] = float;
using TwoDoubles [[gnu::vector_size(16)]] = double;

inline bool any_bit(Register x) {
  const TwoLongs halves = std::bit_cast<TwoLongs>(x);
  return (halves[0] | halves[1]) != 0;
}
// 16-bit sums of two neighbouring products of bytes, those of `a` without a sign; 32-bit sums of
// two neighbours; a number in every 32 bits.
inline Register byte_products(Register a, Register b) {
  const Shorts unsigneds = std::bit_cast<Shorts>(a), signeds = std::bit_cast<Shorts>(b);
  const Shorts low = (unsigneds & 0xFF) * (signeds << 8 >> 8);
  const Shorts high = (unsigneds >> 8 & 0xFF) * (signeds >> 8);
  return std::bit_cast<Register>(low + high);
}
inline Register add_16_bits(Register a, Register b) {
  return std::bit_cast<Register>(std::bit_cast<Shorts>(a) + std::bit_cast<Shorts>(b));
}
inline Register neighbour_sums(Register a) { return (a << 16 >> 16) + (a >> 16); }
inline Register in_all(int x) { return Register{} + x; }
inline TwoDoubles to_doubles(TwoFloats x) { return __builtin_convertvector(x, TwoDoubles); }
}  // namespace
}  // namespace gg::emu

#include "common/emu/core/units/fused_sums.h"
// This one wants what is in the one above.
#include "common/emu/core/units/block_scaled_sums.h"

namespace gg::emu {

const ManySums kManySumsAny = {decode_lines, all_sums};
const BlockScaledSums kBlockScaledSumsAny = all_packed_sums;

}  // namespace gg::emu
