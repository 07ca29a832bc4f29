// SPDX-License-Identifier: MIT
//
// Many fused sums at once, the code behind fused_sum.h's Factors and fused_sums. Three files
// include it, to be compiled for CPUs of any kind, with AVX2 and with AVX-512: each says kLanes,
// how many numbers of 32 bits a vector has, and a few instructions. Everything is in an unnamed
// namespace, so that neither's code gets into the other.

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>

#include "common/emu/core/units/fused_sum.h"

namespace gg::emu {
namespace {

// Values further below the largest of their line than this count as zero: beside the largest
// product they are cut away, unless the largest factors of a row and a column meet no partner, and
// the largest product lies more than kFarthest below the largest that there could be. Those sums
// are done one by one.
constexpr int kDropped = 45, kFarthest = 18;
// Exponents relative to their line's largest, in a byte: lower ones count as kLowest, as beside the
// largest they make no difference that is asked for, and kNone is a zero's. A product of two that
// are not zero is above kNone.
constexpr int kLowest = -31, kNone = -64;
static_assert(kLowest < -kFarthest && 2 * kLowest > kNone);
constexpr int32_t kMostProducts = INT32_MAX - (1 << 26);
// Bits of fraction, at which 32 products less than 4 fit 32 bits with sign.
constexpr int kMostBitsOf32 = 23;
// No float is as large as 2^kMostUnit times the least accumulator that counts beside it: greater
// units make the same infinity, or zero.
constexpr int kMostUnit = 200;
constexpr int32_t kInfinity = 1, kNaN = 2;  // what a line has among its factors

// kLanes of everything (an extension of GCC and Clang): compilers find the loops over columns too
// entangled to do this by themselves. A comparison gives -1 or 0 in each lane, `x ? y : z` chooses.
using Ints [[gnu::vector_size(4 * kLanes)]] = int32_t;
using Unsigneds [[gnu::vector_size(4 * kLanes)]] = uint32_t;
using Floats [[gnu::vector_size(4 * kLanes)]] = float;
using Bytes [[gnu::vector_size(Factors::kSide)]] = int8_t;

template <class Vector, class T>
inline Vector load(const T* from) {
  Vector vector;
  std::memcpy(&vector, from, sizeof vector);
  return vector;
}
template <class Vector, class T>
inline void save(T* to, const Vector& vector) {
  std::memcpy(to, &vector, sizeof vector);
}
inline bool any(Ints x) { return any_bit(std::bit_cast<Register>(x)); }
inline Ints all(int value) { return Ints{} + value; }
inline Ints larger(Ints a, Ints b) { return a > b ? a : b; }
inline Ints smaller(Ints a, Ints b) { return a < b ? a : b; }
inline Floats power_of_two(Ints exponent) { return std::bit_cast<Floats>((exponent + 127) << 23); }
inline Ints magnitude_bits(Floats x) { return std::bit_cast<Ints>(x) & 0x7FFFFFFF; }
inline Floats with_sign(Floats magnitude, Ints negative) {
  return std::bit_cast<Floats>(std::bit_cast<Ints>(magnitude) | (negative & INT32_MIN));
}

// 2^exponent as two factors, for exponents beyond those of a float too.
class Power {
 public:
  explicit Power(Ints exponent) {
    const Ints half = exponent >> 1;
    first_ = (half + 127) << 23;
    second_ = (exponent - half + 127) << 23;
  }
  Floats multiply(Floats x) const {
    return x * std::bit_cast<Floats>(first_) * std::bit_cast<Floats>(second_);
  }
  Floats divide(Floats x) const {
    return x * std::bit_cast<Floats>(kInverse - first_) * std::bit_cast<Floats>(kInverse - second_);
  }

 private:
  static constexpr int32_t kInverse = 254 << 23;  // less the bits of a power: those of one over it
  Ints first_, second_;
};

void decode_lines(Factors& factors) {
  const Narrow& f = factors.format;
  const Ints fractions = all((1 << f.mantissa_bits) - 1), fields = all((1 << f.exponent_bits) - 1);
  const int sign_bit = f.mantissa_bits + f.exponent_bits, bias = (1 << (f.exponent_bits - 1)) - 1;
  // In formats without specials, infinity is more than any magnitude.
  const Ints infinity =
      f.no_specials ? all(INT32_MAX) : (fields << f.mantissa_bits) | (f.finite_only ? fractions : all(0));
  const int32_t at_infinity = f.finite_only ? kNaN : kInfinity;  // e4m3 has its NaN there
  for (int line = 0; line < factors.lines(); line += kLanes) {
    const int l = line % Factors::kSide;
    Factors::Slice* slices = factors.slices(line);
    Ints exponents[Factors::kMaxK], top = all(kNoExponent), special = {};
    for (int k = 0; k < factors.k(); ++k) {
      const Ints bits = load<Ints>(slices[k].codes + l) >> f.shift, magnitude = bits & ((1 << sign_bit) - 1);
      const Ints field = magnitude >> f.mantissa_bits;
      const Ints significand = (magnitude & fractions) | (field > 0 ? fractions + 1 : all(0));
      const Ints negative = -(bits >> sign_bit & 1);
      save(slices[k].values + l, __builtin_convertvector((significand ^ negative) - negative, Floats));
      exponents[k] = magnitude > 0 ? larger(field, all(1)) - bias : all(kNoExponent);
      top = larger(top, exponents[k]);
      special |= ((magnitude == infinity) & at_infinity) | ((magnitude > infinity) & kNaN);
    }
    save(&factors.tops[size_t(line)], top);
    save(&factors.specials[size_t(line)], special);
    for (int k = 0; k < factors.k(); ++k) {
      const Ints below = exponents[k] - top;
      const Floats scale =
          below < -kDropped ? Floats{} : power_of_two(larger(below, all(-kDropped)) - f.mantissa_bits);
      save(slices[k].values + l, load<Floats>(slices[k].values + l) * scale);
      const Ints kept = exponents[k] > kNoExponent ? larger(below, all(kLowest)) : all(kNone);
      for (int i = 0; i < kLanes; ++i) slices[k].below[l + i] = int8_t(kept[i]);
    }
  }
}

// Sums of up to eight rows of A with up to 32 columns of B, in passes over all of them. kWide: 32
// products of which 25 fraction bits are kept, tcgen05's 8-bit and narrower kinds. Their sum may
// have 32 bits beside the sign, so both halves of k are summed apart.
template <bool kWide>
class Tile {
 public:
  static constexpr int kRows = 8, kColumns = Factors::kSide;
  Tile(const Factors& a, const Factors& b, const Cut& cut) : a_(a), b_(b), cut_(cut) {}

  template <int K>
  void sum(int row, int column, float* sums, int pitch) {
    row_ = row;
    column_ = column;
    rows_ = std::min(a_.lines() - row, kRows);
    columns_ = std::min(b_.lines() - column, kColumns);
    largest_products<K>();
    exponents(sums, pitch);
    products<K>();
    const bool slow = cut_.to_half ? add<true>(sums, pitch) : add<false>(sums, pitch);
    if (slow) one_by_one(sums, pitch);
  }

 private:
  // use(row in the tile, column in the tile, where that is in our arrays), for a vector
  // of columns each.
  template <class Use>
  void for_vectors(Use use) {
    const int rows = rows_, columns = columns_;
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < columns; c += kLanes) use(r, c, r * kColumns + c);
    }
  }

  // The largest exponent of each sum's products, relative to that of its line and column together.
  template <int K>
  void largest_products() {
    const Factors::Slice *a = a_.slices(row_), *b = b_.slices(column_);
    const int line = row_ % Factors::kSide;
    for (int r = 0, rows = rows_; r < rows; ++r) {
      Bytes most = Bytes{} + int8_t(2 * kNone);
      for (int k = 0; k < K; ++k) {
        const Bytes product = load<Bytes>(b[k].below) + a[k].below[line + r];
        most = product > most ? product : most;
      }
      int8_t bytes[kColumns];
      save(bytes, most);
      for (int c = 0; c < kColumns; ++c) below_[r * kColumns + c] = bytes[c];
    }
  }

  // The largest exponent of each sum's terms, and what brings its products into units of
  // 2^(largest - fraction_bits).
  void exponents(const float* sums, int pitch) {
    const int32_t *a_tops = &a_.tops[size_t(row_)], *a_specials = &a_.specials[size_t(row_)];
    const int32_t *b_tops = &b_.tops[size_t(column_)], *b_specials = &b_.specials[size_t(column_)];
    const Ints least = all(cut_.to_half ? kLeastHalfExponent : -126), bits = all(cut_.fraction_bits);
    for_vectors([=, this](int r, int c, int at) {
      const Ints before = load<Ints>(sums + r * pitch + c), magnitude = before & 0x7FFFFFFF;
      const Ints field = magnitude >> 23;
      const Ints below = load<Ints>(below_ + at), is_product = below > kNone;
      const Ints top = a_tops[r] + load<Ints>(b_tops + c);
      const Ints product = is_product ? top + below : all(kNoExponent);
      const Ints accumulator = magnitude > 0 ? larger(field - 127, least) : all(kNoExponent);
      const Ints largest = larger(larger(product, accumulator), all(kZeroExponent));
      const Ints farther = (top - largest) & is_product;
      const Ints special = a_specials[r] | load<Ints>(b_specials + c);
      const Ints up = smaller(farther, all(kFarthest)) + bits;
      save(before_ + at, before);
      save(largest_ + at, largest);
      save(nan_ + at, ((special & kNaN) != 0) | (magnitude > 0x7F800000));
      save(slow_ + at, (special != 0) | (field == 0xFF) | (farther > kFarthest));
      // Where `up` is below -10, all is cut away.
      save(scale_ + at, up < -10 ? Floats{} : power_of_two(larger(up, all(-10))));
    });
  }

  // A product is exact in a float, and the conversion cuts it. Sums fit 32 bits: a product is less
  // than 4 * 2^25, and no more than 16 are added where 25 fraction bits are kept.
  template <int K>
  void products() {
    const Factors::Slice *a = a_.slices(row_), *b = b_.slices(column_);
    const int line = row_ % Factors::kSide;
    for_vectors([&, a, b, line](int r, int c, int at) {
      const Floats scale = load<Floats>(scale_ + at);
      constexpr int kFirst = kWide ? K / 2 : K;
      Ints sum = {}, more = {};
      for (int k = 0; k < kFirst; ++k)
        sum += __builtin_convertvector(a[k].values[line + r] * load<Floats>(b[k].values + c) * scale, Ints);
      for (int k = kFirst; k < K; ++k)
        more += __builtin_convertvector(a[k].values[line + r] * load<Floats>(b[k].values + c) * scale, Ints);
      save(products_ + at, sum);
      if (kWide) save(more_ + at, more);
    });
  }

  // The accumulator is cut as the products were. Its sum with the products fits 32 bits, those of
  // one half if kWide, but where the products' is next to the end. True if some sums must be done
  // one by one.
  template <bool kToHalf>
  bool add(float* sums, int pitch) {
    const Ints bits = all(cut_.fraction_bits), kept = all(-(1 << (24 - cut_.kept_bits)));
    Ints some = {};
    for_vectors([&](int r, int c, int at) {
      const Ints of_products = load<Ints>(products_ + at);
      Ints slow = load<Ints>(slow_ + at) | (of_products > kMostProducts) | (of_products < -kMostProducts);
      // Sums that are done one by one, infinities and NaNs too, would not fit: their terms
      // are zero here.
      const Floats before = std::bit_cast<Floats>(load<Ints>(before_ + at) & ~slow);
      const Power unit(smaller(load<Ints>(largest_ + at) - bits, all(kMostUnit)));
      const Ints sum = (of_products & ~slow) + __builtin_convertvector(unit.divide(before), Ints);
      const Total total = total_of(sum, kWide ? load<Ints>(more_ + at) & ~slow : Ints{});
      const Floats result = kToHalf ? round_half(total, unit) : cut_float(total, unit, kept, slow);
      const Ints nan = load<Ints>(nan_ + at);
      slow &= ~nan;
      save(sums + r * pitch + c, nan ? std::bit_cast<Floats>(all(0x7FFFFFFF)) : result);
      save(slow_ + at, slow);
      some |= slow;
    });
    return any(some);
  }

  struct Total {
    Ints negative;
    Ints magnitude;  // kWide: its 32 bits are a number without a sign
  };
  static Total total_of(Ints sum, Ints more) {
    const Ints negative = kWide ? ((sum >> 1) + (more >> 1) + (sum & more & 1)) < 0 : sum < 0;
    // Without a sign: as int, sums of 32 bits would overflow.
    const auto sign = std::bit_cast<Unsigneds>(negative);
    const auto all_bits = std::bit_cast<Unsigneds>(sum) + std::bit_cast<Unsigneds>(more);
    return {negative, std::bit_cast<Ints>((all_bits ^ sign) - sign)};
  }
  static Floats to_floats(Ints magnitude) {
    if (kWide) return __builtin_convertvector(std::bit_cast<Unsigneds>(magnitude), Floats);
    return __builtin_convertvector(magnitude, Floats);
  }

  // Toward zero: without the bit below the 24 that a float has, the conversion to the nearest cuts.
  static Floats cut_to_24_bits(Ints magnitude) {
    const Ints top = std::bit_cast<Ints>(std::bit_cast<Unsigneds>(magnitude) >> 24);
    return to_floats(magnitude & ~top);
  }

  // Too large becomes infinity by the scaling. What becomes subnormal is cut once more, one by one;
  // the scaling may have rounded it up to the least normal number.
  static Floats cut_float(const Total& total, const Power& unit, Ints kept, Ints& slow) {
    const Floats cut = std::bit_cast<Floats>(std::bit_cast<Ints>(cut_to_24_bits(total.magnitude)) & kept);
    const Floats result = unit.multiply(cut);
    slow |= (std::bit_cast<Ints>(result) <= 0x00800000) & (total.magnitude != 0);
    return with_sign(result, total.negative);
  }

  // To the nearest, ties to even: the last of the 24 bits says whether something was cut below
  // them, then adding and taking away a number whose last bit is worth f16's rounds to that bit.
  static Floats round_half(const Total& total, const Power& unit) {
    const Floats cut = cut_to_24_bits(total.magnitude);
    const Ints top = std::bit_cast<Ints>(std::bit_cast<Unsigneds>(total.magnitude) >> 24);
    Ints below_24 = top;  // a mask of all bits that a float does not hold
    for (int shift = 1; shift < 8; shift *= 2) below_24 |= below_24 >> shift;
    const Ints inexact = (total.magnitude & below_24) != 0;
    const Floats odd = std::bit_cast<Floats>(std::bit_cast<Ints>(cut) | (inexact & 1));
    const Floats exact = with_sign(unit.multiply(odd), total.negative);
    const Ints exponent = larger((magnitude_bits(exact) >> 23) - 127, all(kLeastHalfExponent));
    const Floats shifter = 1.5f * power_of_two(exponent - 10 + 23);
    const Floats rounded = (exact + shifter) - shifter;
    const Floats infinity = with_sign(std::bit_cast<Floats>(all(0x7F800000)), total.negative);
    return magnitude_bits(rounded) > std::bit_cast<int32_t>(kLargestHalf) ? infinity : rounded;
  }

  [[gnu::noinline]] void one_by_one(float* sums, int pitch) const {
    Term a[Factors::kMaxK], b[Factors::kMaxK];
    for (int r = 0; r < rows_; ++r) {
      for (int k = 0; k < a_.k(); ++k) a[k] = term_of(a_.format, a_.code(row_ + r, k));
      for (int c = 0; c < columns_; ++c) {
        const int at = r * kColumns + c;
        if (!slow_[at]) continue;
        for (int k = 0; k < b_.k(); ++k) b[k] = term_of(b_.format, b_.code(column_ + c, k));
        sums[r * pitch + c] = fused_sum(a, b, a_.k(), before_[at], cut_,
                                        a_.scales[size_t(row_ + r)] + b_.scales[size_t(column_ + c)]);
      }
    }
  }

  const Factors &a_, &b_;
  const Cut cut_;
  int row_ = 0, column_ = 0, rows_ = 0, columns_ = 0;
  // The values of each sum:
  static constexpr int kSums = kRows * kColumns;
  alignas(64) int32_t below_[kSums], largest_[kSums], nan_[kSums], slow_[kSums], products_[kSums],
      more_[kWide ? kSums : kLanes];
  alignas(64) float scale_[kSums], before_[kSums];
};

template <int K, bool kWide = false>
void sums_of(const Factors& a, const Factors& b, float* sums, int pitch, const Cut& cut) {
  using Tiles = Tile<kWide>;
  Tiles tile(a, b, cut);
  for (int row = 0; row < a.lines(); row += Tiles::kRows) {
    for (int column = 0; column < b.lines(); column += Tiles::kColumns)
      tile.template sum<K>(row, column, sums + row * pitch + column, pitch);
  }
}

void all_sums(const Factors& a, const Factors& b, float* sums, int pitch, const Cut& cut) {
  switch (a.k()) {
    case 4:
      return sums_of<4>(a, b, sums, pitch, cut);
    case 8:
      return sums_of<8>(a, b, sums, pitch, cut);
    case 16:
      return sums_of<16>(a, b, sums, pitch, cut);
    case 32:
      return cut.fraction_bits > kMostBitsOf32 ? sums_of<32, true>(a, b, sums, pitch, cut)
                                               : sums_of<32>(a, b, sums, pitch, cut);
    default:
      throw std::invalid_argument("no instruction sums this many products");
  }
}

}  // namespace
}  // namespace gg::emu
