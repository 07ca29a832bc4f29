// SPDX-License-Identifier: MIT
//
// The formulas of epilogue_reference.h on ranges of f32, right and with each known mistake.

#include "common/harness/verify/epilogue_reference.h"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>

namespace gg {
namespace {

constexpr float kClamp = 7;
constexpr float kFactor = 1.702f;

Range clamped(const Range& x, float least, float most) {  // NaN stays
  return map(x, [&](float value) { return value < least ? least : value > most ? most : value; });
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

constexpr int kSide = 16;  // of the matrix of the transform

}  // namespace

Range rounded(const Range& x, Format format) {
  return map(x, [&](float value) { return decode(format, encode(format, double(value))); });
}

Range product_range(double value, double magnitude, int least_bit, Overflow overflow) {
  if (std::isnan(value)) return Range(NAN);
  const bool exact =
      least_bit >= -126 && (magnitude == 0 || magnitude < std::ldexp(1.0, std::min(24 + least_bit, 128)));
  const double error = exact || std::isinf(value) ? 0 : magnitude * 0x1p-19 + 0x1p-126;
  Range all(float(value - error), float(value + error));
  if (overflow.up && value != -INFINITY) all.add(INFINITY);
  if (overflow.down && value != INFINITY) all.add(-INFINITY);
  if (overflow.up && overflow.down) all.add(NAN);
  return all;
}

bool Codes::has(uint32_t code) const {
  return (least <= code && code <= most) || (infinite && code == 254) || (nan && code == 255);
}
uint32_t Codes::any() const { return least <= most ? least : infinite ? 254 : 255; }

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
    return e_.bias ? multiplied_and_added(acc, a, bias(group, col)) : times(acc, Range(a));
  const float p = prob(group, row);
  if (mistake_ == Mistake::factors_first && !e_.bias) return times(acc, Range(product_of(a, p)));
  if (!e_.bias) return times(times(acc, Range(a)), Range(p));
  const float b = bias(group, col);
  if (mistake_ == Mistake::prob_on_sum) return times(multiplied_and_added(acc, a, b), Range(p));
  if (mistake_ == Mistake::prob_on_product) return multiplied_and_added(times(acc, Range(a)), p, b);
  return multiplied_and_added(acc, a, p, b);
}

Range EpilogueReference::stored_c(const Range& c, bool is_gate, int group, int64_t row) const {
  if (mistake_ == Mistake::c_clamped) return clamped(c, is_gate ? -INFINITY : -kClamp, kClamp);
  if (mistake_ == Mistake::c_gated) return times(c, Range(prob(group, row)));
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
  const auto end = [](float at, double sign) {
    if (at >= 20) return 1.0f;
    if (at < -89) return 0.0f;
    const double s = 1 / (1 + std::exp(-double(at)));
    const double error = (1 - s) * (std::fabs(double(at)) * 0x1p-22 + 0x1p-21) + 0x1p-21;
    const double moved = s * (1 + sign * error);
    return moved < double(FLT_MIN) && sign < 0 ? 0.0f : float(moved);  // flushed
  };
  Range all;
  if (t.has_numbers() || t.is_infinite()) all.add_between(end(t.least(), -1), end(t.most(), 1));
  all.nan = t.nan;
  return all;
}

Range EpilogueReference::activated(const Range& gate_c, const Range& up_c, int group, int64_t row) const {
  Range gate = gate_c, up = up_c;
  if (mistake_ == Mistake::from_rounded_c) {
    gate = rounded(gate, formats_.c);
    up = rounded(up, formats_.c);
  }
  const bool other = mistake_ == Mistake::other_activation;
  const bool geglu = (e_.activation == Activation::geglu) != other;
  bool has_factor = false;
  if (geglu) {
    if (mistake_ != Mistake::no_clamps) {
      gate = clamped(gate, mistake_ == Mistake::gate_clamped_below ? -kClamp : -INFINITY, kClamp);
      up = clamped(up, -kClamp, kClamp);
    }
    has_factor = mistake_ != Mistake::no_factor;
    if (mistake_ != Mistake::no_plus_one) up = sum(up, Range(1));
  }
  return times(times(gated(gate, has_factor ? kFactor : 1), up), Range(prob(group, row)));
}

// gate * sigma(factor * gate). Infinity times 1 is infinite, and -infinity times 0 is NaN.
Range EpilogueReference::gated(const Range& gate, float factor) const {
  const Range numbers = gate.numbers();
  Range all = times(numbers, sigma(times(numbers, Range(factor))));
  if (gate.plus) all.add(INFINITY);
  all.nan = all.nan || gate.minus || gate.nan;
  return all;
}

EpilogueReference::Gradient EpilogueReference::gradient(const Range& product, const Range& gate_c,
                                                        const Range& up_c, int group, int64_t row) const {
  const bool other = mistake_ == Mistake::other_activation;
  const bool geglu = (e_.activation == Activation::geglu) != other;
  const Range y = times(product, Range(alpha(group))), p(prob(group, row)), h = times(y, p);
  Range gate = gate_c, up = up_c;
  float factor = 1;
  bool gate_clamped = false, up_clamped = false;
  if (geglu && mistake_ != Mistake::no_clamps) {
    gate_clamped = !gate.nan && gate.least() > kClamp;
    up_clamped = !up.nan && (up.least() > kClamp || up.most() < -kClamp);
    gate = clamped(gate, mistake_ == Mistake::gate_clamped_below ? -kClamp : -INFINITY, kClamp);
    up = clamped(up, -kClamp, kClamp);
  }
  if (geglu && mistake_ != Mistake::no_factor) factor = kFactor;
  if (geglu && mistake_ != Mistake::no_plus_one) up = sum(up, Range(1));
  const Range s = sigma(times(gate, Range(factor))), a = gated(gate, factor);
  Range slope = s;
  if (mistake_ != Mistake::no_slope) {
    const Range of_s = sum(Range(1), times(s, Range(-1)));
    slope = sum(s, times(times(Range(factor), a), of_s));
  }
  if (mistake_ == Mistake::clamps_passed) gate_clamped = up_clamped = false;
  Gradient all;
  all.gate = gate_clamped ? Range(0) : times(times(h, up), slope);
  all.up = up_clamped ? Range(0) : times(h, a);
  all.prob = times(mistake_ == Mistake::prob_in_dprob ? h : y, times(a, up));
  return all;
}

Range EpilogueReference::saved_c(int group, int64_t row, int col, int columns) const {
  if (mistake_ == Mistake::c_of_group_row) row -= layout_.offsets[size_t(group)];
  return Range(decode(formats_.c, operands_.saved_c[size_t(row * columns + col)]));
}

void EpilogueReference::transformed(const Range* x, Range* y) const {
  Range rounded_x[kSide];
  const Format to = mistake_ == Mistake::x_as_d ? formats_.d : Format::bf16;
  for (int i = 0; i < kSide; ++i)
    rounded_x[i] = mistake_ == Mistake::x_not_rounded ? x[i] : rounded(x[i], to);
  for (int j = 0; j < kSide; ++j) {
    RangeSum sum;  // all at once, cut 25 bits below the largest, and to f32
    for (int i = 0; i < kSide; ++i) {
      const int at = mistake_ == Mistake::transposed ? i * kSide + j : j * kSide + i;
      sum.add(rounded_x[i], decode(Format::bf16, operands_.hadamard[size_t(at)]));
    }
    y[j] = sum.total(0x1p-20, mistake_ == Mistake::quarter ? 0.25 : 1);
  }
  if (e_.butterfly) add_overflows(rounded_x, y);
}

// The rounds of hadamard_butterfly, each sum rounded.
void EpilogueReference::add_overflows(const Range* x, Range* y) const {
  double largest = 0;
  for (int i = 0; i < kSide; ++i) largest += double(std::max(-x[i].least(), x[i].most()));
  if (largest < double(FLT_MAX)) return;
  Range sums[kSide];
  std::copy(x, x + kSide, sums);
  for (int step = 1; step < kSide; step *= 2) {
    for (int i = 0; i < kSide; ++i) {
      if (i & step) continue;
      const Range a = sums[i], b = sums[i + step];
      sums[i] = sum(a, b);
      sums[i + step] = sum(a, times(b, Range(-1)));
    }
  }
  for (int j = 0; j < kSide; ++j) {
    y[j].plus = y[j].plus || sums[j].plus;
    y[j].minus = y[j].minus || sums[j].minus;
    y[j].nan = y[j].nan || sums[j].nan;
  }
}

Range EpilogueReference::largest(const Range* values, int64_t step, int count) const {
  Range all(0), found;
  bool has_numbers = true, is_nan = false;
  for (int i = 0; i < count; ++i) {
    Range v = magnitude_of(values[i * step]);
    if (mistake_ == Mistake::scale_from_d) v = rounded(v, formats_.d);
    has_numbers = has_numbers && v.has_numbers();
    is_nan = is_nan || v.is_nan();
    all.lo = std::max(all.lo, v.lo);
    all.hi = std::max(all.hi, v.hi);
    found.plus = found.plus || v.plus;
    found.nan = found.nan || v.nan;
  }
  if (is_nan) return Range(NAN);
  if (has_numbers) found.add_between(all.lo, all.hi);
  return found;
}

float EpilogueReference::reciprocal() const {
  if (formats_.d == Format::e4m3) return 1.0f / 448;
  return mistake_ == Mistake::rcp_of_largest ? 1.0f / 57344 : 1.0f / 128;
}

float EpilogueReference::norm() const { return mistake_ == Mistake::no_norm ? 1 : e_.norm_const; }

float EpilogueReference::raw(float largest) const {
  if (mistake_ == Mistake::norm_last) return product_of(product_of(largest, norm()), reciprocal());
  return product_of(product_of(largest, reciprocal()), norm());
}

Codes EpilogueReference::codes(const Range& largest) const {
  constexpr double kFourUlp = 0x1p-21;
  const auto code_of = [&](double value) -> uint32_t {
    const auto x = float(value);
    if (mistake_ == Mistake::scale_down && std::isfinite(x))
      return encode(Format::ue8m0, double(x), Rounding::toward_zero);
    if (mistake_ == Mistake::scale_nearest && std::isfinite(x))
      return std::min((std::bit_cast<uint32_t>(x) + 0x400000) >> 23, 254u);
    return rounded_up(x);
  };
  const double off = largest.is_point() ? 0 : kFourUlp;
  Codes codes;
  if (largest.has_numbers()) {
    codes.least = code_of(double(raw(largest.lo)) * (1 - off));
    codes.most = code_of(double(raw(largest.hi)) * (1 + off));
  }
  codes.infinite = largest.plus;
  codes.nan = largest.nan;
  return codes;
}

float EpilogueReference::factor(uint32_t code, const Range& largest) const {
  float q = product_of(norm(), reciprocal_of_power(decode(Format::ue8m0, code)));
  if (mistake_ == Mistake::unrounded_scale) q = norm() / raw(largest.most());
  return q > FLT_MAX && mistake_ != Mistake::no_cap ? FLT_MAX : q;
}

Range EpilogueReference::scaled(const Range& v, uint32_t code, float factor) const {
  constexpr double kNearTie = 0x1p-18;
  if (v.lo == v.hi && v.is_point()) return Range(product_of(v.lo, factor));  // as below, sooner
  // The scale of a block that has an infinity is 254, and that of one with NaN 255.
  const Range scaled = times(code < 254 && v.has_numbers() ? v.numbers() : v, Range(factor));
  if (v.is_point() || !scaled.has_numbers()) return scaled;
  const auto moved = [&](float x, double sign) {
    return float(double(x) + sign * std::fabs(double(x)) * kNearTie);
  };
  Range near = scaled;
  near.add_between(moved(scaled.lo, -1), moved(scaled.hi, 1));
  return near;
}

bool fits(uint32_t code, Format format, const Range& value) {
  const FormatInfo f = format_info(format);
  if (is_nan(format, code)) return value.nan && (f.bits != 8 || code == nan_code(f));
  if (value.plus && code == encode(format, INFINITY)) return true;
  if (value.minus && code == encode(format, -INFINITY)) return true;
  if (!value.has_numbers()) return false;
  const float got = decode(format, code);
  const float least = decode(format, encode(format, double(value.lo))),
              most = decode(format, encode(format, double(value.hi)));
  if (got != 0) return least <= got && got <= most;
  return least <= 0 && most >= 0 && (std::signbit(got) ? value.lo <= 0 : value.hi >= 0);
}

}  // namespace gg
