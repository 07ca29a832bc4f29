// SPDX-License-Identifier: MIT
//
// Block scaling: neighbouring elements along K share one scale of 8 bits, and the value of an
// element is element x scale. Here are the formats with such scales, where the scales of a matrix
// lie in memory, and how f32 numbers are quantised. A scale is rounded up, so that no element of
// its block saturates; section 6.3 of the MX specification rounds down. Sources: OCP Microscaling
// Formats (MX) Specification 1.0, sections 5 and 6.3; PTX ISA "Block Scaling for tcgen05.mma"; for
// the layout also cuBLAS, "1D Block Scaling Factors Layout".

#pragma once

#include <cmath>
#include <cstdint>

#include "common/kernel/check.h"
#include "common/kernel/formats.h"

namespace gg {

enum class BlockFormat : uint8_t { none, mxfp8, mxfp8_e5m2, mxfp4, nvfp4, fp4_ue8m0_16 };

// 1 / the magnitude that the largest element of a block is scaled to, at most. E5M2 stays below
// 128, far from its largest value.
constexpr float E4M3_RECIPROCAL = 1.0f / 448, E5M2_RECIPROCAL = 1.0f / 128, E2M1_RECIPROCAL = 1.0f / 6;

struct BlockScaling {
  const char* name;  // of --format
  Format element, scale;
  int block;  // elements along K that share a scale
  float reciprocal;
};

GG_HD constexpr BlockScaling block_scaling(BlockFormat format) {
  switch (format) {
    case BlockFormat::mxfp8:
      return {"mxfp8", Format::e4m3, Format::ue8m0, 32, E4M3_RECIPROCAL};
    case BlockFormat::mxfp8_e5m2:
      return {"mxfp8_e5m2", Format::e5m2, Format::ue8m0, 32, E5M2_RECIPROCAL};
    case BlockFormat::mxfp4:
      return {"mxfp4", Format::e2m1, Format::ue8m0, 32, E2M1_RECIPROCAL};
    case BlockFormat::nvfp4:
      return {"nvfp4", Format::e2m1, Format::ue4m3, 16, E2M1_RECIPROCAL};
    case BlockFormat::fp4_ue8m0_16:
      return {"fp4_ue8m0_16", Format::e2m1, Format::ue8m0, 16, E2M1_RECIPROCAL};
    case BlockFormat::none:
      break;
  }
  return {"", Format::f32, Format::f32, 0, 1.0f};
}

constexpr BlockFormat kBlockFormats[] = {BlockFormat::mxfp8, BlockFormat::mxfp8_e5m2, BlockFormat::mxfp4,
                                         BlockFormat::nvfp4, BlockFormat::fp4_ue8m0_16};

// The format made of these, or none.
constexpr BlockFormat block_format(Format element, int block, Format scale) {
  for (const BlockFormat format : kBlockFormats) {
    const BlockScaling scaling = block_scaling(format);
    if (scaling.element == element && scaling.block == block && scaling.scale == scale) return format;
  }
  return BlockFormat::none;
}

// The scales of a matrix [rows, K] (A: rows of tokens, B: columns of D) with
// `blocks` = ceil(K / block) scales to a row, one byte each, in atoms of 128 rows x 4 blocks = 512
// bytes. Rows are padded to a multiple of 128, blocks to a multiple of 4. Atoms that are neighbours
// along K are neighbours in memory. In an atom the scales of a row fill an aligned word of 4 bytes,
// and rows 32 apart have neighbouring words:
//
//              block 0 1 2 3 |  0  1  2  3 |  0  1  2  3 |  0  1  2  3
//   bytes   0.. 15   row   0 |   row  32   |   row  64   |   row  96
//   bytes  16.. 31   row   1 |   row  33   |   row  65   |   row  97
//      ...             ...
//   bytes 496..511   row  31 |   row  63   |   row  95   |   row 127
//
// As an array in C order it is [row atoms, block atoms, 32, 4, 4]: the last three are row % 32,
// row / 32 % 4 and block % 4. Scales of several matrices follow each other without gaps.
struct ScaleLayout {
  int64_t rows = 0;
  int64_t blocks = 0;

  static constexpr int64_t kAtomRows = 128, kAtomBlocks = 4, kAtomBytes = kAtomRows * kAtomBlocks;

  GG_HD constexpr int64_t row_atoms() const { return (rows + kAtomRows - 1) / kAtomRows; }
  GG_HD constexpr int64_t block_atoms() const { return (blocks + kAtomBlocks - 1) / kAtomBlocks; }
  GG_HD constexpr int64_t bytes() const { return row_atoms() * block_atoms() * kAtomBytes; }

  // The place of the scale of a row and a block, in bytes from the matrix's first. Padding has
  // a place too.
  GG_HD constexpr int64_t offset(int64_t row, int64_t block) const {
    const int64_t atom = row / kAtomRows * block_atoms() + block / kAtomBlocks;
    return atom * kAtomBytes + row % 32 * 16 + row / 32 % 4 * 4 + block % kAtomBlocks;
  }

  struct Slot {
    int64_t row, block;
  };
  // The row and the block whose scale lies there: the inverse of `offset`.
  GG_HD constexpr Slot slot(int64_t offset) const {
    const int64_t atom = offset / kAtomBytes, inside = offset % kAtomBytes;
    return {atom / block_atoms() * kAtomRows + inside / 4 % 4 * 32 + inside / 16,
            atom % block_atoms() * kAtomBlocks + inside % 4};
  }
  GG_HD constexpr bool is_padding(const Slot& slot) const { return slot.row >= rows || slot.block >= blocks; }
};

GG_HD constexpr int64_t scale_blocks(int64_t k, int block) { return (k + block - 1) / block; }

// From scales in rows [rows, blocks] to the layout, with `padding` in every byte that belongs to no
// scale. `to` has layout.bytes() bytes.
GG_HD inline void pack_scales(const ScaleLayout& layout, const uint8_t* in_rows, uint8_t* to,
                              uint8_t padding = 0) {
  for (int64_t offset = 0; offset < layout.bytes(); ++offset) {
    const ScaleLayout::Slot slot = layout.slot(offset);
    to[offset] = layout.is_padding(slot) ? padding : in_rows[slot.row * layout.blocks + slot.block];
  }
}
// The way back; padding is left out.
GG_HD inline void unpack_scales(const ScaleLayout& layout, const uint8_t* from, uint8_t* in_rows) {
  for (int64_t row = 0; row < layout.rows; ++row) {
    for (int64_t block = 0; block < layout.blocks; ++block) {
      in_rows[row * layout.blocks + block] = from[layout.offset(row, block)];
    }
  }
}

// 1 / x as rcp.approx.ftz computes it for powers of two, which it maps exactly: subnormal operands
// and results count as 0 (PTX ISA "rcp"). For other x the nearest f32, which that instruction may
// miss by one ulp.
GG_HD inline float reciprocal_ftz(float x) {
  constexpr float kLeastNormal = 1.17549435e-38f;
  const float operand = fabsf(x) < kLeastNormal ? copysignf(0.0f, x) : x;
  const float result = 1.0f / operand;
  return fabsf(result) < kLeastNormal ? copysignf(0.0f, x) : result;
}

// The scale of a block whose largest magnitude is `largest` (NaN if a value is NaN): the least
// UE8M0 that brings largest * norm * reciprocal to 1 or below, or the nearest UE4M3. `norm` is
// a factor of the whole tensor; value = element x scale / norm. Each product is rounded to f32,
// in this order.
GG_HD inline uint32_t scale_of_block(const BlockScaling& scaling, float largest, float norm = 1.0f) {
  return encode(scaling.scale, double(largest * scaling.reciprocal * norm));
}

// The factor that the values of a block are multiplied with before they are rounded to the element
// format. The largest float stands for infinity, so that zeros stay zeros. UE4M3 has a zero: its
// block becomes zeros.
GG_HD inline float factor_of_block(const BlockScaling& scaling, uint32_t scale, float norm = 1.0f) {
  constexpr float kLargest = 3.40282347e+38f;
  const float value = decode(scaling.scale, scale);
  if (value == 0) return 0.0f;
  const float factor = norm * reciprocal_ftz(value);
  return factor > kLargest ? kLargest : factor;  // NaN stays
}

// Quantises `count` values, at most a block, to elements [first, first + count) of `elements`, and
// returns the code of their scale. NaN in a block makes the scale and every element NaN (6 in
// E2M1). Infinity under UE8M0 makes the finite elements 0 and itself NaN; under UE4M3 the scale is
// 448 and infinity becomes 6.
GG_HD inline uint32_t quantise_block(const BlockScaling& scaling, const float* values, int count,
                                     void* elements, int64_t first, float norm = 1.0f) {
  float largest = 0;
  for (int i = 0; i < count; ++i) {
    const float magnitude = fabsf(values[i]);
    if (magnitude > largest || magnitude != magnitude) largest = magnitude;
    if (largest != largest) break;
  }
  const uint32_t scale = scale_of_block(scaling, largest, norm);
  const float factor = factor_of_block(scaling, scale, norm);
  for (int i = 0; i < count; ++i) {
    store_code(elements, scaling.element, first + i, encode(scaling.element, double(values[i] * factor)));
  }
  return scale;
}

// Quantises a matrix [rows, K], K contiguous, block by block; the last block of a row may be short.
// `elements` is [rows, K] (K even for 4-bit elements), `scales` has layout.bytes() bytes, and its
// padding becomes 0.
inline void quantise_rows(const BlockScaling& scaling, const float* values, int64_t rows, int64_t k,
                          void* elements, uint8_t* scales, float norm = 1.0f) {
  const ScaleLayout layout{rows, scale_blocks(k, scaling.block)};
  for (int64_t offset = 0; offset < layout.bytes(); ++offset) scales[offset] = 0;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t block = 0; block < layout.blocks; ++block) {
      const int64_t first = row * k + block * scaling.block;
      const int64_t left = k - block * scaling.block;
      const int count = left < scaling.block ? int(left) : scaling.block;
      scales[layout.offset(row, block)] =
          uint8_t(quantise_block(scaling, values + first, count, elements, first, norm));
    }
  }
}

// The value of an element with its scale: exact in double.
GG_HD inline double dequantised(const BlockScaling& scaling, uint32_t element, uint32_t scale) {
  return double(decode(scaling.element, element)) * double(decode(scaling.scale, scale));
}

}  // namespace gg
