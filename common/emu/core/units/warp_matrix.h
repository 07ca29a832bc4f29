// SPDX-License-Identifier: MIT
//
// The instructions ldmatrix, stmatrix, movmatrix and mma share 8x8 matrices of 16-bit elements in a
// warp's registers. PTX ISA: "Warp-level matrix load instruction: ldmatrix".

#pragma once

#include <vector>

#include "common/emu/core/decode/decode.h"

namespace gg::emu {

using Matrix = uint16_t[8][8];

// Element `half` (0 or 1) of lane l's register: of row l / 4, columns 2 * (l % 4) and the next;
// transposed, of column l / 4.
inline uint16_t& element_of(Matrix& matrix, int lane, int half, bool transposed) {
  const int major = lane / 4, minor = 2 * (lane % 4) + half;
  return transposed ? matrix[minor][major] : matrix[major][minor];
}

// Both elements of a lane's register.
inline uint32_t pack(Matrix& matrix, int lane, bool transposed) {
  return uint32_t(element_of(matrix, lane, 1, transposed)) << 16 | element_of(matrix, lane, 0, transposed);
}

// Faults unless all 32 lanes execute the instruction.
void require_warp(Warp& warp, const Instr& instr, Mask mask);
// The rows' addresses: lane r gives that of row r of all matrices, one after the other. Returns the
// lanes that give one.
Mask row_addresses(Warp& warp, const Instr& instr, int rows, uint64_t (&address)[kLanes]);

// Decoding. Each of these throws Unsupported where the statement is not what it asks for.
void take_sync_aligned(Decoder& decoder);
// Takes what ldmatrix and stmatrix share: everything but the order of operands.
void take_matrices(Decoder& decoder);
// The slots of `count` 32-bit registers, appended.
void take_registers(Decoder& decoder, const Operand& operand, int count, bool written,
                    std::vector<uint32_t>& slots, const char* type = "b32");
void require_operands(Decoder& decoder, size_t count);

}  // namespace gg::emu
