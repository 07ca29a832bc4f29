// SPDX-License-Identifier: MIT
//
// Arithmetic on ranges of f32.

#include "common/harness/verify/range.h"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>

namespace gg {

// The double holds a product of two floats exactly, and a sum of two closely enough that rounding
// it again gives what one rounding would (53 >= 2 * 24 + 2 bits).
float product_of(float a, float b) { return float(double(a) * double(b)); }
float sum_of(float a, float b) { return float(double(a) + double(b)); }

void Range::add(float value) {
  if (value != value) {
    nan = true;
  } else if (std::isinf(value)) {
    (value > 0 ? plus : minus) = true;
  } else {
    lo = std::min(lo, value);
    hi = std::max(hi, value);
  }
}

void Range::add_between(float one, float other) {
  if (std::isfinite(one) && std::isfinite(other)) {
    lo = std::min(lo, std::min(one, other));
    hi = std::max(hi, std::max(one, other));
    return;
  }
  add(one);
  add(other);
  if (one == other || one != one || other != other) return;
  if (std::isinf(one)) add(std::copysign(FLT_MAX, one));
  if (std::isinf(other)) add(std::copysign(FLT_MAX, other));
}

void Range::add(const Range& other) {
  lo = std::min(lo, other.lo);
  hi = std::max(hi, other.hi);
  plus = plus || other.plus;
  minus = minus || other.minus;
  nan = nan || other.nan;
}

Range Range::numbers() const {
  Range all = *this;
  all.plus = all.minus = all.nan = false;
  return all;
}

namespace {

// Adds the products of the infinities of `a` and of `b`. Zero has no sign here.
void add_infinite_products(const Range& a, const Range& b, Range& all) {
  if (!a.is_infinite()) return;
  const bool up = b.plus || b.hi > 0, down = b.minus || b.lo < 0;
  all.plus = all.plus || (a.plus && up) || (a.minus && down);
  all.minus = all.minus || (a.plus && down) || (a.minus && up);
  all.nan = all.nan || (b.lo <= 0 && b.hi >= 0);
}

bool is_empty(const Range& x) { return !x.has_numbers() && !x.is_infinite() && !x.nan; }

}  // namespace

Range times(const Range& a, const Range& b) {
  Range all;
  if (a.lo == a.hi && b.lo == b.hi) {
    const float product = product_of(a.lo, b.lo);
    all.add_between(product, product);
  } else if (a.has_numbers() && b.has_numbers()) {
    const auto [least, most] = std::minmax(
        {product_of(a.lo, b.lo), product_of(a.lo, b.hi), product_of(a.hi, b.lo), product_of(a.hi, b.hi)});
    all.add_between(least, most);
  }
  const bool are_numbers = !a.is_infinite() && !a.nan && !b.is_infinite() && !b.nan;
  if (are_numbers) return all;
  add_infinite_products(a, b, all);
  add_infinite_products(b, a, all);
  all.nan = all.nan || (a.nan && !is_empty(b)) || (b.nan && !is_empty(a));
  return all;
}

Range sum(const Range& a, const Range& b) {
  Range all;
  if (a.has_numbers() && b.has_numbers()) all.add_between(sum_of(a.lo, b.lo), sum_of(a.hi, b.hi));
  all.plus = all.plus || (a.plus && (b.plus || b.has_numbers())) || (b.plus && a.has_numbers());
  all.minus = all.minus || (a.minus && (b.minus || b.has_numbers())) || (b.minus && a.has_numbers());
  all.nan = (a.plus && b.minus) || (a.minus && b.plus) || (a.nan && !is_empty(b)) || (b.nan && !is_empty(a));
  return all;
}

Range multiplied_and_added(const Range& x, float a, float b) {
  const Range in_two = sum(times(x, Range(a)), Range(b));
  if (!std::isfinite(a) || !std::isfinite(b)) return in_two;
  Range all = map(x, [a, b](float value) { return std::fma(a, value, b); });
  all.add(in_two);
  return all;
}

Range multiplied_and_added(const Range& x, float a, float c, float d) {
  Range all = multiplied_and_added(x, a, product_of(c, d));
  if (std::isfinite(c) && std::isfinite(d))
    all.add(map(times(x, Range(a)), [c, d](float value) { return std::fma(c, d, value); }));
  return all;
}

Range magnitude_of(const Range& x) {
  Range all;
  if (x.has_numbers()) {
    const float low = std::fabs(x.lo), high = std::fabs(x.hi);
    all.lo = x.lo <= 0 && x.hi >= 0 ? 0 : std::min(low, high);
    all.hi = std::max(low, high);
  }
  all.plus = x.is_infinite();
  all.nan = x.nan;
  return all;
}

int lowest_bit(double x) {
  if (x == 0) return 1 << 20;
  if (!std::isfinite(x)) return -(1 << 20);
  const auto bits = std::bit_cast<uint64_t>(x);
  const uint64_t fraction = bits & ((uint64_t(1) << 52) - 1);
  const int exponent = int(bits >> 52 & 0x7FF);  // in steps of 2^-1074; 0: subnormal
  if (exponent == 0) return std::countr_zero(fraction) - 1074;
  return std::countr_zero(fraction | uint64_t(1) << 52) + exponent - 1075;
}

void RangeSum::add(const Range& x, float factor) {
  const bool is_number = x.has_numbers() && !x.is_infinite() && !x.nan && std::isfinite(factor);
  if (!is_number) add_others(x, factor);
  if (!x.has_numbers()) return;
  const double ends[2] = {double(x.lo) * double(factor), double(x.hi) * double(factor)};
  lo_ += std::min(ends[0], ends[1]);
  hi_ += std::max(ends[0], ends[1]);
  magnitude_ += std::max(std::fabs(ends[0]), std::fabs(ends[1]));
  are_points_ = are_points_ && is_number && ends[0] == ends[1];
  if (are_points_) lowest_bit_ = std::min(lowest_bit_, lowest_bit(ends[0]));
}

// The infinities and NaN of a product.
void RangeSum::add_others(const Range& x, float factor) {
  const bool may_be_number = x.has_numbers() && std::isfinite(factor);
  Range others = x;
  if (std::isfinite(factor)) others.remove_numbers();
  others = times(others, Range(factor));
  has_numbers_ = has_numbers_ && may_be_number;
  are_points_ = false;
  is_nan_ = is_nan_ || others.is_nan();
  nan_ = nan_ || others.nan || (plus_ && others.minus) || (minus_ && others.plus);
  is_up_ = is_up_ && (others.plus || may_be_number);
  is_down_ = is_down_ && (others.minus || may_be_number);
  plus_ = plus_ || others.plus;
  minus_ = minus_ || others.minus;
}

void RangeSum::add(const RangeSum& other) {
  lo_ += other.lo_;
  hi_ += other.hi_;
  magnitude_ += other.magnitude_;
  lowest_bit_ = std::min(lowest_bit_, other.lowest_bit_);
  are_points_ = are_points_ && other.are_points_;
  has_numbers_ = has_numbers_ && other.has_numbers_;
  is_nan_ = is_nan_ || other.is_nan_;
  nan_ = nan_ || other.nan_ || (plus_ && other.minus_) || (minus_ && other.plus_);
  is_up_ = is_up_ && other.is_up_;
  is_down_ = is_down_ && other.is_down_;
  plus_ = plus_ || other.plus_;
  minus_ = minus_ || other.minus_;
}

bool RangeSum::is_exact() const {
  return are_points_ && lowest_bit_ >= -126 &&
         (magnitude_ == 0 || magnitude_ < std::ldexp(1.0, std::min(24 + lowest_bit_, 128)));
}

Range RangeSum::total(double error, double share) const {
  const double off = magnitude_ * error;
  Range all;
  if (has_numbers_) all.add_between(float((lo_ - off) * share), float((hi_ + off) * share));
  if (plus_ && is_up_) all.add(Range::kInfinity);
  if (minus_ && is_down_) all.add(-Range::kInfinity);
  if (nan_) all.nan = true;
  if (!is_nan_) return all;
  return Range(std::numeric_limits<float>::quiet_NaN());
}

}  // namespace gg
