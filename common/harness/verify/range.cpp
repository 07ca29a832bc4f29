// SPDX-License-Identifier: MIT
//
// Arithmetic on ranges of f32.

#include "common/harness/verify/range.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

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
  if (a.has_numbers() && b.has_numbers()) {
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
    all.add_between(x.lo <= 0 && x.hi >= 0 ? 0.0f : std::min(low, high), std::max(low, high));
  }
  all.plus = x.is_infinite();
  all.nan = x.nan;
  return all;
}

}  // namespace gg
