// SPDX-License-Identifier: MIT
//
// Diagnosis of wrong weight gradients: the sum runs over rows of A and B, so what goes wrong there
// are its ends, whose rows it takes, and what it is added to.

#include <algorithm>

#include "common/harness/verify/evidence.h"

namespace gg {
namespace {

using Sample = Evidence::Sample;
using Sum = Evidence::Sum;

Sum over_rows(const Evidence& e, const Sample& s, const Group& rows_of, int64_t first, int64_t count) {
  const int64_t a = Evidence::a_row(rows_of, s.place.row) + first * rows_of.a_k_step(),
                b = Evidence::b_column(rows_of, s.place.col) + first * rows_of.b_k_step();
  return e.dot(a, rows_of.a_k_step(), b, rows_of.b_k_step(), 0, int(count));
}

// A last slice that is added whole: rows of the groups after it, and then rows that no group owns,
// which are NaN.
Failure sum_too_long(const Evidence& e) {
  for (const int slice : {8, 16, 32, 64, 128, 256}) {
    const auto explains = [&](const Sample& s) {
      const Group& g = e.group(s);
      const int64_t owned = e.layout().offsets.back() - e.layout().offsets[size_t(s.place.group)];
      const int64_t count = int64_t(g.k + slice - 1) / slice * slice;
      return e.matches(s, over_rows(e, s, g, 0, std::min(count, owned))) ||
             (count > owned && is_nan(e.limit().format, e.code(s)));
    };
    if (!e.most(explains)) continue;
    return {Symptom::neighbour_read,
            format("looks like a sum that runs into the rows of the next group: its last slice of %d rows "
                   "is added whole",
                   slice)};
  }
  return {};
}

std::vector<Hypothesis> other_ends(const Evidence& e) {
  std::vector<Hypothesis> all;
  for (const int step : {8, 16, 32, 64}) {
    all.push_back({Symptom::missing_k_slice,
                   format("looks like a sum that ends with the last whole %d rows of the group", step),
                   [&e, step](const Sample& s) {
                     const Group& g = e.group(s);
                     return over_rows(e, s, g, 0, g.k / step * step);
                   }});
  }
  for (const int by : {-1, 1}) {
    all.push_back({Symptom::offset_by_one,
                   format("looks like a group that ends a row too %s", by < 0 ? "early" : "late"),
                   [&e, by](const Sample& s) { return over_rows(e, s, e.group(s), 0, e.group(s).k + by); }});
    all.push_back({Symptom::offset_by_one,
                   format("looks like a group that begins a row too %s", by < 0 ? "early" : "late"),
                   [&e, by](const Sample& s) { return over_rows(e, s, e.group(s), by, e.group(s).k - by); }});
  }
  return all;
}

std::vector<Hypothesis> other_groups(const Evidence& e) {
  std::vector<Hypothesis> all;
  const int groups = int(e.layout().groups.size());
  all.push_back({Symptom::first_group_only, "every group has the rows of group 0", [&e](const Sample& s) {
                   const Group& first = e.layout().groups[0];
                   return over_rows(e, s, first, 0, first.k);
                 }});
  all.push_back({Symptom::first_group_only, "every group's rows are counted from the first row of all",
                 [&e](const Sample& s) { return over_rows(e, s, e.layout().groups[0], 0, e.group(s).k); }});
  for (int by = 1; by < std::min(groups, 64); ++by) {
    for (const int shift : {by, -by}) {
      all.push_back(
          {Symptom::swapped_expert,
           format("looks like the rows of the group %d %s", by, shift > 0 ? "further on" : "before"),
           [&e, shift, groups](const Sample& s) {
             const int other = s.place.group + shift;
             if (other < 0 || other >= groups) return Sum{NAN, 0};
             const Group& g = e.layout().groups[size_t(other)];
             return over_rows(e, s, g, 0, g.k);
           }});
    }
  }
  return all;
}

// Sums that `matches` would add to what D held, without that.
std::vector<Hypothesis> not_added(const Evidence& e) {
  if (!e.matrices().accumulates) return {};
  const auto times = [&e](double factor) {
    return [&e, factor](const Sample& s) {
      const Sum products = e.product(e.group(s), s.place.row, e.group(s), s.place.col);
      const double before = e.added(s, {}).value;
      return Sum{products.value + factor * before, products.magnitude};
    };
  };
  return {{Symptom::unwritten, "the sum is right, but what D held is not added to it", times(-1)},
          {Symptom::stale, "what D held is added twice", times(1)}};
}

}  // namespace

Failure explain_gradient(const Evidence& e) {
  if (const Failure found = sum_too_long(e); found.symptom != Symptom::unknown) return found;
  for (const auto hypotheses : {not_added, other_ends, other_groups}) {
    if (const Failure found = first_that_explains(e, hypotheses(e)); found.symptom != Symptom::unknown)
      return found;
  }
  return {};
}

}  // namespace gg
