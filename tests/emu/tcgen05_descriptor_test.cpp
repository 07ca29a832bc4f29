// SPDX-License-Identifier: MIT
//
// The descriptors of tcgen05: addresses of the canonical layouts, decoded check values, and what is
// said of wrong ones.

#include "common/emu/core/units/tcgen05_descriptor.h"

#include <gtest/gtest.h>

#include <string>

namespace {

using gg::emu::copied_rows;
using gg::emu::InstructionDescriptor;
using gg::emu::MmaKind;
using gg::emu::MmaModifiers;
using gg::emu::Tcgen05Layout;
using gg::emu::Tcgen05Operand;

struct Mode {
  uint64_t code;
  uint32_t span;
};
constexpr Mode kModes[] = {{0, 0}, {2, 128}, {4, 64}, {6, 32}};

uint64_t descriptor(uint32_t start, uint32_t leading, uint32_t stride, uint64_t swizzle) {
  return uint64_t(start >> 4) | uint64_t(leading >> 4) << 16 | uint64_t(stride >> 4) << 32 | 1ull << 46 |
         swizzle << 61;
}

// Within a pattern of 8 rows the unit number of a span is XORed with the low bits of the
// 128-byte row number.
uint32_t swizzled(uint32_t address, uint32_t span) {
  if (!span) return address;
  return address ^ ((address >> 7) % (span / 16)) << 4;
}

TEST(MatrixDescriptor, KMajorUnits) {
  for (const Mode& mode : kModes) {
    for (const int bits : {4, 8, 16, 32}) {
      SCOPED_TRACE(std::to_string(mode.span) + "-byte swizzle, " + std::to_string(bits) + " bits");
      const Tcgen05Operand operand = {24, 256 / bits, bits, false};
      const uint32_t start = 0x8000, leading = 0x900, stride = 0x1800;
      const Tcgen05Layout layout(descriptor(start, leading, stride, mode.code), operand);
      EXPECT_EQ(layout.problem(), "");
      int units = 0;
      layout.units(0, 24, [&](uint32_t address, int line, int k) {
        const uint32_t l = uint32_t(line), half = uint32_t(k * bits / 8 / 16);
        const uint32_t plain = mode.span ? start + l / 8 * stride + l % 8 * mode.span + half * 16
                                         : start + l / 8 * stride + l % 8 * 16 + half * leading;
        EXPECT_EQ(address, swizzled(plain, mode.span)) << "line " << line << " k " << k;
        ++units;
      });
      EXPECT_EQ(units, 48);
    }
  }
}

TEST(MatrixDescriptor, LineMajorUnits) {
  for (const Mode& mode : kModes) {
    for (const int bits : {8, 16}) {
      SCOPED_TRACE(std::to_string(mode.span) + "-byte swizzle, " + std::to_string(bits) + " bits");
      const int k = 256 / bits, per_unit = 128 / bits;
      const uint32_t start = 0x4000, leading = 0x3000, stride = 0x800;
      const Tcgen05Operand operand = {128, k, bits, true};
      const Tcgen05Layout layout(descriptor(start, leading, stride, mode.code), operand);
      EXPECT_EQ(layout.problem(), "");
      int units = 0;
      layout.units(0, 128, [&](uint32_t address, int line, int k_first) {
        const uint32_t unit = uint32_t(line / per_unit), per_span = mode.span / 16, kk = uint32_t(k_first);
        const uint32_t plain = mode.span ? start + unit / per_span * leading + kk / 8 * stride +
                                               kk % 8 * mode.span + unit % per_span * 16
                                         : start + unit * stride + kk / 8 * leading + kk % 8 * 16;
        EXPECT_EQ(address, swizzled(plain, mode.span)) << "line " << line << " k " << k_first;
        ++units;
      });
      EXPECT_EQ(units, 128 / per_unit * k);
    }
  }
}

// MN-major tf32: rows of 128 bytes in groups of four k, and atoms of 32 bytes trade places.
TEST(MatrixDescriptor, LineMajorTf32) {
  const Tcgen05Operand operand = {64, 8, 32, true};
  const uint32_t start = 0x2000, leading = 0x1000, stride = 0x200;
  const Tcgen05Layout layout(descriptor(start, leading, stride, 1), operand);
  EXPECT_EQ(layout.problem(), "");
  layout.units(0, 64, [&](uint32_t address, int line, int k) {
    const uint32_t byte = uint32_t(line % 32) * 4, row = uint32_t(k % 4);
    const uint32_t expected =
        start + uint32_t(line / 32) * leading + uint32_t(k / 4) * stride + row * 128 + (byte ^ row << 5);
    EXPECT_EQ(address, expected) << "line " << line << " k " << k;
  });
}

// A step along K inside a 128-byte span: only the start address moves.
TEST(MatrixDescriptor, KAdvance) {
  const Tcgen05Operand operand = {16, 16, 16, false};
  const Tcgen05Layout step(descriptor(0x1000 + 64, 0, 1024, 2), operand);
  EXPECT_EQ(step.problem(), "");
  EXPECT_EQ(step.unit(3, 8), 0x1000u + 3 * 128 + ((4 + 1) ^ 3) * 16);
  EXPECT_EQ(step.unit(11, 0), 0x1000u + 1024 + 3 * 128 + (4 ^ 3) * 16);
}

TEST(MatrixDescriptor, RowsOfCopies) {
  // The atom of scale factors: 32 rows of 16 bytes, one behind the other.
  const Tcgen05Layout atom(0x0000400800000000ull | 0x1000 >> 4, copied_rows(32, 16));
  EXPECT_EQ(atom.problem(), "");
  for (int row = 0; row < 32; ++row) EXPECT_EQ(atom.unit(row, 0), 0x1000u + uint32_t(row) * 16);
  const Tcgen05Layout wide(descriptor(0x1000, 128, 256, 0), copied_rows(128, 32));
  EXPECT_EQ(wide.problem(), "");
  EXPECT_EQ(wide.unit(9, 16), 0x1000u + 256 + 16 + 128);
}

TEST(MatrixDescriptor, KnownValues) {
  EXPECT_EQ(descriptor(0, 0, 1024, 2), 0x4000404000000000ull);
  EXPECT_EQ(descriptor(0, 0, 128, 0), 0x0000400800000000ull);
  EXPECT_EQ(descriptor(0, 128, 256, 0), 0x0000401000080000ull);
}

std::string matrix_problem(uint64_t descriptor, const Tcgen05Operand& operand = {128, 16, 16, false}) {
  return Tcgen05Layout(descriptor, operand).problem();
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(MatrixDescriptor, Problems) {
  const uint64_t right = descriptor(0x1000, 16, 1024, 2);
  EXPECT_EQ(matrix_problem(right), "");
  EXPECT_TRUE(has(matrix_problem(right & ~(1ull << 46)), "has 0 in bits 46-48"));
  EXPECT_TRUE(has(matrix_problem(right & ~(1ull << 46)), "those of wgmma have 0"));
  EXPECT_TRUE(has(matrix_problem(right | 1ull << 47), "has 3 in bits 46-48"));
  EXPECT_TRUE(has(matrix_problem(right | 1ull << 14), "reserved bits set: 0x4000"));
  EXPECT_TRUE(has(matrix_problem(right | 1ull << 55), "reserved bits set"));
  EXPECT_TRUE(has(matrix_problem(right | 1ull << 52), "sm_103a only"));
  for (const uint64_t code : {3, 5, 7})
    EXPECT_TRUE(has(matrix_problem(descriptor(0x1000, 16, 1024, code)), "which means nothing"));
  EXPECT_TRUE(has(matrix_problem(descriptor(0x1000, 16, 1024, 1)), "Hopper's codes were 1 for 128"));
  EXPECT_TRUE(has(matrix_problem(right, {128, 8, 32, true}), "must have code 1"));
  EXPECT_EQ(matrix_problem(descriptor(0x1060, 16, 1024, 2)), "");
  EXPECT_TRUE(has(matrix_problem(descriptor(0x1070, 16, 1024, 2)), "starts at byte 112 of a span of 128"));
  EXPECT_TRUE(
      has(matrix_problem(descriptor(0x1080, 16, 1024, 2)), "128-byte row 1 of a swizzle pattern of 8"));
  EXPECT_EQ(matrix_problem(descriptor(0x1080, 16, 1024, 2) | 1ull << 49), "");
  EXPECT_TRUE(has(matrix_problem(descriptor(0x1000, 16, 256, 0) | 1ull << 49), "without a swizzle mode"));
  EXPECT_TRUE(has(matrix_problem(descriptor(0x1000, 0, 256, 0)), "leading byte offset of 0"));
  EXPECT_TRUE(has(matrix_problem(descriptor(0x1000, 128, 0, 0)), "stride byte offset of 0"));
}

constexpr MmaModifiers kF16 = {MmaKind::f16, 1, 0}, kF16Pair = {MmaKind::f16, 2, 0},
                       kF8 = {MmaKind::f8f6f4, 1, 0}, kTf32 = {MmaKind::tf32, 1, 0},
                       kMx8 = {MmaKind::mxf8f6f4, 1, 1}, kMx4 = {MmaKind::mxf4, 1, 2},
                       kNv4 = {MmaKind::mxf4nvf4, 1, 4}, kNv4Pair = {MmaKind::mxf4nvf4, 2, 4};

TEST(InstructionDescriptor, KnownValues) {
  const InstructionDescriptor bf16(0x08200490, kF16);
  EXPECT_EQ(bf16.problem(), "");
  EXPECT_EQ(std::string(bf16.a) + bf16.b, "bf16bf16");
  EXPECT_EQ(bf16.m, 128);
  EXPECT_EQ(bf16.n, 128);
  EXPECT_EQ(bf16.k, 16);
  EXPECT_FALSE(bf16.half_sums);
  const InstructionDescriptor pair(0x10400010, kF16Pair);
  EXPECT_EQ(pair.problem(), "");
  EXPECT_EQ(std::string(pair.a), "f16");
  EXPECT_EQ(pair.m, 256);
  EXPECT_EQ(pair.n, 256);
  const InstructionDescriptor e4m3(0x08200010, kF8);
  EXPECT_EQ(e4m3.problem(), "");
  EXPECT_EQ(std::string(e4m3.b), "e4m3");
  EXPECT_EQ(e4m3.k, 32);
  const InstructionDescriptor mx8(0x08A00000, kMx8), mx8_1(0x28A00010, kMx8);
  EXPECT_EQ(mx8.problem(), "");
  EXPECT_EQ(mx8.a_scale_id + mx8.b_scale_id, 0);
  EXPECT_FALSE(mx8.ue4m3_scales);
  EXPECT_EQ(mx8_1.problem(), "");
  EXPECT_EQ(mx8_1.a_scale_id, 1);
  EXPECT_EQ(mx8_1.b_scale_id, 1);
  const InstructionDescriptor mx4(0x48A004A0, kMx4);
  EXPECT_EQ(mx4.problem(), "");
  EXPECT_EQ(std::string(mx4.a), "e2m1");
  EXPECT_EQ(mx4.k, 64);
  EXPECT_EQ(mx4.a_scale_id, 2);
  EXPECT_EQ(mx4.b_scale_id, 2);
  EXPECT_EQ(InstructionDescriptor(0x08A00480, kMx4).problem(), "");
  const InstructionDescriptor nv4(0x08200480, kNv4), nv4_pair(0x10400480, kNv4Pair);
  EXPECT_EQ(nv4.problem(), "");
  EXPECT_TRUE(nv4.ue4m3_scales);
  EXPECT_EQ(nv4_pair.problem(), "");
  EXPECT_EQ(nv4_pair.m, 256);
}

TEST(InstructionDescriptor, FieldsBesideTheTypes) {
  const InstructionDescriptor f16(0x08200010 | 3u << 13 | 3u << 15, kF16);
  EXPECT_EQ(f16.problem(), "");
  EXPECT_TRUE(f16.negate_a && f16.negate_b && f16.a_line_major && f16.b_line_major);
  EXPECT_TRUE(InstructionDescriptor(0x08200000, kF16).half_sums);
  EXPECT_TRUE(InstructionDescriptor(0x08200000, kF8).half_sums);
  const InstructionDescriptor mixed(0x08A00000 | 3u << 7 | 4u << 10, kMx8);
  EXPECT_EQ(mixed.problem(), "");
  EXPECT_EQ(std::string(mixed.a) + mixed.b, "e2m3e3m2");
}

void expect_problem(uint32_t bits, const MmaModifiers& modifiers, const std::string& part) {
  const std::string problem = InstructionDescriptor(bits, modifiers).problem();
  EXPECT_TRUE(has(problem, part)) << problem << " for " << part;
}

TEST(InstructionDescriptor, Problems) {
  const uint32_t f16 = 0x08200010, mx4 = 0x08A00480, nv4 = 0x08200480;
  expect_problem(f16 | 1 << 6, kF16, "reserved bits set: 0x40");
  expect_problem(f16 | 1 << 23, kF16, "reserved bits set: 0x800000");
  expect_problem(f16 | 1 << 29, kF16, "reserved bits set: 0x20000000");
  expect_problem(f16 | 1u << 30, kF16, "only tcgen05.mma.ws has");
  expect_problem(f16 | 1 << 2, kF16, "the instruction is dense");
  expect_problem(f16 | 1, kF16, "sparsity selector");
  expect_problem(f16 | 1 << 3, kF16, "kind::i8");
  expect_problem(f16 | 1 << 7, kF16, "gives A the type bf16 and B the type f16");
  expect_problem(f16 | 2 << 7, kF16, "type code 2 for A, which kind::f16 does not know");
  expect_problem(0x08200480, kF16, "asks for f16 sums, and bf16 has f32 sums only");
  expect_problem(f16 | 2 << 4, kF16, "type code 3 for D");
  expect_problem(f16, kTf32, "tf32 is code 2");
  expect_problem(f16 | 2 << 10, kF8, "type code 2 for B, which kind::f8f6f4 does not know");
  expect_problem(mx4 ^ (4 << 7), kMx4, "e2m1 is code 1 here, and code 5 in kind::f8f6f4");
  expect_problem(nv4 & ~(7u << 10), kNv4, "type code 0 for B");
  expect_problem(nv4, kMx4, "UE4M3 scales, and kind::mxf4.scale_vec::2X has UE8M0 scales");
  expect_problem(0x08200000, kMx8, "UE4M3 scales");
  expect_problem(mx4 | 1 << 15, kMx4, "makes A MN-major");
  expect_problem(nv4 | 1 << 16, kNv4, "makes B MN-major");
  expect_problem(mx4 | 1 << 29, kMx4, "scale id 1 for A, and kind::mxf4.scale_vec::2X takes 0 or 2");
  expect_problem(nv4 | 2 << 4, kNv4, "scale id 2 for B, and kind::mxf4nvf4.scale_vec::4X takes 0 only");
  expect_problem(nv4 | 1u << 31, kNv4, "K = 96");
  expect_problem(f16 | 0x18 << 24, kF16, "M = 384");
  expect_problem(0x10200010, kF16, "M = 256 in bits 24-28, and kind::f16 with cta_group::1 wants 64 or 128");
  expect_problem(0x04200010, kF16Pair,
                 "M = 64 in bits 24-28, and kind::f16 with cta_group::2 wants 128 or 256");
  expect_problem(0x04200010, kF16Pair, "those of the pair, not of one CTA");
  expect_problem(0x04200480, kNv4, "M = 64 in bits 24-28, and kind::mxf4nvf4 with cta_group::1 wants 128");
  expect_problem(0x10000010 | 1 << 17, kF16Pair, "N = 8 in bits 17-22");
  expect_problem(0x08000010, kF16, "N = 0");
  expect_problem(0x08000010 | 33 << 17, kF16, "N = 264");
  expect_problem(0x08000010 | 3 << 17 | 1 << 16, kF8, "an MN-major B of this kind wants a multiple of 16");
  EXPECT_EQ(InstructionDescriptor(0x04000010 | 1 << 17, kF16).problem(), "");
}

}  // namespace
