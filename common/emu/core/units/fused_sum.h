// SPDX-License-Identifier: MIT
//
// The arithmetic of the tensor cores of Hopper and of sm_100a, bit for bit: products exact, their
// sum with the accumulator cut once. fused_sum says what one output is; fused_sums computes a tile
// of them, the same bits and fast. block_scaled.h has the sums of packed fp4.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gg::emu {

struct Narrow {  // an input format
  int bits = 16, exponent_bits = 8, mantissa_bits = 7;
  int shift = 0;             // tf32 sits in the upper 19 of 32 bits
  bool finite_only = false;  // e4m3: no infinity, one NaN
  bool no_specials = false;  // e2m1, e2m3, e3m2: neither infinity nor NaN
};
// bf16, f16, tf32, e4m3, e5m2, e2m3, e3m2, e2m1. Throws std::invalid_argument for any other name.
Narrow narrow(const std::string& type);

// significand * 2^(exponent - mantissa bits); the exponent is the format's, not normalised.
struct Term {
  int32_t significand = 0;
  int16_t exponent = 0;
  uint8_t special = 0;  // 1 infinity, 2 NaN
};
Term term_of(const Narrow& format, uint32_t code);

// A block scale: significand / 8 * 2^exponent, normalised. PTX ISA, "Alternate Floating-Point
// Data Formats": ue8m0 is 2^(code - 127), ue4m3 is e4m3 without a sign; its bit 7 is dropped,
// as in microsoft/MMA-Sim.
Term scale_of(bool ue4m3, uint8_t code);

struct Cut {
  // Mantissa bits of the two factors together: a product counts in units of 2^-mantissa_bits.
  int mantissa_bits = 0;
  int fraction_bits = 25;  // every term is cut toward zero at 2^-fraction_bits of the largest
  int kept_bits = 24;      // of the sum, cut toward zero: an f32 result
  bool to_half = false;    // instead: rounded to the nearest f16, ties to even
};

// c + sum of a[i] * b[i] over k products: every term is cut, then they are added exactly and the
// sum is cut or rounded. What one instruction computes for one output. An f16 result comes as the
// float of its value. Any NaN is 0x7FFFFFFF. `scale`: an exponent that counts as one more factor of
// every product, as in kind::mxf8f6f4.
float fused_sum(const Term* a, const Term* b, int k, float c, const Cut& cut, int scale = 0);

// One output of mma.sync. 16-bit types and tf32: one fused sum, 25 fraction bits. 8-bit types have
// no instruction of their own on sm_90: they are widened to f16 and summed from zero in two steps
// of half of k, first the k with k % 4 < 2, then the others, and the accumulator is added last,
// rounded to nearest even. With f32 accumulators measured on an H200, see tests/isa/h200: no
// mismatch in up to 102,400 outputs of each form, infinities and NaN among the operands left out.
// With f16 accumulators every step rounds to f16 (read in the machine code that ptxas makes, and in
// microsoft/MMA-Sim's models of Hopper; not yet measured by us).
float mma_sync_sum(const Narrow& format, const Term* a, const Term* b, int k, float c);

// The factors of many sums: `lines` rows of A, or columns of B, `k` deep. Put the codes
// in, then decode.
class Factors {
 public:
  static constexpr int kMaxK = 32, kSide = 32;

  void resize(int lines, int k);
  int lines() const { return lines_; }
  int k() const { return k_; }
  uint32_t& code(int line, int k) { return slices(line)[k].codes[line % kSide]; }
  uint32_t code(int line, int k) const { return slices(line)[k].codes[line % kSide]; }
  void decode(const Narrow& format);
  // After decode: every line has a ue8m0 scale, codes[line].
  void scale(const uint8_t* codes);

  // The result of decoding, see fused_sums.h. One k of 32 lines:
  struct alignas(64) Slice {
    uint32_t codes[kSide];
    float values[kSide];  // relative to 2^top of the line
    int8_t below[kSide];  // exponent, relative to the top
  };
  Slice* slices(int line) { return &slices_[size_t(line / kSide * k_)]; }  // for all k, from 0 on
  const Slice* slices(int line) const { return &slices_[size_t(line / kSide * k_)]; }
  Narrow format;
  // For each line: the largest exponent; 1 if there is an infinity, 2 a NaN; the exponent of its
  // scale, which the largest exponent has too.
  std::vector<int32_t> tops, specials, scales;

 private:
  int lines_ = 0, k_ = 0;
  std::vector<Slice> slices_;
};

// sums[row][column] = fused_sum of row `row` of A, column `column` of B and sums[row][column],
// for all lines of both; a row of sums is `pitch` floats, a multiple of kSide, and what is
// behind the last column is of no meaning. Vectors run along columns: where B is short, A and B
// may change places.
void fused_sums(const Factors& a, const Factors& b, float* sums, int pitch, const Cut& cut);

// The same code compiled for kinds of CPUs, a later kind faster; the one above chooses the last
// that runs here.
enum class Cpus { any, avx2, avx512 };
Cpus last_that_runs_here();
struct ManySums {
  void (*decode)(Factors& factors);
  void (*sums)(const Factors& a, const Factors& b, float* sums, int pitch, const Cut& cut);
};
// Null: CPUs of that kind are none of those that this build is for, and it has no code for them.
const ManySums* many_sums(Cpus kind);
extern const ManySums kManySumsAny, kManySumsAvx2, kManySumsAvx512;

// Limits that the one sum and the many share. The largest exponent of a sum is never less than
// kZeroExponent: that of a term that is zero, and without one the accumulator's is larger. WGMMA's
// value, which the mma.sync data do not tell from others.
constexpr int kZeroExponent = -133;
constexpr int kNoExponent = -20000;  // of a factor that is zero: below that of any product
constexpr float kLargestHalf = 65504;
constexpr int kLeastHalfExponent = -14;  // of an f16 accumulator that is subnormal

// The same for what mma.sync computes. `step`: which of the Factors a k belongs to, 0 or 1, and its
// place there; the second ones are empty but for 8-bit types.
struct Step {
  int index = 0, k = 0;
};
Step mma_sync_step(const Narrow& format, int k);
void mma_sync_sums(const Factors (&a)[2], const Factors (&b)[2], float* sums, int pitch, bool to_half);

// f16, exactly and to the nearest.
float half_to_float(uint16_t half);
uint16_t float_to_half(float value);  // NaN: 0x7FFF

}  // namespace gg::emu
