// SPDX-License-Identifier: MIT
//
// The sums of tcgen05.mma kinds mxf4 and mxf4nvf4: 64 products of e2m1, in four groups of 16 with a
// scale for every row and every column. Source of all constants: the model of microsoft/MMA-Sim,
// arXiv 2511.10909. block_scaled_sum says what one output is; block_scaled_sums computes a tile,
// the same bits and fast.

#pragma once

#include <cstdint>
#include <vector>

#include "common/emu/core/units/fused_sum.h"

namespace gg::emu {

constexpr int kPackedK = 64, kPackedGroup = 16, kPackedGroups = kPackedK / kPackedGroup;
// Bytes of a line: two elements a byte, even k in the low nibble.
constexpr int kPackedBytes = kPackedK / 2;
constexpr int kPackedFractionBits = 35;    // MMA-Sim: F of mxf4 and mxf4nvf4
constexpr int kPackedZeroExponent = -139;  // MMA-Sim: e_zero of mxf4 and mxf4nvf4

// c + the sum over four groups of (scale of a) * (scale of b) * (sum of 16 products). The 16
// products are summed exactly. A group's exponent is that of its scales together. A group whose
// products are all zero, or that has a scale of zero, has kPackedZeroExponent instead; versions of
// the model differ on such groups, and on groups that cancel, and nobody has measured them. Every
// group and c are cut toward zero at 2^-kPackedFractionBits of the largest exponent, added exactly,
// and cut toward zero to f32. Any NaN is 0x7FFFFFFF. `a`, `b`: 64 terms of e2m1; scales: one for
// each group, as scale_of gives them.
float block_scaled_sum(const Term* a, const Term* b, const Term* a_scales, const Term* b_scales, float c);

// The factors of many such sums: `lines` rows of A, or columns of B. Put the codes in, then decode.
class PackedFactors {
 public:
  static constexpr int kSide = 32;

  void resize(int lines);
  int lines() const { return lines_; }
  uint8_t* codes(int line) { return &codes_[size_t(line * kPackedBytes)]; }
  const uint8_t* codes(int line) const { return &codes_[size_t(line * kPackedBytes)]; }
  // The scale of a group of 16.
  uint8_t& scale(int line, int group) { return scales_[size_t(line * kPackedGroups + group)]; }
  uint8_t scale(int line, int group) const { return scales_[size_t(line * kPackedGroups + group)]; }
  void decode(bool ue4m3_scales);

  // The result of decoding, in two forms: line by line for the factor that is the same for a vector
  // of sums, and 32 lines side by side for the other factor.
  static constexpr int kQuads = kPackedK / 4;
  static constexpr int kOffset = 12;  // the largest doubled element
  struct Line {
    uint32_t quads[kQuads];             // four doubled elements, a byte each, the first one lowest
    int32_t offsets[kPackedGroups];     // kOffset * the sum of the doubled elements of a group
    int32_t nonzero[kPackedGroups];     // a bit for each element that is not 0; 0 if the scale is
    int32_t exponents[kPackedGroups];   // of the scale
    float significands[kPackedGroups];  // of the scale, 8 to 15
    int32_t nan;                        // -1 if a scale is NaN
  };
  struct alignas(64) Side {
    uint32_t positives[kQuads][kSide];  // doubled elements plus kOffset, so that none is negative
    int32_t nonzero[kPackedGroups][kSide], exponents[kPackedGroups][kSide];
    float significands[kPackedGroups][kSide];
    int32_t nans[kSide];
  };
  const Line& decoded(int line) const { return decoded_[size_t(line)]; }
  const Side& side(int line) const { return sides_[size_t(line / kSide)]; }
  bool ue4m3 = false;

 private:
  void decode_scales(int line);
  void decode_elements(int line);

  int lines_ = 0;
  std::vector<uint8_t> codes_, scales_;
  std::vector<Line> decoded_;
  std::vector<Side> sides_;
};

// sums[row][column] = block_scaled_sum of row `row` of A, column `column` of B and
// sums[row][column]. Layout of sums as for fused_sums.
void block_scaled_sums(const PackedFactors& a, const PackedFactors& b, float* sums, int pitch);

// The same code compiled for kinds of CPUs, as many_sums; the function above chooses.
using BlockScaledSums = void (*)(const PackedFactors& a, const PackedFactors& b, float* sums, int pitch);
BlockScaledSums block_scaled_sums(Cpus kind);
extern const BlockScaledSums kBlockScaledSumsAny, kBlockScaledSumsAvx2, kBlockScaledSumsAvx512;

}  // namespace gg::emu
