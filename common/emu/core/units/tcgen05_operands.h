// SPDX-License-Identifier: MIT
//
// The operands that one tcgen05.mma reads and writes, and where they are: A and B in shared memory,
// A, D and scale factors in tensor memory. PTX ISA: "TensorCore 5th Generation Family Instructions:
// tcgen05.mma", "Data path organization", "Scale factor layout". With cta_group::2 each block of
// the pair has half of the rows of A and D and half of the columns of B.

#pragma once

#include <array>
#include <vector>

#include "common/emu/core/units/block_scaled.h"
#include "common/emu/core/units/fused_sum.h"
#include "common/emu/core/units/tcgen05_descriptor.h"
#include "common/emu/core/units/tensor_core.h"

namespace gg::emu {

// One execution of tcgen05.mma.
struct MmaOperation {
  InstructionDescriptor shape;
  MmaModifiers modifiers;
  bool a_in_tmem = false, accumulates = false;
  int scale_d = 0;        // D is multiplied by 2^-scale_d before the sum
  uint64_t a = 0, b = 0;  // matrix descriptors
  TmemAddress d, a_tmem, a_scales, b_scales;
  // Lanes that are not written, those of the even block first.
  std::array<Mask, 2 * kTmemQuarters> disabled = {};
  std::vector<Block*> blocks;  // one, or the even and the odd one of a pair

  int parts() const { return modifiers.cta_group; }
  int rows() const { return shape.m / parts(); }     // of A and D in one block
  int columns() const { return shape.n / parts(); }  // of B in one block
  // M = 64 uses 16 lanes of every 32.
  bool sixteen_of_32() const { return shape.m == 64; }
  // M = 128 of a pair: lanes 0-63 have the first half of the columns, lanes 64-127 the second.
  bool two_by_two() const { return parts() == 2 && shape.m == 128; }
  // The lane of row `row` of a block, for columns of part `part` of B.
  int lane_of(int row, int part) const {
    if (sixteen_of_32()) return row / 16 * kLanes + row % 16 + d.lane;
    return row + (two_by_two() ? 64 * part : 0);
  }
  // The column of tensor memory that has the first column of D that comes from part `part` of B.
  int column_of(int part) const { return d.column + (two_by_two() ? 0 : part * columns()); }
  int d_columns() const { return shape.n / (two_by_two() ? 2 : 1); }
};

constexpr int kMmaTmemColumns = 8;  // of A: one instruction takes 32 bytes of every row

// The operands in shared memory, as their descriptors see them.
Tcgen05Operand shared_a(const MmaOperation& operation);
Tcgen05Operand shared_b(const MmaOperation& operation);
// Bytes of a 16-byte unit with elements: 8 and 12 for 4- and 6-bit elements that are not packed.
int bytes_of_unit(const MmaOperation& operation, const char* type);

// Lanes of tensor memory that D, and A if it is there, have in block number `block`: all lanes that
// are computed, and of D those that are written.
TmemRegion a_region(const MmaOperation& operation);
TmemRegion d_region(const MmaOperation& operation, int block);
// All four replicas of the scales.
TmemRegion a_scales_region(const MmaOperation& operation);
TmemRegion b_scales_region(const MmaOperation& operation);

// The codes of part `part` of B, of the rows of A in block number `block`.
void gather_b(const MmaOperation& operation, int part, Factors& to);
void gather_b(const MmaOperation& operation, int part, PackedFactors& to);
// `part`: with two_by_two and A in tensor memory both halves of the lanes have rows of their own.
void gather_a(const MmaOperation& operation, int block, int part, Factors& to);
void gather_a(const MmaOperation& operation, int block, int part, PackedFactors& to);

// A replica of a scale that differs from another one: faults want to name both.
struct ScaleClash {
  bool found = false;
  bool of_a = false;
  int block = 0, line = 0, lanes[2] = {0, 0}, column = 0;
  uint32_t values[2] = {0, 0};
};
// The scales of the rows of A in a block, or of the columns of B in part `part` as that block has
// them: kind mxf8f6f4 one code for each line; the packed kinds one for each group of 16 elements.
void scales_of_a(const MmaOperation& operation, int block, std::vector<uint8_t>& to, ScaleClash& clash);
void scales_of_b(const MmaOperation& operation, int block, int part, std::vector<uint8_t>& to,
                 ScaleClash& clash);

}  // namespace gg::emu
