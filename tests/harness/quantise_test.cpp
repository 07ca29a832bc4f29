// SPDX-License-Identifier: MIT
//
// Block scales: where the scale of a row and a block lies, and which scale a block of numbers gets.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "common/harness/base/random.h"
#include "common/kernel/block_scales.h"

namespace gg {
namespace {

uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// The formula as a specification writes it: atoms of 128 x 4, along K first.
int64_t by_the_formula(int64_t mn, int64_t kb, int64_t block_atoms) {
  return 512 * (mn / 128 * block_atoms + kb / 4) + 16 * (mn % 32) + 4 * (mn / 32 % 4) + kb % 4;
}

TEST(ScaleLayout, TheFirstAtomIsAsDrawn) {
  const ScaleLayout layout{128, 4};
  ASSERT_EQ(layout.bytes(), 512);
  EXPECT_EQ(layout.offset(0, 0), 0);
  EXPECT_EQ(layout.offset(0, 3), 3);
  EXPECT_EQ(layout.offset(32, 0), 4);
  EXPECT_EQ(layout.offset(64, 1), 9);
  EXPECT_EQ(layout.offset(96, 3), 15);
  EXPECT_EQ(layout.offset(1, 0), 16);
  EXPECT_EQ(layout.offset(33, 2), 22);
  EXPECT_EQ(layout.offset(31, 0), 496);
  EXPECT_EQ(layout.offset(127, 3), 511);
  for (int64_t row = 0; row < 128; ++row) {
    // As the array [4 rows / 32][32 rows][4] with strides 4, 16, 1.
    for (int64_t block = 0; block < 4; ++block) {
      EXPECT_EQ(layout.offset(row, block), row % 32 * 16 + row / 32 * 4 + block);
    }
  }
}

TEST(ScaleLayout, PlacesOfLargerMatrices) {
  const ScaleLayout layout{300, scale_blocks(160, 16)};
  EXPECT_EQ(layout.row_atoms(), 3);
  EXPECT_EQ(layout.block_atoms(), 3);
  EXPECT_EQ(layout.bytes(), 4608);
  EXPECT_EQ(layout.offset(200, 7), 2187);
  EXPECT_EQ(layout.bytes() + layout.offset(200, 7), 6795);  // of the second expert
}

TEST(ScaleLayout, IsABijectionOntoItsBytes) {
  for (const int64_t rows : {1, 31, 32, 33, 127, 128, 129, 300, 512}) {
    for (const int64_t blocks : {1, 2, 3, 4, 5, 8, 10, 17}) {
      const ScaleLayout layout{rows, blocks};
      std::vector<char> taken(size_t(layout.bytes()));
      for (int64_t row = 0; row < layout.row_atoms() * 128; ++row) {
        for (int64_t block = 0; block < layout.block_atoms() * 4; ++block) {
          const int64_t offset = layout.offset(row, block);
          ASSERT_EQ(offset, by_the_formula(row, block, (blocks + 3) / 4));
          ASSERT_TRUE(offset >= 0 && offset < layout.bytes());
          ASSERT_FALSE(taken[size_t(offset)]++);
          const ScaleLayout::Slot slot = layout.slot(offset);
          ASSERT_EQ(slot.row, row);
          ASSERT_EQ(slot.block, block);
          ASSERT_EQ(layout.is_padding(slot), row >= rows || block >= blocks);
        }
      }
    }
  }
}

TEST(ScaleLayout, PackingPutsPaddingInTheRestAndComesBack) {
  for (const int64_t rows : {1, 100, 128, 200}) {
    for (const int64_t blocks : {1, 4, 6}) {
      const ScaleLayout layout{rows, blocks};
      std::vector<uint8_t> in_rows(size_t(rows * blocks)), packed(size_t(layout.bytes()), 0xEE),
          back(in_rows.size());
      for (size_t i = 0; i < in_rows.size(); ++i) in_rows[i] = uint8_t(1 + hash(1, 0, i) % 200);
      pack_scales(layout, in_rows.data(), packed.data());
      unpack_scales(layout, packed.data(), back.data());
      EXPECT_EQ(back, in_rows);
      const auto padding = size_t(std::count(packed.begin(), packed.end(), uint8_t(0)));
      EXPECT_EQ(padding, packed.size() - in_rows.size());
    }
  }
}

TEST(Reciprocals, AreTheNearestFloats) {
  EXPECT_EQ(bits_of(block_scaling(BlockFormat::mxfp8).reciprocal), 0x3B124925u);
  EXPECT_EQ(block_scaling(BlockFormat::mxfp8_e5m2).reciprocal, 0x1p-7f);
  EXPECT_EQ(bits_of(block_scaling(BlockFormat::mxfp4).reciprocal), 0x3E2AAAABu);
  EXPECT_EQ(448 * block_scaling(BlockFormat::mxfp8).reciprocal, 1.0f);
  EXPECT_EQ(6 * block_scaling(BlockFormat::nvfp4).reciprocal, 1.0f);
}

// A block of 32 whose largest magnitude is given, in the format mxfp8.
struct Worked {
  float largest, norm;
  uint32_t scale;
  float factor;
  uint32_t element;
};

TEST(Quantise, WorkedBlocks) {
  const BlockScaling mxfp8 = block_scaling(BlockFormat::mxfp8);
  constexpr float kLargest = std::numeric_limits<float>::max();
  for (const Worked& each :
       {Worked{300, 1, 0x7F, 1, 0x79}, Worked{448, 1, 0x7F, 1, 0x7E}, Worked{449, 1, 0x80, 0.5f, 0x76},
        Worked{660, 0.01f, 0x79, 0.64f, 0x7D}, Worked{0, 0.01f, 0x00, kLargest, 0x00}}) {
    std::vector<float> values(32, -0.0f);
    values[7] = each.largest;
    uint8_t codes[32];
    const uint32_t scale = quantise_block(mxfp8, values.data(), 32, codes, 0, each.norm);
    EXPECT_EQ(scale, each.scale) << each.largest;
    EXPECT_EQ(factor_of_block(mxfp8, scale, each.norm), each.factor) << each.largest;
    EXPECT_EQ(codes[7], each.element) << each.largest;
    EXPECT_EQ(codes[0], 0x80) << "the sign of zero";
  }
}

TEST(Quantise, SpecialBlocks) {
  for (BlockFormat format : kBlockFormats) {
    const BlockScaling scaling = block_scaling(format);
    const FormatInfo element = format_info(scaling.element);
    const bool ue8m0 = scaling.scale == Format::ue8m0;
    const auto quantised = [&](std::vector<float> values, float norm, uint32_t& scale) {
      values.resize(size_t(scaling.block), 1.0f);
      std::vector<uint8_t> memory(bytes_of(scaling.element, scaling.block));
      scale = quantise_block(scaling, values.data(), scaling.block, memory.data(), 0, norm);
      std::vector<uint32_t> codes;
      for (int i = 0; i < scaling.block; ++i) codes.push_back(load_code(memory.data(), scaling.element, i));
      return codes;
    };
    uint32_t scale = 0;
    for (const uint32_t code : quantised(std::vector<float>(size_t(scaling.block), 0.0f), 1, scale)) {
      EXPECT_EQ(code, 0u) << scaling.name;
    }
    EXPECT_EQ(scale, 0u) << scaling.name;
    for (const float nan : {NAN, -NAN}) {
      for (const uint32_t code : quantised({1.0f, nan}, 1, scale)) EXPECT_EQ(code, nan_code(element));
      EXPECT_TRUE(is_nan(scaling.scale, scale)) << scaling.name;
    }
    const std::vector<uint32_t> infinite = quantised({INFINITY, -2.0f}, 1, scale);
    EXPECT_EQ(scale, largest_code(format_info(scaling.scale))) << scaling.name;
    EXPECT_EQ(infinite[0], ue8m0 ? nan_code(element) : largest_code(element)) << scaling.name;
    EXPECT_EQ(infinite[1] & magnitude_bits(element), 0u) << scaling.name;
    if (!ue8m0) continue;
    // A scale of 2^-127 has no reciprocal but infinity, which becomes the largest float.
    quantised(std::vector<float>(size_t(scaling.block), 0x1p-127f), 1, scale);
    EXPECT_EQ(scale, 0u) << scaling.name;
    EXPECT_EQ(factor_of_block(scaling, 0), std::numeric_limits<float>::max());
    // A scale of 2^127 has a reciprocal that flushes to zero.
    for (const uint32_t code : quantised(std::vector<float>(size_t(scaling.block), 0x1p126f), 1024, scale)) {
      EXPECT_EQ(code, 0u) << scaling.name;
    }
    EXPECT_EQ(scale, 0xFEu) << scaling.name;
  }
}

// For random blocks over the whole range, the scale is the least that fits, every element lies
// within half a step of its value, and no element saturates.
TEST(Quantise, RandomBlocksLoseHalfAStepAtMost) {
  for (BlockFormat format : kBlockFormats) {
    const BlockScaling scaling = block_scaling(format);
    const double top = 1.0 / double(scaling.reciprocal),
                 largest = decode(scaling.element, largest_code(format_info(scaling.element)));
    uint64_t drawn = 0;
    for (int block = 0; block < 2000; ++block) {
      const int wide = scaling.scale == Format::ue8m0 ? 100 : 6;  // UE4M3 spans 2^-9 .. 448
      const int exponent = int(hash(3, 0, drawn++) % uint64_t(2 * wide)) - wide;
      std::vector<float> values;
      double most = 0;
      for (int i = 0; i < scaling.block; ++i) {
        const double fraction = double(int64_t(hash(3, 1, drawn++))) * 0x1p-63;
        values.push_back(float(std::ldexp(fraction, exponent)));
        most = std::max(most, std::fabs(double(values.back())));
      }
      std::vector<uint8_t> memory(bytes_of(scaling.element, scaling.block));
      const uint32_t code = quantise_block(scaling, values.data(), scaling.block, memory.data(), 0);
      const double scale = decode(scaling.scale, code);
      if (scaling.scale == Format::ue8m0) {
        EXPECT_LE(most, scale * top * (1 + 0x1p-22)) << scaling.name;
        EXPECT_GT(most, scale * top / 2 * (1 - 0x1p-22)) << scaling.name;
      } else {
        EXPECT_LE(std::fabs(scale - most / 6), ulp(Format::ue4m3, most / 6) * 0.5001);
      }
      for (int i = 0; i < scaling.block; ++i) {
        const uint32_t element = load_code(memory.data(), scaling.element, i);
        const double value = values[size_t(i)], wanted = value / scale;
        const double step = ulp(scaling.element, std::min(std::fabs(wanted), largest));
        const double clamped = std::fmax(-largest, std::fmin(largest, wanted));
        EXPECT_LE(std::fabs(dequantised(scaling, element, code) / scale - clamped), step * 0.500001)
            << scaling.name;
      }
    }
  }
}

TEST(Quantise, RowsKeepTheirBlocksApartAndEndInAShortOne) {
  for (BlockFormat format : kBlockFormats) {
    const BlockScaling scaling = block_scaling(format);
    constexpr int64_t kRows = 130, kK = 72;
    const ScaleLayout layout{kRows, scale_blocks(kK, scaling.block)};
    std::vector<float> values(size_t(kRows * kK));
    const auto exponent = [&](int64_t row, int64_t k) {
      return int((row + 3 * (k / scaling.block)) % 7) - 3;
    };
    for (int64_t i = 0; i < kRows * kK; ++i) {
      values[size_t(i)] = std::ldexp(i % kK % 2 ? -1.0f : 0.5f, exponent(i / kK, i % kK));
    }
    std::vector<uint8_t> codes(bytes_of(scaling.element, kRows * kK)), scales(size_t(layout.bytes()), 0xEE);
    quantise_rows(scaling, values.data(), kRows, kK, codes.data(), scales.data());
    for (int64_t i = 0; i < kRows * kK; ++i) {  // powers of two are exact, whatever their scale
      const int64_t row = i / kK, k = i % kK;
      const uint32_t scale = scales[size_t(layout.offset(row, k / scaling.block))];
      const float largest = std::ldexp(1.0f, exponent(row, k));
      ASSERT_EQ(scale, scale_of_block(scaling, largest)) << scaling.name;
      if (scaling.scale == Format::ue8m0) {
        ASSERT_EQ(dequantised(scaling, load_code(codes.data(), scaling.element, i), scale),
                  double(values[size_t(i)]));
      }
    }
    for (int64_t offset = 0; offset < layout.bytes(); ++offset) {
      if (layout.is_padding(layout.slot(offset))) {
        ASSERT_EQ(scales[size_t(offset)], 0);
      }
    }
  }
}

TEST(Dequantised, FitsBf16UnlessTheScaleIsExtreme) {  // at most 4 and 4 significant bits
  for (BlockFormat format : kBlockFormats) {
    const BlockScaling scaling = block_scaling(format);
    for (uint32_t element = 0; element < 1u << format_info(scaling.element).bits; ++element) {
      if (is_nan(scaling.element, element) || is_infinity(scaling.element, element)) continue;
      for (uint32_t scale = 0; scale < 256; ++scale) {
        if (is_nan(scaling.scale, scale)) continue;
        if (scaling.scale == Format::ue8m0 && (scale < 32 || scale > 220)) continue;
        const double value = dequantised(scaling, element, scale);
        ASSERT_EQ(double(decode(Format::bf16, encode(Format::bf16, value))), value) << scaling.name;
      }
    }
  }
}

}  // namespace
}  // namespace gg
