// SPDX-License-Identifier: MIT
//
// Many sums of packed fp4 at once, the code behind block_scaled.h. The files that include
// fused_sums.h include this one behind it, for the same reason.

#include <algorithm>
#include <bit>
#include <cstring>

#include "common/emu/core/units/block_scaled.h"

namespace gg::emu {
namespace {

// Halves of vectors, and their numbers of 64 bits.
constexpr int kHalf = kLanes / 2;
using HalfFloats [[gnu::vector_size(4 * kHalf)]] = float;
using Doubles [[gnu::vector_size(8 * kHalf)]] = double;
using Longs [[gnu::vector_size(8 * kHalf)]] = int64_t;
// A term has 8 fraction bits, two of a product, three of each scale: here before the point.
constexpr int kTermBits = 8;
constexpr int kMostShift = kPackedFractionBits - kTermBits;
constexpr int kLeastShift = -30;  // below that all of a term is cut away: it is less than 2^20

// Sums of one row of A with kLanes columns of B, from `column` of 32 on, from the group sums.
struct PackedRow {
  const PackedFactors::Line& a;
  const PackedFactors::Side& b;
  const int column;

  // An infinity that was there stays, as nothing else is infinite. Subnormals are done one by one.
  Ints sum(const Ints (&groups)[kPackedGroups], float* sums) const {
    const Ints before = load<Ints>(sums), magnitude = before & 0x7FFFFFFF, field = magnitude >> 23;
    Ints largest = magnitude > 0 ? larger(field - 127, all(-126)) : all(kPackedZeroExponent);
    Ints exponents[kPackedGroups];
    for (int g = 0; g < kPackedGroups; ++g) {
      const Ints counts = (load<Ints>(b.nonzero[g] + column) & a.nonzero[g]) != 0;
      exponents[g] = load<Ints>(b.exponents[g] + column) + a.exponents[g];
      largest = larger(largest, counts ? exponents[g] : all(kPackedZeroExponent));
    }
    Doubles low = {}, high = {};
    add_groups(groups, exponents, largest, low, high);
    const Ints finite = magnitude < 0x7F800000;
    const Power unit(largest - kPackedFractionBits);
    const Floats accumulator = unit.divide(std::bit_cast<Floats>(before & finite));
    // Numbers of 2^23 and more are whole.
    const Floats whole = __builtin_convertvector(__builtin_convertvector(accumulator, Ints), Floats);
    add(magnitude_bits(accumulator) < 0x4B000000 ? whole : accumulator, low, high);
    const Floats cut = cut_to_float(low, high), result = unit.multiply(cut);
    const Ints nan = load<Ints>(b.nans + column) | a.nan | (magnitude > 0x7F800000);
    const Floats sum = finite ? result : std::bit_cast<Floats>(before);
    save(sums, nan ? std::bit_cast<Floats>(all(0x7FFFFFFF)) : sum);
    // The least normal number may have been rounded up to.
    const Ints subnormal = (magnitude_bits(result) <= 0x00800000) & (magnitude_bits(cut) != 0);
    return subnormal & finite & ~nan;
  }

 private:
  void add_groups(const Ints (&groups)[kPackedGroups], const Ints (&exponents)[kPackedGroups], Ints largest,
                  Doubles& low, Doubles& high) const {
    Ints shifts[kPackedGroups], least = {};
    for (int g = 0; g < kPackedGroups; ++g) {
      shifts[g] = exponents[g] - largest + kMostShift;
      least = smaller(least, shifts[g]);
    }
    const bool some = any(least);
    for (int g = 0; g < kPackedGroups; ++g) {
      const Floats scales = load<Floats>(b.significands[g] + column) * a.significands[g];
      // A group without products may have any exponent: it is zero all the same.
      const Ints shift = smaller(larger(shifts[g], all(kLeastShift)), all(kMostShift));
      Floats term = __builtin_convertvector(groups[g], Floats) * scales * power_of_two(shift);
      if (some) {  // terms below the point: those are less than 2^20
        const Floats whole = __builtin_convertvector(__builtin_convertvector(term, Ints), Floats);
        term = shift < 0 ? whole : term;
      }
      add(term, low, high);
    }
  }

  // Sums of whole numbers less than 2^50: a double holds them.
  static void add(const Floats& x, Doubles& low, Doubles& high) {
    HalfFloats halves[2];
    std::memcpy(&halves, &x, sizeof halves);
    low += std::bit_cast<Doubles>(to_doubles(halves[0]));
    high += std::bit_cast<Doubles>(to_doubles(halves[1]));
  }
  static HalfFloats cut_half(const Doubles& x) {  // 24 of 53 bits
    const Doubles cut = std::bit_cast<Doubles>(std::bit_cast<Longs>(x) & ~((int64_t(1) << 29) - 1));
    return __builtin_convertvector(cut, HalfFloats);
  }
  static Floats cut_to_float(const Doubles& low, const Doubles& high) {
    const HalfFloats halves[2] = {cut_half(low), cut_half(high)};
    return load<Floats>(&halves);
  }
};

[[gnu::noinline]] void one_by_one(const PackedFactors& a, const PackedFactors& b, int row, int column,
                                  float before, float& sum) {
  Term terms[2][kPackedK], scales[2][kPackedGroups];
  static const Narrow e2m1 = narrow("e2m1");
  for (int side = 0; side < 2; ++side) {
    const PackedFactors& of = side ? b : a;
    const int line = side ? column : row;
    for (int k = 0; k < kPackedK; ++k)
      terms[side][k] = term_of(e2m1, uint32_t(of.codes(line)[k / 2] >> k % 2 * 4) & 15);
    for (int g = 0; g < kPackedGroups; ++g) scales[side][g] = scale_of(of.ue4m3, of.scale(line, g));
  }
  sum = block_scaled_sum(terms[0], terms[1], scales[0], scales[1], before);
}

// Group sums of a row with kLanes columns: whole numbers, four times the sums. Products of
// bytes want one factor without a sign: the columns have kOffset added, and what that adds is
// taken away again.
inline void group_sums(const PackedFactors::Line& a, const PackedFactors::Side& b, int column,
                       Ints (&groups)[kPackedGroups]) {
  for (int g = 0; g < kPackedGroups; ++g) {
    const auto products = [&, g](int q) {
      const int at = g * (kPackedGroup / 4) + q;
      return byte_products(load<Register>(b.positives[at] + column), in_all(int(a.quads[at])));
    };
    const Register sums =
        add_16_bits(add_16_bits(products(0), products(1)), add_16_bits(products(2), products(3)));
    groups[g] = std::bit_cast<Ints>(neighbour_sums(sums)) - a.offsets[g];
  }
}

void all_packed_sums(const PackedFactors& a, const PackedFactors& b, float* sums, int pitch) {
  for (int first = 0; first < b.lines(); first += kLanes) {
    const PackedFactors::Side& side = b.side(first);
    const int column = first % PackedFactors::kSide;
    for (int row = 0; row < a.lines(); ++row) {
      float* to = sums + row * pitch + first;
      const PackedFactors::Line& line = a.decoded(row);
      Ints groups[kPackedGroups];
      group_sums(line, side, column, groups);
      const Ints before = load<Ints>(to), slow = PackedRow{line, side, column}.sum(groups, to);
      if (!any(slow)) continue;
      for (int i = 0; i < std::min(kLanes, b.lines() - first); ++i) {
        if (slow[i]) one_by_one(a, b, row, first + i, std::bit_cast<float>(before[i]), to[i]);
      }
    }
  }
}

}  // namespace
}  // namespace gg::emu
