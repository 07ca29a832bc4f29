// SPDX-License-Identifier: MIT
//
// Sums that leave the range of f32 on their way. All positive terms may come first, or all negative
// ones: where the terms of one sign alone are too many, a kernel's sum may be infinite though the
// whole sum is a number, and NaN where accumulators of both infinities meet. Which of them comes
// out is the kernel's order, and no mistake.

#pragma once

#include "common/harness/machine/element_check.h"
#include "common/harness/machine/machine.h"

namespace gg {

// From here on a number rounds to infinity in f32.
GG_HD inline double f32_overflow() { return two_to_the(128) - two_to_the(103); }
// May a sum of terms of one sign round to infinity, an fp32 accumulator being off by its most?
GG_HD inline bool may_overflow(double one_sign) {
  return !(one_sign * (1 + two_to_the(-19)) < f32_overflow());
}

// The terms of each sign in the sum at one element of a group's D, an infinite one included.
struct Terms {
  double positive = 0, negative = 0, sum = 0;

  GG_HD double magnitude() const { return positive + negative; }
  GG_HD Overflow overflow() const { return {may_overflow(positive), may_overflow(negative)}; }
};
GG_HD inline Terms terms_of(const Matrices& matrices, const Group& group, int row, int col) {
  const Formats& f = matrices.formats;
  const Format scale = f.scaling().scale;
  Terms terms;
  const auto add = [&terms](double term) {
    terms.sum += term;
    if (term > 0) terms.positive += term;
    if (term < 0) terms.negative -= term;
  };
  add(matrices.before(group.d.offset + row * group.d.ld + col));
  for (int k = 0; k < group.k; ++k) {
    const int64_t a = group.a.offset + row * group.a_m_step() + k * group.a_k_step(),
                  b = group.b.offset + k * group.b_k_step() + col * group.b_n_step();
    double product = double(decode(f.a, load_code(matrices.a, f.a, a))) *
                     double(decode(f.b, load_code(matrices.b, f.b, b)));
    if (f.has_scales()) {
      product *= double(decode(scale, matrices.sfa[group.sfa.at(row, k / group.scale_block)])) *
                 double(decode(scale, matrices.sfb[group.sfb.at(col, k / group.scale_block)]));
    }
    add(product);
  }
  return terms;
}
// The same, quickly where the sum of magnitudes says that nothing overflows.
inline Overflow overflow_at(double magnitude, const Matrices& matrices, const Group& group, int row,
                            int col) {
  return may_overflow(magnitude) ? terms_of(matrices, group, row, col).overflow() : Overflow{};
}

// Is the element of D right?
inline Verdict judge_at(const Matrices& matrices, const Group& group, int row, int col, double reference,
                        double magnitude, const Limit& limit) {
  const uint32_t code = load_code(matrices.d, limit.format, group.d.offset + row * group.d.ld + col);
  if (limit.exact) return judge(code, reference, magnitude, limit);
  return judge(code, reference, magnitude, limit, overflow_at(magnitude, matrices, group, row, col));
}

}  // namespace gg
