// SPDX-License-Identifier: MIT
//
// The values of an f32 that the reference does not know exactly: a set of values, and arithmetic
// that maps each of them. Infinities and NaN are members of their own, for 0 times infinity is NaN
// though its neighbours are infinite, and a sum may leave the range of f32 in some orders only.

#pragma once

#include <limits>

namespace gg {

// Every finite f32 from lo to hi, none where lo > hi; and infinity, -infinity and NaN where the
// flags say so.
struct Range {
  static constexpr float kInfinity = std::numeric_limits<float>::infinity();
  float lo = kInfinity, hi = -kInfinity;
  bool plus = false, minus = false, nan = false;

  Range() = default;
  explicit Range(float value) { add(value); }
  // Neither is NaN, but either may be infinite.
  Range(float least, float most) { add_between(least, most); }

  void add(float value);
  // All from one to the other, in any order; finite ones lie between two different infinities too.
  void add_between(float one, float other);
  void add(const Range& other);

  bool has_numbers() const { return lo <= hi; }
  bool is_infinite() const { return plus || minus; }
  bool is_point() const { return int(has_numbers()) + plus + minus + nan == 1 && !(lo < hi); }
  bool is_nan() const { return nan && !has_numbers() && !is_infinite(); }
  Range numbers() const;  // the same without infinities and NaN
  void remove_numbers() {
    lo = kInfinity;
    hi = -kInfinity;
  }

  // The ends, infinities among them; without NaN. A range that is NaN alone has none.
  float least() const { return minus ? -kInfinity : has_numbers() ? lo : kInfinity; }
  float most() const { return plus ? kInfinity : has_numbers() ? hi : -kInfinity; }
};

float product_of(float a, float b);  // rounded once
float sum_of(float a, float b);

// f is monotone on finite numbers; it maps infinities and NaN as f32 does.
template <class F>
Range map(const Range& x, F f) {
  Range all;
  if (x.has_numbers()) all.add_between(f(x.lo), f(x.hi));
  if (x.plus) all.add(f(Range::kInfinity));
  if (x.minus) all.add(f(-Range::kInfinity));
  if (x.nan) all.add(f(std::numeric_limits<float>::quiet_NaN()));
  return all;
}
Range times(const Range& a, const Range& b);
Range sum(const Range& a, const Range& b);
// a * x + b, both operations rounded or the sum alone.
Range multiplied_and_added(const Range& x, float a, float b);
// a * x + c * d in any contraction.
Range multiplied_and_added(const Range& x, float a, float c, float d);

Range magnitude_of(const Range& x);

// The exponent of the lowest bit that is set in x; a large number for 0.
int lowest_bit(double x);

// A sum of many terms in f32, in any order.
class RangeSum {
 public:
  void add(const Range& x, float factor = 1);  // the exact product of both
  void add(const RangeSum& other);
  // All that the sum may be, times a power of two. Each number is off by up to `error` of the
  // sum of magnitudes.
  Range total(double error, double share = 1) const;
  // Is the sum one number, which every order of f32 sums gives?
  bool is_exact() const;

 private:
  void add_others(const Range& x, float factor);

  double lo_ = 0, hi_ = 0, magnitude_ = 0;
  int lowest_bit_ = 1 << 20;  // of all terms
  bool are_points_ = true;
  bool has_numbers_ = true, is_nan_ = false, nan_ = false;
  bool plus_ = false, minus_ = false;   // a term may be infinite
  bool is_up_ = true, is_down_ = true;  // every term may be a number or this infinity
};

}  // namespace gg
