// SPDX-License-Identifier: MIT
//
// ldmatrix: 8x8 matrices of 16-bit elements from shared memory into the register layout that mma
// expects. PTX ISA, "Warp-level matrix load instruction: ldmatrix". Needs sm_75.

#pragma once

#include <cstdint>

#include "common/kernel/ptx/shared.cuh"  // its rows are given by such addresses

namespace gg::ptx {

// Who: a whole warp.
// Does: reads four 8x8 matrices. Lane l gives the address of row l % 8 of matrix l / 8: 16 bytes,
//   at a multiple of 16. In lane l, reg[i] becomes two neighbours of row l / 4 of matrix i:
//   elements 2 * (l % 4) and, in the upper half, the next one.
// Before: what other threads, or cp.async, wrote there must be visible to this warp.
__device__ inline void ldmatrix_x4(uint32_t (&reg)[4], uint32_t row_addr) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(reg[0]), "=r"(reg[1]), "=r"(reg[2]), "=r"(reg[3])
               : "r"(row_addr)
               : "memory");
}

// The same, with each matrix transposed on the way: in lane l, reg[i] becomes two neighbours of
// column l / 4 of matrix i: rows 2 * (l % 4) and, in the upper half, the next one.
__device__ inline void ldmatrix_x4_trans(uint32_t (&reg)[4], uint32_t row_addr) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(reg[0]), "=r"(reg[1]), "=r"(reg[2]), "=r"(reg[3])
               : "r"(row_addr)
               : "memory");
}

}  // namespace gg::ptx
