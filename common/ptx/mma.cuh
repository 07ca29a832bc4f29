// SPDX-License-Identifier: MIT
//
// mma.sync: one warp multiplies two small matrices held in its registers on the tensor cores.
// PTX ISA, "Matrix multiply-accumulate operation using mma instruction". 16-bit types and tf32 need sm_80.

#pragma once

#include <cstdint>

#include "common/types.cuh"

namespace gg::ptx {

// Lane l's share of a 16x16 block of A, elements of 16 bits. With g = l / 4 and t = l % 4, in columns 2t and
// 2t+1 (upper half) of its matrix: reg[0] row g, reg[1] row g+8; reg[2] and reg[3] the same rows, columns 8
// further on. These are the four matrices that ldmatrix_x4 reads from rows 0-7 and 8-15 at column 0, then at
// column 8.
template <class T>
struct FragmentA {
  uint32_t reg[4];
};

// Lane l's share of a 16x16 block of B, in column g: reg[0] rows 2t and 2t+1 (upper half), reg[1] 8 rows
// further down; reg[2] and reg[3] the same rows, 8 columns further on. These are the four matrices that
// ldmatrix_x4_trans reads from rows 0-7 and 8-15 at column 0, then at column 8. One mma takes a half: `half`
// 0 is columns 0-7.
template <class T>
struct FragmentB {
  uint32_t reg[4];
};

// All below. Who: a whole warp.
// Does: acc += A * B for 16 rows and 8 columns; pure arithmetic on registers. Lane l's share of the sum:
// acc[0] row g
//   column 2t, acc[1] the next column, acc[2] and acc[3] the same columns of row g+8.
__device__ inline void mma_m16n8k16(float (&acc)[4], const FragmentA<bf16>& a, const FragmentB<bf16>& b,
                                    int half) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
      : "r"(a.reg[0]), "r"(a.reg[1]), "r"(a.reg[2]), "r"(a.reg[3]), "r"(b.reg[2 * half]),
        "r"(b.reg[2 * half + 1]));
}

__device__ inline void mma_m16n8k16(float (&acc)[4], const FragmentA<f16>& a, const FragmentB<f16>& b,
                                    int half) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
      : "r"(a.reg[0]), "r"(a.reg[1]), "r"(a.reg[2]), "r"(a.reg[3]), "r"(b.reg[2 * half]),
        "r"(b.reg[2 * half + 1]));
}

}  // namespace gg::ptx
