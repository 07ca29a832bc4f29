// SPDX-License-Identifier: MIT
//
// Evidence on which hypotheses are tried: failing elements of D, and all that they were made of,
// in host memory.

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/harness/verify/failure.h"
#include "common/harness/verify/host_copy.h"

namespace gg {

class Evidence {
 public:
  struct Sample {
    int64_t element;  // of D
    Place place;
  };
  struct Sum {  // of products a*b, and of |a*b|
    double value = 0, magnitude = 0;
  };

  // At most 64 of the failing elements, spread over all of them.
  Evidence(const HostCopy& copy, const Setup& setup, const Layout& layout, const Limit& limit,
           const std::vector<int64_t>& failing);

  const std::vector<Sample>& samples() const { return samples_; }
  const Layout& layout() const { return layout_; }
  const Limit& limit() const { return limit_; }
  const Matrices& matrices() const { return matrices_; }
  const HostCopy& copy() const { return copy_; }
  const Group& group(const Sample& s) const { return layout_.groups[size_t(s.place.group)]; }
  uint32_t code(const Sample& s) const { return load_code(matrices_.d, limit_.format, s.element); }
  uint32_t code_before(const Sample& s) const;  // what the buffer held before the launch
  // The sum with what the launch adds it to.
  Sum added(const Sample& s, Sum sum) const;

  // Does this hold for nine of ten samples?
  bool most(const std::function<bool(const Sample&)>& predicate) const;
  // Would this sum of products, rounded, have given what is there? NaN gives nothing.
  bool matches(const Sample& s, const Sum& sum) const;

  // The element at a place in memory, with the scale that belongs to it; NaN where there is none.
  double a_at(int64_t element) const;
  double b_at(int64_t element) const;
  // sum over k in [first, last) of A[a_off + k * a_step] * B[b_off + k * b_step]
  Sum dot(int64_t a_off, int64_t a_step, int64_t b_off, int64_t b_step, int first, int last) const;
  // Where row `row` of a group's A starts, and column `col` of its B.
  static int64_t a_row(const Group& group, int64_t row) { return group.a.offset + row * group.a_m_step(); }
  static int64_t b_column(const Group& group, int col) { return group.b.offset + col * group.b_n_step(); }
  // Row `row` of the group's A (may lie outside the group) times column `col` of a group's B.
  Sum product(const Group& a, int64_t row, const Group& b, int col) const {
    return dot(a_row(a, row), a.a_k_step(), b_column(b, col), b.b_k_step(), 0, a.k);
  }

 private:
  double scale(const uint8_t* scales, int64_t at) const {
    return decode(matrices_.formats.scaling().scale, scales[at]);
  }

  const HostCopy& copy_;
  Matrices matrices_;
  int64_t a_elems_, b_elems_;
  const Layout& layout_;
  Limit limit_;
  std::vector<Sample> samples_;
};

// A known mistake: the sum that it would have put at an element. NaN: it would have left
// the element right.
struct Hypothesis {
  Symptom symptom;
  std::string what;
  std::function<Evidence::Sum(const Evidence::Sample&)> sum;
};
// The first that gives what is there in nine of ten samples; symptom unknown if none does.
Failure first_that_explains(const Evidence& evidence, const std::vector<Hypothesis>& hypotheses);

// scale_mistakes.cpp: scales taken from the wrong place, elements of a byte exchanged; symptom
// unknown if no such mistake explains the samples. `last`: what looks like a missing slice of K
// too, where there are few columns, is tried as well.
Failure explain_scales(const Evidence& evidence, bool last);

// tile_mistakes.cpp: rows of a group under those of one before it; chunks without their swizzle; a
// slice of K from another stage, or other columns or rows. Symptom unknown if no such mistake
// explains the samples.
Failure explain_overrun(const Evidence& evidence);
Failure explain_swizzle(const Evidence& evidence);
Failure explain_tiles(const Evidence& evidence);

// gradient_mistakes.cpp: a sum over other rows than the group's, or without what D held.
Failure explain_gradient(const Evidence& evidence);

}  // namespace gg
