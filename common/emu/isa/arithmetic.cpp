// SPDX-License-Identifier: MIT
//
// The truncated fused sum. A term that is zero takes no part; a sum that cuts to zero is +0.

#include "common/emu/isa/arithmetic.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace gg::emu {
namespace {

// The largest exponent of a sum is never less: that of a term that is zero, and without one the accumulator's
// is larger. WGMMA's value, which the mma.sync data do not tell from others.
constexpr int kZeroExponent = -133;
constexpr int kNoExponent = -20000;  // of a factor that is zero: below that of any product
constexpr double kLargestHalf = 65504;
constexpr int kLeastHalfExponent = -14;  // of an f16 accumulator that is subnormal

float quiet_nan() { return std::bit_cast<float>(0x7FFFFFFFu); }

// To f16's 11 bits, or its subnormal spacing 2^-24; ties go to even.
double round_to_half(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), kLeastHalfExponent);
  const double spacing = std::ldexp(1.0, exponent - 10);
  const double rounded = std::nearbyint(value / spacing) * spacing;
  if (rounded == 0) return 0;  // +0, as for f32 results
  return std::abs(rounded) > kLargestHalf ? std::copysign(INFINITY, value) : rounded;
}

// Toward zero: to `kept` bits, and to f32's subnormal spacing.
double cut_to_float(double value, int kept) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double spacing = std::ldexp(1.0, std::max(std::ilogb(value) - kept + 1, -149));
  const double result = std::trunc(value / spacing) * spacing;
  return result == 0 ? 0 : result;
}

// The sum before it is rounded, which a double holds exactly: at most 33 bits. NaN and infinities too.
double exact_sum(const Term* a, const Term* b, int k, float c, const Cut& cut) {
  bool nan = std::isnan(c), plus = c == INFINITY, minus = c == -INFINITY;
  int largest = kZeroExponent;
  for (int i = 0; i < k; ++i) {
    const bool a_zero = a[i].significand == 0 && !a[i].special,
               b_zero = b[i].significand == 0 && !b[i].special;
    if (a[i].special | b[i].special) {
      if (a[i].special == 2 || b[i].special == 2 || a_zero || b_zero) {
        nan = true;
      } else {
        ((a[i].significand < 0) != (b[i].significand < 0) ? minus : plus) = true;
      }
    } else if (!a_zero && !b_zero) {
      largest = std::max(largest, a[i].exponent + b[i].exponent);
    }
  }
  if (nan || (plus && minus)) return quiet_nan();
  if (plus || minus) return plus ? INFINITY : -INFINITY;
  const uint32_t c_bits = std::bit_cast<uint32_t>(c);
  const int c_field = int(c_bits >> 23 & 0xFF), c_exponent = std::max(c_field, 1) - 127;
  const int64_t c_significand = int64_t(c_bits & 0x7FFFFF) | (c_field ? 0x800000 : 0);
  if (c_significand)
    largest = std::max(largest, cut.to_half ? std::max(c_exponent, kLeastHalfExponent) : c_exponent);

  // In units of 2^(largest - fraction_bits), each term cut toward zero.
  const int unit = largest - cut.fraction_bits;
  const auto units = [unit](int64_t significand, int exponent) {
    const int shift = exponent - unit;
    if (shift >= 0) return significand << shift;
    if (shift < -62) return int64_t(0);
    return significand < 0 ? -(-significand >> -shift) : significand >> -shift;
  };
  int64_t sum = units(c_bits >> 31 ? -c_significand : c_significand, c_exponent - 23);
  for (int i = 0; i < k; ++i) {
    const int64_t product = int64_t(a[i].significand) * b[i].significand;
    if (product) sum += units(product, a[i].exponent + b[i].exponent - cut.mantissa_bits);
  }
  return std::ldexp(double(sum), unit);
}

float add_to_nearest(float a, float b) {  // FADD
  const float sum = a + b;
  return std::isnan(sum) ? quiet_nan() : sum;
}

}  // namespace

Narrow narrow(const std::string& type) {
  if (type == "bf16") return {16, 8, 7, 0, false};
  if (type == "f16") return {16, 5, 10, 0, false};
  if (type == "tf32") return {32, 8, 10, 13, false};
  if (type == "e4m3") return {8, 4, 3, 0, true};
  if (type == "e5m2") return {8, 5, 2, 0, false};
  throw std::invalid_argument(type + " is no input type of the tensor cores");
}

Term term_of(const Narrow& f, uint32_t code) {
  code >>= f.shift;
  const uint32_t fraction = code & ((1u << f.mantissa_bits) - 1);
  const int field = int(code >> f.mantissa_bits & ((1u << f.exponent_bits) - 1));
  const bool negative = code >> (f.mantissa_bits + f.exponent_bits) & 1;
  const int bias = (1 << (f.exponent_bits - 1)) - 1;
  Term term;
  if (field == (1 << f.exponent_bits) - 1) {
    if (!f.finite_only) {
      term.special = fraction ? 2 : 1;
    } else if (fraction == (1u << f.mantissa_bits) - 1) {
      term.special = 2;
    }
  }
  const int32_t significand = int32_t(fraction | (field ? 1u << f.mantissa_bits : 0));
  term.significand = negative ? -significand : significand;
  term.exponent = int16_t(std::max(field, 1) - bias);
  return term;
}

float fused_sum(const Term* a, const Term* b, int k, float c, const Cut& cut) {
  const double exact = exact_sum(a, b, k, c, cut);
  if (std::isnan(exact)) return quiet_nan();
  if (cut.to_half) return float(round_to_half(exact));
  const double result = cut_to_float(exact, cut.kept_bits);
  constexpr double kLargestFloat = 3.4028234663852886e38;
  return std::abs(result) > kLargestFloat ? std::copysign(INFINITY, float(result > 0 ? 1 : -1))
                                          : float(result);
}

Step mma_sync_step(const Narrow& format, int k) {
  if (format.bits != 8) return {0, k};
  return {k % 4 / 2, k / 4 * 2 + k % 2};
}

float mma_sync_sum(const Narrow& format, const Term* a, const Term* b, int k, float c) {
  const Cut cut = {2 * format.mantissa_bits};
  if (format.bits != 8) return fused_sum(a, b, k, c, cut);
  Term a_steps[2][Factors::kMaxK / 2], b_steps[2][Factors::kMaxK / 2];
  for (int i = 0; i < k; ++i) {
    const Step step = mma_sync_step(format, i);
    a_steps[step.index][step.k] = a[i];
    b_steps[step.index][step.k] = b[i];
  }
  const float first = fused_sum(a_steps[0], b_steps[0], k / 2, 0, cut);
  return add_to_nearest(c, fused_sum(a_steps[1], b_steps[1], k / 2, first, cut));
}

// ---- many sums at once ----

namespace {

// Values further below the largest of their line than this count as zero: beside the largest product they are
// cut away, unless the largest factors of a row and a column meet no partner, and the largest product lies
// more than kFarthest below the largest that there could be. Those sums are done one by one.
constexpr int kDropped = 45, kFarthest = 18;
constexpr int32_t kMostProducts = INT32_MAX - (1 << 26);

// Eight lanes of everything (an extension of GCC and Clang): compilers find the loops over columns too short
// or too entangled to do this by themselves. A comparison gives -1 or 0 in each lane, `x ? y : z` chooses.
using Ints [[gnu::vector_size(32)]] = int32_t;
using Floats [[gnu::vector_size(32)]] = float;

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
inline Ints all(int value) { return Ints{} + value; }
inline Ints larger(Ints a, Ints b) { return a > b ? a : b; }
inline Ints smaller(Ints a, Ints b) { return a < b ? a : b; }
inline bool any(Ints lanes) {
  int32_t result = 0;
  for (int i = 0; i < 8; ++i) result |= lanes[i];
  return result != 0;
}
inline Floats power_of_two(Ints exponent) { return std::bit_cast<Floats>((exponent + 127) << 23); }
// x * 2^exponent, for exponents beyond those of a float too.
inline Floats scaled(Floats x, Ints exponent) {
  const Ints half = exponent >> 1;
  return x * power_of_two(half) * power_of_two(exponent - half);
}
inline Ints magnitude_bits(Floats x) { return std::bit_cast<Ints>(x) & 0x7FFFFFFF; }
inline Floats with_sign(Floats magnitude, Ints negative) {
  return std::bit_cast<Floats>(std::bit_cast<Ints>(magnitude) | (negative & INT32_MIN));
}

}  // namespace

void Factors::resize(int lines, int k) {
  lines_ = lines;
  k_ = k;
  const size_t count = size_t(lines) * size_t(k);
  if (codes_.size() < count) {
    codes_.resize(count);
    values_.resize(count);
    exponents_.resize(count);
  }
  tops_.resize(size_t(lines));
  specials_.resize(size_t(lines));
}

void Factors::decode(const Narrow& f) {
  format_ = f;
  const Ints fractions = all((1 << f.mantissa_bits) - 1), fields = all((1 << f.exponent_bits) - 1);
  const int sign_bit = f.mantissa_bits + f.exponent_bits, bias = (1 << (f.exponent_bits - 1)) - 1;
  const Ints least_special = (fields << f.mantissa_bits) | (f.finite_only ? fractions : all(0));
  for (int l = 0; l < lines_; l += kBlock) {
    Ints top = all(kNoExponent), special = {};
    for (size_t i = at(l, 0); i < at(l, k_); i += kBlock) {
      const Ints bits = load<Ints>(&codes_[i]) >> f.shift, magnitude = bits & ((1 << sign_bit) - 1);
      const Ints field = magnitude >> f.mantissa_bits;
      const Ints significand = (magnitude & fractions) | (field > 0 ? fractions + 1 : all(0));
      const Ints exponent = magnitude > 0 ? larger(field, all(1)) - bias : all(kNoExponent);
      const Ints negative = -(bits >> sign_bit & 1);
      save(&values_[i], __builtin_convertvector((significand ^ negative) - negative, Floats));
      save(&exponents_[i], exponent);
      top = larger(top, exponent);
      special |= magnitude >= least_special;
    }
    save(&tops_[size_t(l)], top);
    save(&specials_[size_t(l)], special);
    for (size_t i = at(l, 0); i < at(l, k_); i += kBlock) {
      const Ints below = load<Ints>(&exponents_[i]) - top;
      const Floats scale =
          below < -kDropped ? Floats{} : power_of_two(larger(below, all(-kDropped)) - f.mantissa_bits);
      save(&values_[i], load<Floats>(&values_[i]) * scale);
    }
  }
}

// Sums of one row of A with eight columns of B.
class Tile {
 public:
  static constexpr int kBlock = Factors::kBlock;
  Tile(const Factors& a, const Factors& b, const Cut& cut) : a_(a), b_(b), cut_(cut) {}

  template <int K>
  void block(int row, int column, float* sums) const {
    const Floats c = load<Floats>(sums);
    Ints largest, slow;
    const Floats scale = exponents<K>(row, column, c, largest, slow);
    const Ints of_products = products<K>(row, column, scale);
    // The accumulator is cut as the products were. Their sum fits 32 bits but where the products' is next to
    // the end.
    const Ints sum = of_products + __builtin_convertvector(scaled(c, cut_.fraction_bits - largest), Ints);
    slow |= (of_products > kMostProducts) | (of_products < -kMostProducts);
    const Floats result = cut_.to_half ? round_half(sum, largest) : cut_float(sum, largest, slow);
    if (any(slow)) [[unlikely]] {
      one_by_one(row, column, c, sums);
    } else {
      save(sums, result);
    }
  }

 private:
  // The largest exponent of each sum's terms, and what brings its products into units of 2^(largest -
  // fraction_bits).
  template <int K>
  Floats exponents(int row, int column, Floats c, Ints& largest, Ints& slow) const {
    Ints product = all(kNoExponent);
    const int32_t *a = &a_.exponents_[a_.at(row, 0)], *b = &b_.exponents_[b_.at(column, 0)];
    for (int k = 0; k < K; ++k) product = larger(product, a[k * kBlock] + load<Ints>(b + k * kBlock));
    const Ints magnitude = std::bit_cast<Ints>(c) & 0x7FFFFFFF, field = magnitude >> 23;
    const int least = cut_.to_half ? kLeastHalfExponent : -126;
    const Ints c_exponent = magnitude > 0 ? larger(field - 127, all(least)) : all(kNoExponent);
    largest = larger(larger(product, c_exponent), all(kZeroExponent));
    const Ints top = a_.tops_[size_t(row)] + load<Ints>(&b_.tops_[size_t(column)]);
    const Ints farther = product > kNoExponent / 2 ? top - largest : all(0);
    slow = load<Ints>(&b_.specials_[size_t(column)]) | a_.specials_[size_t(row)] | (field == 0xFF) |
           (farther > kFarthest);
    const Ints up = smaller(farther, all(kFarthest)) + cut_.fraction_bits;
    return up < -10 ? Floats{} : power_of_two(larger(up, all(-10)));  // below that all is cut away
  }

  // A product is exact in a float, and the conversion cuts it. Sums fit 32 bits: a product is less than 4 *
  // 2^25, and there are no more than 16 where 25 fraction bits are kept.
  template <int K>
  Ints products(int row, int column, Floats scale) const {
    Ints sum = {};
    const float *a = &a_.values_[a_.at(row, 0)], *b = &b_.values_[b_.at(column, 0)];
    for (int k = 0; k < K; ++k) {
      sum += __builtin_convertvector(a[k * kBlock] * load<Floats>(b + k * kBlock) * scale, Ints);
    }
    return sum;
  }

  // Toward zero: without the bit below the 24 that a float has, the conversion to the nearest cuts.
  static Floats cut_to_24_bits(Ints magnitude) {
    return __builtin_convertvector(magnitude & ~(magnitude >> 24), Floats);
  }

  // Too large becomes infinity by the scaling. What becomes subnormal is cut once more: one by one.
  Floats cut_float(Ints sum, Ints largest, Ints& slow) const {
    const Ints negative = sum < 0, magnitude = (sum ^ negative) - negative;
    const int32_t kept = -(1 << (24 - cut_.kept_bits));
    const Floats cut = std::bit_cast<Floats>(std::bit_cast<Ints>(cut_to_24_bits(magnitude)) & kept);
    const Floats result = scaled(cut, largest - cut_.fraction_bits);
    slow |= (magnitude_bits(result) < 0x00800000) & (sum != 0);
    return with_sign(result, negative);
  }

  // To the nearest, ties to even: the last of the 24 bits says whether something was cut below them, then
  // adding and taking away a number whose last bit is worth f16's rounds to that bit.
  Floats round_half(Ints sum, Ints largest) const {
    const Ints negative = sum < 0, magnitude = (sum ^ negative) - negative;
    const Floats cut = cut_to_24_bits(magnitude);
    const Ints inexact = __builtin_convertvector(cut, Ints) != magnitude;
    const Floats odd = std::bit_cast<Floats>(std::bit_cast<Ints>(cut) | (inexact & 1));
    const Floats exact = with_sign(scaled(odd, largest - cut_.fraction_bits), negative);
    const Ints exponent = larger((magnitude_bits(exact) >> 23) - 127, all(kLeastHalfExponent));
    const Floats shifter = 1.5f * power_of_two(exponent - 10 + 23);
    const Floats rounded = (exact + shifter) - shifter;
    const Floats infinity = with_sign(std::bit_cast<Floats>(all(0x7F800000)), negative);
    return magnitude_bits(rounded) > std::bit_cast<int32_t>(float(kLargestHalf)) ? infinity : rounded;
  }

  [[gnu::noinline]] void one_by_one(int row, int column, const Floats& c, float* sums) const {
    Term a[Factors::kMaxK], b[Factors::kMaxK];
    for (int k = 0; k < a_.k_; ++k) a[k] = term_of(a_.format_, a_.code(row, k));
    for (int i = 0; i < kBlock; ++i) {
      for (int k = 0; k < a_.k_; ++k) b[k] = term_of(b_.format_, b_.code(column + i, k));
      sums[i] = fused_sum(a, b, a_.k_, c[i], cut_);
    }
  }

  const Factors &a_, &b_;
  const Cut cut_;
};

template <int K>
static void fused_sums_of(const Factors& a, const Factors& b, float* sums, int pitch, const Cut& cut) {
  const Tile tile(a, b, cut);
  for (int row = 0; row < a.lines(); ++row) {
    for (int column = 0; column < b.lines(); column += Tile::kBlock)
      tile.block<K>(row, column, sums + row * pitch + column);
  }
}

void fused_sums(const Factors& a, const Factors& b, float* sums, int pitch, const Cut& cut) {
  switch (a.k()) {
    case 4:
      return fused_sums_of<4>(a, b, sums, pitch, cut);
    case 8:
      return fused_sums_of<8>(a, b, sums, pitch, cut);
    case 16:
      return fused_sums_of<16>(a, b, sums, pitch, cut);
    case 32:
      return fused_sums_of<32>(a, b, sums, pitch, cut);
    default:
      throw std::invalid_argument("no instruction sums " + std::to_string(a.k()) + " products");
  }
}

void mma_sync_sums(const Factors (&a)[2], const Factors (&b)[2], float* sums, int pitch, bool to_half) {
  const Cut cut = {a[0].format().mantissa_bits + b[0].format().mantissa_bits, 25, 24, to_half};
  if (a[0].format().bits != 8) return fused_sums(a[0], b[0], sums, pitch, cut);
  std::vector<float> steps(size_t(a[0].lines()) * size_t(b[0].lines()));
  for (int i = 0; i < 2; ++i) fused_sums(a[i], b[i], steps.data(), b[0].lines(), cut);
  for (int row = 0; row < a[0].lines(); ++row) {
    for (int column = 0; column < b[0].lines(); ++column) {
      float& sum = sums[row * pitch + column];
      sum = add_to_nearest(sum, steps[size_t(row * b[0].lines() + column)]);
      if (to_half) sum = half_to_float(float_to_half(sum));
    }
  }
}

float half_to_float(uint16_t half) {
  const uint32_t sign = uint32_t(half & 0x8000) << 16, magnitude = half & 0x7FFF;
  if (magnitude >= 0x7C00) return std::bit_cast<float>(sign | 0x7F800000 | (magnitude & 0x3FF) << 13);
  const float value = float(magnitude & 0x3FF) * 0x1p-24f;  // of a subnormal
  const uint32_t bits = magnitude < 0x400 ? std::bit_cast<uint32_t>(value) : (magnitude << 13) + (112u << 23);
  return std::bit_cast<float>(sign | bits);
}

uint16_t float_to_half(float value) {
  if (std::isnan(value)) return 0x7FFF;
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::abs(round_to_half(value));
  if (magnitude > kLargestHalf) return sign | 0x7C00;
  if (magnitude < 0x1p-14) return uint16_t(sign | uint16_t(magnitude * 0x1p24));
  const uint32_t bits = std::bit_cast<uint32_t>(float(magnitude));
  return uint16_t(sign | ((bits - (112u << 23)) >> 13));
}

}  // namespace gg::emu
