// SPDX-License-Identifier: MIT
//
// Looking up and adding up what failing elements were made of.

#include "common/harness/verify/evidence.h"

#include <algorithm>

namespace gg {

Evidence::Evidence(const HostCopy& copy, const Setup& setup, const Layout& layout, const Limit& limit,
                   const std::vector<int64_t>& failing)
    : copy_(copy),
      matrices_(copy.matrices(setup.request.formats)),
      a_elems_(int64_t(copy.a.size()) * 8 / format_info(setup.request.formats.a).bits),
      b_elems_(int64_t(copy.b.size()) * 8 / format_info(setup.request.formats.b).bits),
      layout_(layout),
      limit_(limit) {
  constexpr size_t kMostSamples = 64;
  const size_t stride = failing.size() / kMostSamples + 1;
  for (size_t i = 0; i * stride < failing.size(); ++i) {
    const int64_t element = failing[sample_at(i, stride, failing.size())];
    samples_.push_back({element, place_of(layout, element)});
  }
}

uint32_t Evidence::code_before(const Sample& s) const {
  return load_code(copy_.before[size_t(Tensor::d)].bytes.data(), limit_.format, s.element);
}

bool Evidence::most(const std::function<bool(const Sample&)>& predicate) const {
  size_t others = 0;
  for (const Sample& sample : samples_) {
    others += !predicate(sample);
    if (others * 10 > samples_.size()) return false;
  }
  return true;
}

Evidence::Sum Evidence::added(const Sample& s, Sum sum) const {
  const double before = matrices_.before(s.element);
  return {sum.value + before, sum.magnitude + std::fabs(before)};
}

bool Evidence::matches(const Sample& s, const Sum& products) const {
  const Sum sum = added(s, products);
  return !std::isnan(sum.value) && judge(code(s), sum.value, sum.magnitude, limit_).ok;
}

double Evidence::a_at(int64_t element) const {
  if (element < 0 || element >= a_elems_) return NAN;
  const double value = decode(matrices_.formats.a, load_code(matrices_.a, matrices_.formats.a, element));
  if (!matrices_.formats.has_scales()) return value;
  const int64_t inside = element - layout_.a_start, k = layout_.groups[0].k;
  const int64_t row = inside / k;  // of packed A
  if (inside < 0 || row >= layout_.offsets.back()) return NAN;
  ScaleRegion of_a = layout_.groups[0].sfa;
  of_a.first_row = 0;
  return value * scale(matrices_.sfa, of_a.at(row, inside % k / layout_.groups[0].scale_block));
}

double Evidence::b_at(int64_t element) const {
  if (element < 0 || element >= b_elems_) return NAN;
  const double value = decode(matrices_.formats.b, load_code(matrices_.b, matrices_.formats.b, element));
  if (!matrices_.formats.has_scales()) return value;
  const int64_t per_group = int64_t(layout_.groups[0].n) * layout_.groups[0].k;
  const int64_t g = element / per_group;
  if (g >= (layout_.b_group_stride ? int64_t(layout_.groups.size()) : 1)) return NAN;
  const Group& group = layout_.groups[size_t(g)];
  const int64_t row = element % per_group / group.b.ld, col = element % group.b.ld;
  const bool nk = group.b_layout == BLayout::nk;
  return value * scale(matrices_.sfb, group.sfb.at(nk ? row : col, (nk ? col : row) / group.scale_block));
}

Evidence::Sum Evidence::dot(int64_t a_off, int64_t a_step, int64_t b_off, int64_t b_step, int first,
                            int last) const {
  Sum sum;
  for (int kk = first; kk < last; ++kk) {
    const double product = a_at(a_off + kk * a_step) * b_at(b_off + kk * b_step);
    sum.value += product;
    sum.magnitude += std::fabs(product);
  }
  return sum;
}

Failure first_that_explains(const Evidence& evidence, const std::vector<Hypothesis>& hypotheses) {
  for (const Hypothesis& each : hypotheses) {
    if (evidence.most([&](const Evidence::Sample& s) { return evidence.matches(s, each.sum(s)); }))
      return {each.symptom, each.what};
  }
  return {};
}

}  // namespace gg
