// SPDX-License-Identifier: MIT
//
// The formulas of epilogue_reference.h on ranges of f32, right and with each known mistake.

#include "common/verify/epilogue_reference.h"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>

namespace gg {
namespace {

constexpr float kClamp = 7;
constexpr float kFactor = 1.702f;

// One rounding: the double holds a product of two floats exactly, and a sum of two closely enough that
// rounding it again gives what one rounding would (53 >= 2 * 24 + 2 bits).
float product(float a, float b) { return float(double(a) * double(b)); }
float sum(float a, float b) { return float(double(a) + double(b)); }

Range unknown() { return {0, 0, true}; }

Range hull(std::initializer_list<float> values, bool points) {
  Range range{*values.begin(), *values.begin()};
  int nans = 0;
  for (const float value : values) {
    nans += value != value;
    range.lo = std::min(range.lo, value);
    range.hi = std::max(range.hi, value);
  }
  if (nans == 0) return range;
  return points && nans == int(values.size()) ? Range{NAN, NAN} : unknown();
}

// f is monotone in its argument.
template <class F>
Range map(const Range& a, F f) {
  if (a.any) return unknown();
  return hull({f(a.lo), f(a.hi)}, a.is_point());
}
template <class F>
Range map(const Range& a, const Range& b, F f) {
  if (a.any || b.any) return unknown();
  return hull({f(a.lo, b.lo), f(a.lo, b.hi), f(a.hi, b.lo), f(a.hi, b.hi)}, a.is_point() && b.is_point());
}
Range times(const Range& a, float b) {
  return map(a, [b](float x) { return product(x, b); });
}
Range times(const Range& a, const Range& b) { return map(a, b, product); }

// Returns the range that any contraction of a * x + b may give.
Range multiplied_and_added(const Range& x, float a, float b) {
  if (x.any) return unknown();
  return hull(
      {std::fma(a, x.lo, b), std::fma(a, x.hi, b), sum(product(a, x.lo), b), sum(product(a, x.hi), b)},
      x.is_point());
}
// The same where b = c * d is a product too.
Range multiplied_and_added(const Range& x, float a, float c, float d) {
  const Range rounded = multiplied_and_added(x, a, product(c, d));
  if (rounded.any) return unknown();
  const Range other = map(times(x, a), [&](float value) { return std::fma(c, d, value); });
  return hull({rounded.lo, rounded.hi, other.lo, other.hi}, rounded.is_nan() && other.is_nan());
}

Range clamped(const Range& x, float least, float most) {  // NaN stays
  return map(x, [&](float value) { return value < least ? least : value > most ? most : value; });
}
Range rounded(const Range& x, Format format) {
  return map(x, [&](float value) { return decode(format, encode(format, double(value))); });
}

// f32 -> UE8M0 by its bits: exponent, one more where a fraction is left, at most 254.
uint32_t rounded_up(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x) & 0x7FFFFFFF;
  const uint32_t exponent = bits >> 23, fraction = bits & 0x7FFFFF;
  if (exponent == 255) return fraction ? 255 : 254;
  if (exponent == 0) return bits <= 0x00400000 ? 0 : 1;
  return std::min(exponent + (fraction != 0), 254u);
}

// rcp.approx.ftz of a power of two.
float reciprocal_of_power(float x) {
  if (std::fabs(x) < FLT_MIN) return INFINITY;
  const float result = 1 / x;
  return std::fabs(result) < FLT_MIN ? 0 : result;
}

}  // namespace

int lowest_bit(double x) {
  if (x == 0) return 1 << 20;
  if (!std::isfinite(x)) return -(1 << 20);
  int exponent = 0;
  const auto significand = int64_t(std::ldexp(std::frexp(std::fabs(x), &exponent), 53));
  return exponent - 53 + std::countr_zero(uint64_t(significand));
}

Range product_range(double value, double magnitude, int least_bit) {
  if (std::isnan(value)) return {NAN, NAN};
  if (std::isinf(magnitude)) return {float(value), float(value)};
  const bool exact =
      least_bit >= -126 && (magnitude == 0 || magnitude < std::ldexp(1.0, std::min(24 + least_bit, 128)));
  if (exact) return {float(value), float(value)};
  const double error = magnitude * 0x1p-19 + 0x1p-126;
  return {float(value - error), float(value + error)};
}

float EpilogueReference::alpha(int group) const {
  const int groups = int(operands_.alpha.size());
  if (mistake_ == Mistake::no_alpha) return 1;
  if (mistake_ == Mistake::alpha_before) group = (group + groups - 1) % groups;
  if (mistake_ == Mistake::alpha_after) group = (group + 1) % groups;
  return operands_.alpha[size_t(group)];
}

float EpilogueReference::prob(int group, int64_t row) const {
  const int64_t last = int64_t(operands_.prob.size()) - 1;
  if (mistake_ == Mistake::no_prob) return 1;
  if (mistake_ == Mistake::prob_above) row = std::max<int64_t>(row - 1, 0);
  if (mistake_ == Mistake::prob_below) row = std::min(row + 1, last);
  if (mistake_ == Mistake::prob_of_group_row) row -= layout_.offsets[size_t(group)];
  return operands_.prob[size_t(row)];
}

float EpilogueReference::bias(int group, int col) const {
  const int groups = int(layout_.groups.size()), n = layout_.groups[0].n;
  if (mistake_ == Mistake::no_bias) return 0;
  if (mistake_ == Mistake::bias_before) group = (group + groups - 1) % groups;
  if (mistake_ == Mistake::bias_after) group = (group + 1) % groups;
  if (mistake_ == Mistake::bias_of_first) group = 0;
  if (mistake_ == Mistake::bias_left) col = std::max(col - 1, 0);
  if (mistake_ == Mistake::bias_right) col = std::min(col + 1, n - 1);
  return decode(e_.bias_format, load_code(operands_.bias.data(), e_.bias_format, int64_t(group) * n + col));
}

Range EpilogueReference::value(const Range& acc, int group, int64_t row, int col) const {
  const float a = alpha(group);
  if (e_.op != Operator::quant)
    return e_.bias ? multiplied_and_added(acc, a, bias(group, col)) : times(acc, a);
  const float p = prob(group, row);
  if (mistake_ == Mistake::factors_first && !e_.bias) return times(acc, product(a, p));
  if (!e_.bias) return times(times(acc, a), p);
  const float b = bias(group, col);
  if (mistake_ == Mistake::prob_on_sum) return times(multiplied_and_added(acc, a, b), p);
  if (mistake_ == Mistake::prob_on_product) return multiplied_and_added(times(acc, a), p, b);
  return multiplied_and_added(acc, a, p, b);
}

Range EpilogueReference::stored_c(const Range& c, bool is_gate, int group, int64_t row) const {
  if (mistake_ == Mistake::c_clamped) return clamped(c, is_gate ? -INFINITY : -kClamp, kClamp);
  if (mistake_ == Mistake::c_gated) return times(c, prob(group, row));
  return c;
}

int EpilogueReference::gate_column(int col, int n) const {
  if (mistake_ == Mistake::gate_and_up) return 64 * (col / 32) + col % 32 + 32;
  if (mistake_ == Mistake::pairs_of_neighbours) return 2 * col;
  if (mistake_ == Mistake::pairs_of_halves) return col;
  return std::min(64 * (col / 32) + col % 32, n - 1);
}
int EpilogueReference::up_column(int col, int n) const {
  if (mistake_ == Mistake::gate_and_up) return 64 * (col / 32) + col % 32;
  if (mistake_ == Mistake::pairs_of_neighbours) return 2 * col + 1;
  if (mistake_ == Mistake::pairs_of_halves) return col + n / 2;
  return std::min(64 * (col / 32) + col % 32 + 32, n - 1);
}

// 1 / (1 + e^-t), as far off as approximate exp2 and reciprocal may be.
Range EpilogueReference::sigma(const Range& t) const {
  if (t.any) return unknown();
  if (t.is_nan()) return {NAN, NAN};
  const auto end = [](float at, double sign) {
    if (at >= 20) return 1.0f;
    if (at < -89) return 0.0f;
    const double s = 1 / (1 + std::exp(-double(at)));
    const double error = (1 - s) * (std::fabs(double(at)) * 0x1p-22 + 0x1p-21) + 0x1p-21;
    const double moved = s * (1 + sign * error);
    return moved < double(FLT_MIN) && sign < 0 ? 0.0f : float(moved);  // flushed
  };
  return {end(t.lo, -1), end(t.hi, 1)};
}

Range EpilogueReference::activated(const Range& gate_c, const Range& up_c, int group, int64_t row) const {
  Range gate = gate_c, up = up_c;
  if (mistake_ == Mistake::from_rounded_c) {
    gate = rounded(gate, formats_.c);
    up = rounded(up, formats_.c);
  }
  const bool other = mistake_ == Mistake::other_activation;
  const bool geglu = (e_.activation == Activation::geglu) != other;
  Range t = gate;
  if (geglu) {
    if (mistake_ != Mistake::no_clamps) {
      gate = clamped(gate, mistake_ == Mistake::gate_clamped_below ? -kClamp : -INFINITY, kClamp);
      up = clamped(up, -kClamp, kClamp);
    }
    t = mistake_ == Mistake::no_factor ? gate : times(gate, kFactor);
    if (mistake_ != Mistake::no_plus_one) up = map(up, [](float x) { return sum(x, 1); });
  }
  return times(times(times(gate, sigma(t)), up), prob(group, row));
}

void EpilogueReference::transformed(const Range* x, Range* y) const {
  constexpr int kSide = 16;
  Range rounded_x[kSide];
  const Format to = mistake_ == Mistake::x_as_d ? formats_.d : Format::bf16;
  for (int i = 0; i < kSide; ++i)
    rounded_x[i] = mistake_ == Mistake::x_not_rounded ? x[i] : rounded(x[i], to);
  for (int j = 0; j < kSide; ++j) {
    double lo = 0, hi = 0, magnitude = 0;
    bool any = false, points = true;
    for (int i = 0; i < kSide; ++i) {
      const int at = mistake_ == Mistake::transposed ? i * kSide + j : j * kSide + i;
      const double w = decode(Format::bf16, operands_.hadamard[size_t(at)]);
      const Range& value = rounded_x[i];
      any = any || value.any;
      points = points && value.is_point();
      const double ends[2] = {value.lo * w, value.hi * w};
      lo += std::min(ends[0], ends[1]);
      hi += std::max(ends[0], ends[1]);
      magnitude += std::max(std::fabs(ends[0]), std::fabs(ends[1]));
    }
    const double share = mistake_ == Mistake::quarter ? 0.25 : 1;
    // A tensor core cuts 16 products 25 bits below the largest, and the sum to f32.
    const double error = std::isinf(magnitude) ? 0 : magnitude * 0x1p-20;
    const Range sum_of_ends{float((lo - error) * share), float((hi + error) * share)};
    const bool is_nan = std::isnan(lo) || std::isnan(hi);
    y[j] = any || (is_nan && !points) ? unknown() : is_nan ? Range{NAN, NAN} : sum_of_ends;
  }
}

Range EpilogueReference::largest(const Range* values, int64_t step, int count) const {
  Range all{0, 0};
  bool is_nan = false;
  for (int i = 0; i < count; ++i) {
    Range v = values[i * step];
    if (mistake_ == Mistake::scale_from_d) v = rounded(v, formats_.d);
    if (v.any) return unknown();
    is_nan = is_nan || v.is_nan();
    const float low = std::fabs(v.lo), high = std::fabs(v.hi);
    all.lo = std::max(all.lo, v.lo <= 0 && v.hi >= 0 ? 0.0f : std::min(low, high));
    all.hi = std::max(all.hi, std::max(low, high));
  }
  return is_nan ? Range{NAN, NAN} : all;
}

float EpilogueReference::reciprocal() const {
  if (formats_.d == Format::e4m3) return 1.0f / 448;
  return mistake_ == Mistake::rcp_of_largest ? 1.0f / 57344 : 1.0f / 128;
}

float EpilogueReference::norm() const { return mistake_ == Mistake::no_norm ? 1 : e_.norm_const; }

float EpilogueReference::raw(float largest) const {
  if (mistake_ == Mistake::norm_last) return product(product(largest, norm()), reciprocal());
  return product(product(largest, reciprocal()), norm());
}

void EpilogueReference::codes(const Range& largest, uint32_t& least, uint32_t& most) const {
  constexpr double kFourUlp = 0x1p-21;
  const auto code_of = [&](double value) -> uint32_t {
    const auto x = float(value);
    if (mistake_ == Mistake::scale_down && std::isfinite(x))
      return encode(Format::ue8m0, double(x), Rounding::toward_zero);
    if (mistake_ == Mistake::scale_nearest && std::isfinite(x))
      return std::min((std::bit_cast<uint32_t>(x) + 0x400000) >> 23, 254u);
    return rounded_up(x);
  };
  if (largest.any) {
    least = 0;
    most = 255;
  } else if (largest.is_point()) {
    least = most = code_of(double(raw(largest.lo)));
  } else {
    least = code_of(double(raw(largest.lo)) * (1 - kFourUlp));
    most = code_of(double(raw(largest.hi)) * (1 + kFourUlp));
  }
}

Range EpilogueReference::scaled(const Range& v, uint32_t code, const Range& largest) const {
  constexpr double kNearTie = 0x1p-18;
  float q = product(norm(), reciprocal_of_power(decode(Format::ue8m0, code)));
  if (mistake_ == Mistake::unrounded_scale) q = norm() / raw(largest.hi);
  if (q > FLT_MAX && mistake_ != Mistake::no_cap) q = FLT_MAX;
  const Range scaled = times(v, q);
  if (scaled.any || v.is_point()) return scaled;
  const auto moved = [&](float x, double sign) {
    return float(double(x) + sign * std::fabs(double(x)) * kNearTie);
  };
  return {moved(scaled.lo, -1), moved(scaled.hi, 1)};
}

bool fits(uint32_t code, Format format, const Range& value) {
  if (value.any) return true;
  const FormatInfo f = format_info(format);
  if (value.is_nan()) return f.bits == 8 ? code == nan_code(f) : is_nan(format, code);
  if (is_nan(format, code)) return false;
  const float got = decode(format, code);
  if (got == 0) {
    const bool negative = std::signbit(got);
    const bool rounds_to_zero = decode(format, encode(format, double(value.lo))) <= 0 &&
                                decode(format, encode(format, double(value.hi))) >= 0;
    return rounds_to_zero && (negative ? value.lo <= 0 : value.hi >= 0);
  }
  return decode(format, encode(format, double(value.lo))) <= got &&
         got <= decode(format, encode(format, double(value.hi)));
}

}  // namespace gg
