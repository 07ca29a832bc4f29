// SPDX-License-Identifier: MIT
//
// mma.sync: one warp multiplies two small matrices held in its registers on the tensor cores.
// PTX ISA, "Matrix multiply-accumulate operation using mma instruction". 16-bit types and
// tf32 need sm_80. And movmatrix, which transposes a matrix in registers, of "Warp-level matrix
// transpose instruction: movmatrix".

#pragma once

#include <cstdint>
#include <type_traits>

#include "common/kernel/types.cuh"

namespace gg::ptx {

// Lane l's share of a 16x16 block of A, 16-bit elements. With g = l / 4 and t = l % 4: reg[0] is
// row g, columns 2t and (upper half) 2t+1; reg[1] the same of row g+8; reg[2] and reg[3] the same
// rows, 8 columns further on. ldmatrix_x4 gives this from rows 0-15 at column 0 (lanes 0-15) and at
// column 8 (lanes 16-31).
template <class T>
struct FragmentA {
  uint32_t reg[4];
};

// Lane l's share of a 16x16 block of B: reg[0] is column g, rows 2t and (upper half) 2t+1; reg[1]
// the same, 8 rows further down; reg[2] and reg[3] the same rows, 8 columns further on. One mma
// takes a half of it: columns 0-7 or 8-15. ldmatrix_x4_trans gives this from rows 0-15 at column 0
// (lanes 0-15) and at column 8.
template <class T>
struct FragmentB {
  uint32_t reg[4];
};

// All below. Who: a whole warp.
// Does: acc += A * B for 16 rows and 8 columns; pure arithmetic on registers. Lane l's share of
//   the sum: acc[0] row g column 2t, acc[1] the next column, acc[2] and acc[3] the same columns
//   of row g+8.
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

// The same for an 8-deep step of tf32: 32-bit registers in the format of float whose lower 13
// bits don't count.
//   a[0] row g column t of A, a[1] row g+8; a[2] and a[3] the same rows, column t+4. b[0] row t
//   column g of B, b[1] row t+4.
__device__ inline void mma_m16n8k8_tf32(float (&acc)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Who: a whole warp.
// Does: returns this lane's share of the transpose of an 8x8 matrix of 16-bit elements. Lane l has
//   elements 2t and (upper half) 2t+1 of row g: before of the matrix, after of its transpose.
// Pure data movement between registers: nothing must come before or after.
__device__ inline uint32_t movmatrix_trans(uint32_t of_row) {
  uint32_t of_column;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(of_column) : "r"(of_row));
  return of_column;
}

// A 16-bit number of the two in a register as a float, exactly; tf32 holds either type exactly.
template <class T>
__device__ inline uint32_t tf32_of(uint32_t pair, int upper) {
  const auto bits = static_cast<unsigned short>(upper ? pair >> 16 : pair);
  if constexpr (std::is_same_v<T, bf16>) {
    return uint32_t(bits) << 16;
  } else {
    return __float_as_uint(to_float(__ushort_as_half(bits)));
  }
}

// For types that differ there is no such instruction: two of 8 steps in tf32 do the same. The order
// of k is free as long as A and B agree on it: a step takes k = 2t and 2t+1, which share a
// register, for mma's t and t+4.
template <class A, class B>
__device__ inline void mma_m16n8k16(float (&acc)[4], const FragmentA<A>& a, const FragmentB<B>& b, int half) {
#pragma unroll
  for (int step = 0; step < 2; ++step) {
    const uint32_t row_g = a.reg[2 * step], row_g8 = a.reg[2 * step + 1], column_g = b.reg[2 * half + step];
    mma_m16n8k8_tf32(
        acc, {tf32_of<A>(row_g, 0), tf32_of<A>(row_g8, 0), tf32_of<A>(row_g, 1), tf32_of<A>(row_g8, 1)},
        {tf32_of<B>(column_g, 0), tf32_of<B>(column_g, 1)});
  }
}

}  // namespace gg::ptx
