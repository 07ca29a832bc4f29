// SPDX-License-Identifier: MIT
//
// One sum of packed fp4, said plainly, and the decoding of many.

#include "common/emu/core/units/block_scaled.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace gg::emu {
namespace {

// A term of the sum: significand * 2^exponent, and the exponent that it brings into the choice
// of the largest.
struct Addend {
  int64_t significand = 0;
  int exponent = 0, rank = kPackedZeroExponent;
};

Addend group_of(const Term* a, const Term* b, const Term& a_scale, const Term& b_scale) {
  Addend group;
  bool any = false;
  for (int i = 0; i < kPackedGroup; ++i) {  // e2m1 has one mantissa bit: units of a product are 1/4
    const int exponent = a[i].exponent + b[i].exponent;  // 0 or more: subnormal e2m1 has exponent 0
    const int64_t product = int64_t(a[i].significand) * b[i].significand;
    group.significand += product << exponent;
    any |= product != 0;
  }
  const int64_t scales = int64_t(a_scale.significand) * b_scale.significand;  // in units of 1/64
  group.significand *= scales;
  const int exponent = a_scale.exponent + b_scale.exponent;
  group.exponent = exponent - 2 - 6;
  if (any && scales) group.rank = std::max(exponent, kPackedZeroExponent);
  return group;
}

Addend accumulator_of(float c) {
  const uint32_t bits = std::bit_cast<uint32_t>(c);
  const int field = int(bits >> 23 & 0xFF), exponent = std::max(field, 1) - 127;
  const int64_t significand = int64_t(bits & 0x7FFFFF) | (field ? 0x800000 : 0);
  return {bits >> 31 ? -significand : significand, exponent - 23,
          significand ? exponent : kPackedZeroExponent};
}

// In units of 2^unit, cut toward zero.
int64_t cut_to(const Addend& addend, int unit) {
  const int shift = addend.exponent - unit;
  if (addend.significand == 0 || shift < -62) return 0;
  if (shift >= 0) return addend.significand << shift;
  return addend.significand < 0 ? -(-addend.significand >> -shift) : addend.significand >> -shift;
}

// To 24 bits and to f32's subnormal spacing, toward zero; too large is infinity.
float cut_to_float(double value) {
  if (value == 0) return 0;
  const double spacing = std::ldexp(1.0, std::max(std::ilogb(value) - 23, -149));
  const double cut = std::trunc(value / spacing) * spacing;
  if (cut == 0) return 0;
  return std::abs(cut) >= 0x1p128 ? std::copysign(INFINITY, float(cut > 0 ? 1 : -1)) : float(cut);
}

}  // namespace

float block_scaled_sum(const Term* a, const Term* b, const Term* a_scales, const Term* b_scales, float c) {
  Addend addends[kPackedGroups + 1];
  bool nan = std::isnan(c);
  for (int g = 0; g < kPackedGroups; ++g) {
    nan |= a_scales[g].special || b_scales[g].special;
    addends[g] = group_of(a + g * kPackedGroup, b + g * kPackedGroup, a_scales[g], b_scales[g]);
  }
  if (nan) return std::bit_cast<float>(0x7FFFFFFFu);
  if (std::isinf(c)) return c;  // nothing else is infinite
  addends[kPackedGroups] = accumulator_of(c);
  int largest = kPackedZeroExponent;
  for (const Addend& each : addends) largest = std::max(largest, each.rank);
  int64_t sum = 0;
  for (const Addend& each : addends) sum += cut_to(each, largest - kPackedFractionBits);
  return cut_to_float(std::ldexp(double(sum), largest - kPackedFractionBits));
}

// ---- many ----

void PackedFactors::resize(int lines) {
  lines_ = lines;
  const size_t sides = size_t(lines + kSide - 1) / kSide, all = sides * kSide;
  codes_.resize(all * kPackedBytes);
  scales_.resize(all * kPackedGroups);
  decoded_.resize(all);
  sides_.resize(sides);
}

namespace {

constexpr int8_t kDoubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// The values of the two elements of a byte of codes.
struct Pair {
  uint16_t doubled, positive;  // a byte each, the even k lowest
  int32_t sum;
};
const std::array<Pair, 256>& pairs() {
  static const std::array<Pair, 256> table = [] {
    std::array<Pair, 256> all;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const int even = kDoubled[byte & 15], odd = kDoubled[byte >> 4];
      const auto join = [](int low, int high) { return uint16_t((low & 0xFF) | (high & 0xFF) << 8); };
      all[byte] = {join(even, odd), join(even + PackedFactors::kOffset, odd + PackedFactors::kOffset),
                   even + odd};
    }
    return all;
  }();
  return table;
}

const std::array<Term, 256>& scale_terms(bool ue4m3) {
  static const auto table = [](bool kind) {
    std::array<Term, 256> all;
    for (unsigned code = 0; code < 256; ++code) all[code] = scale_of(kind, uint8_t(code));
    return all;
  };
  static const std::array<Term, 256> ue8m0 = table(false), with_mantissa = table(true);
  return ue4m3 ? with_mantissa : ue8m0;
}

}  // namespace

void PackedFactors::decode(bool ue4m3_scales) {
  ue4m3 = ue4m3_scales;
  for (int line = 0; line < lines_; ++line) {
    decode_scales(line);
    decode_elements(line);
  }
}

void PackedFactors::decode_scales(int line) {
  const std::array<Term, 256>& scales = scale_terms(ue4m3);
  Line& to = decoded_[size_t(line)];
  Side& side = sides_[size_t(line / kSide)];
  const int l = line % kSide;
  to.nan = 0;
  for (int g = 0; g < kPackedGroups; ++g) {
    const Term& s = scales[scale(line, g)];
    uint64_t nibbles;
    std::memcpy(&nibbles, codes(line) + g * 8, 8);
    const uint64_t ones = (nibbles | nibbles >> 1 | nibbles >> 2) & 0x1111'1111'1111'1111ull;
    to.nonzero[g] = s.significand ? int32_t(uint32_t(ones) | uint32_t(ones >> 32) << 1) : 0;
    to.exponents[g] = s.exponent;
    to.significands[g] = float(s.significand);
    if (s.special) to.nan = -1;
    side.nonzero[g][l] = to.nonzero[g];
    side.exponents[g][l] = to.exponents[g];
    side.significands[g][l] = to.significands[g];
  }
  side.nans[l] = to.nan;
}

void PackedFactors::decode_elements(int line) {
  constexpr int kQuadsOfGroup = kPackedGroup / 4;
  const std::array<Pair, 256>& table = pairs();
  const uint8_t* bytes = codes(line);
  Line& to = decoded_[size_t(line)];
  Side& side = sides_[size_t(line / kSide)];
  for (int g = 0; g < kPackedGroups; ++g) {
    int32_t sum = 0;
    for (int q = g * kQuadsOfGroup; q < (g + 1) * kQuadsOfGroup; ++q) {
      const Pair &low = table[bytes[2 * q]], &high = table[bytes[2 * q + 1]];
      to.quads[q] = uint32_t(low.doubled) | uint32_t(high.doubled) << 16;
      side.positives[q][line % kSide] = uint32_t(low.positive) | uint32_t(high.positive) << 16;
      sum += low.sum + high.sum;
    }
    to.offsets[g] = kOffset * sum;
  }
}

#ifdef __x86_64__
BlockScaledSums block_scaled_sums(Cpus kind) {
  if (kind == Cpus::any) return kBlockScaledSumsAny;
  return kind == Cpus::avx2 ? kBlockScaledSumsAvx2 : kBlockScaledSumsAvx512;
}
#else
BlockScaledSums block_scaled_sums(Cpus kind) { return kind == Cpus::any ? kBlockScaledSumsAny : nullptr; }
#endif

void block_scaled_sums(const PackedFactors& a, const PackedFactors& b, float* sums, int pitch) {
  static const BlockScaledSums chosen = block_scaled_sums(last_that_runs_here());
  chosen(a, b, sums, pitch);
}

}  // namespace gg::emu
