// SPDX-License-Identifier: MIT
//
// stmatrix: 8x8 matrices of 16-bit elements from the register layout of mma's results to shared
// memory. PTX ISA, "Warp-level matrix store instruction: stmatrix". Needs sm_90.

#pragma once

#include <cstdint>

namespace gg::ptx {

// Who: a whole warp.
// Does: writes four 8x8 matrices. Lane l gives the address of row l % 8 of matrix l / 8: 16 bytes,
//   at a multiple of 16. reg[i] of lane l holds two neighbours of row l / 4 of matrix i: elements
//   2 * (l % 4) and, in the upper half, the next one.
// Before: nobody reads the old contents any more.
// After: a barrier, and before it fence_proxy_async where an asynchronous copy reads them.
__device__ inline void stmatrix_x4(uint32_t row_addr, const uint32_t (&reg)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row_addr),
               "r"(reg[0]), "r"(reg[1]), "r"(reg[2]), "r"(reg[3])
               : "memory");
}

// Two matrices, their rows' addresses given by lanes 0-15; and one, by lanes 0-7.
__device__ inline void stmatrix_x2(uint32_t row_addr, const uint32_t (&reg)[2]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(row_addr), "r"(reg[0]),
               "r"(reg[1])
               : "memory");
}
__device__ inline void stmatrix_x1(uint32_t row_addr, uint32_t reg) {
  asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(row_addr), "r"(reg) : "memory");
}

// The same, with each matrix transposed on the way: reg[i] of lane l holds two neighbours of column
// l / 4 of matrix i: rows 2 * (l % 4) and, in the upper half, the next one.
__device__ inline void stmatrix_x4_trans(uint32_t row_addr, const uint32_t (&reg)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row_addr),
               "r"(reg[0]), "r"(reg[1]), "r"(reg[2]), "r"(reg[3])
               : "memory");
}
__device__ inline void stmatrix_x2_trans(uint32_t row_addr, const uint32_t (&reg)[2]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(row_addr), "r"(reg[0]),
               "r"(reg[1])
               : "memory");
}
__device__ inline void stmatrix_x1_trans(uint32_t row_addr, uint32_t reg) {
  asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::"r"(row_addr), "r"(reg)
               : "memory");
}

}  // namespace gg::ptx
