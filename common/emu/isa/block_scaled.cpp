// SPDX-License-Identifier: MIT
//
// One sum of packed fp4, said plainly, and the decoding of many.

#include "common/emu/isa/block_scaled.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace gg::emu {
namespace {

// A term of the sum: significand * 2^exponent, and the exponent that it brings into the choice of the
// largest.
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
  pitch_ = (lines + kSide - 1) / kSide * kSide;
  const size_t pitch = size_t(pitch_);
  codes_.resize(pitch * kPackedBytes);
  scales_.resize(pitch * kPackedGroups);
  values.resize(pitch * kPackedK);
  nonzero.resize(pitch * kPackedGroups);
  exponents.resize(pitch * kPackedGroups);
  significands.resize(pitch * kPackedGroups);
  nans.resize(pitch);
}

void PackedFactors::decode(bool ue4m3_scales) {
  ue4m3 = ue4m3_scales;
  Term scales[256];
  for (int code = 0; code < 256; ++code) scales[code] = scale_of(ue4m3, uint8_t(code));
  std::fill(nans.begin(), nans.end(), 0);
  for (int line = 0; line < lines_; ++line) {
    for (int g = 0; g < kPackedGroups; ++g) {
      const size_t at = size_t(g * pitch_ + line);
      const Term& s = scales[scale(line, g)];
      uint64_t nibbles;
      std::memcpy(&nibbles, codes(line) + g * 8, 8);
      const uint64_t ones = (nibbles | nibbles >> 1 | nibbles >> 2) & 0x1111'1111'1111'1111ull;
      nonzero[at] = s.significand ? int32_t(uint32_t(ones) | uint32_t(ones >> 32) << 1) : 0;
      exponents[at] = s.exponent;
      significands[at] = float(s.significand);
      if (s.special) nans[size_t(line)] = -1;
    }
  }
  decode_values();
}

void PackedFactors::decode_values() {
  constexpr int16_t kDoubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  for (int first = 0; first < pitch_; first += kSide) {
    for (int byte = 0; byte < kPackedBytes; ++byte) {
      int16_t *even = &values[size_t(2 * byte * pitch_ + first)], *odd = even + pitch_;
      for (int l = 0; l < kSide; ++l) {
        const uint8_t both = codes(first + l)[byte];
        even[l] = kDoubled[both & 15];
        odd[l] = kDoubled[both >> 4];
      }
    }
  }
}

void block_scaled_sums(const PackedFactors& a, const PackedFactors& b, float* sums, int pitch) {
  static const BlockScaledSums chosen = has_avx512() ? kBlockScaledSumsAvx512 : kBlockScaledSumsAvx2;
  chosen(a, b, sums, pitch);
}

}  // namespace gg::emu
