// SPDX-License-Identifier: MIT
//
// The arithmetic of Hopper's tensor cores, bit for bit: products exact, their sum with the accumulator cut
// once.

#pragma once

#include <cstdint>
#include <string>

namespace gg::emu {

struct Narrow {  // an input format
  int bits = 16, exponent_bits = 8, mantissa_bits = 7;
  int shift = 0;             // tf32 sits in the upper 19 of 32 bits
  bool finite_only = false;  // e4m3: no infinity, one NaN
};
// bf16, f16, tf32, e4m3, e5m2. Throws std::invalid_argument for any other name.
Narrow narrow(const std::string& type);

struct Term {  // significand * 2^(exponent - mantissa bits); the exponent is the format's, not normalised
  int32_t significand = 0;
  int16_t exponent = 0;
  uint8_t special = 0;  // 1 infinity, 2 NaN
};
Term term_of(const Narrow& format, uint32_t code);

// c + sum of a[i] * b[i] over k products: every term is cut toward zero at 2^-fraction_bits of the largest,
// then they are added exactly and the sum is cut to kept_bits. What one instruction computes for one output.
float fused_sum(const Term* a, const Term* b, int k, float c, int mantissa_bits, int fraction_bits,
                int kept_bits);

// One output of mma.sync with f32 accumulators. 16-bit types and tf32: one fused sum, 25 fraction bits. 8-bit
// types have no instruction of their own on sm_90: they are widened to f16 and summed from zero in two steps
// of 16, first the k with k % 4 < 2, then the others, and the accumulator is added last, rounded to nearest
// even. Measured on an H200, see tests/isa/h200: no mismatch in up to 102,400 outputs of each form,
// infinities and NaN among the operands left out.
float mma_sync_sum(const Narrow& format, const Term* a, const Term* b, int k, float c);

}  // namespace gg::emu
