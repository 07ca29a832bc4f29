// SPDX-License-Identifier: MIT
//
// Diagnosis of wrong numbers that come from how a tile travels: a slice of K from another stage,
// columns or rows of another place, chunks of 16 bytes without their swizzle, a store of more rows
// than a group has.

#include <algorithm>
#include <tuple>

#include "common/harness/verify/evidence.h"

namespace gg {
namespace {

using Sample = Evidence::Sample;
using Sum = Evidence::Sum;

Sum nothing() { return {NAN, 0}; }

// The last slice of K multiplied from the stage of a slice some slices before: A, B or both. A
// slice before has all its columns, also where the last one has fewer.
std::vector<Hypothesis> other_stages(const Evidence& e) {
  constexpr int kMostStages = 8;
  std::vector<Hypothesis> all;
  for (const int slice : {16, 32, 64, 128, 256}) {
    for (int before = 1; before <= kMostStages; ++before) {
      for (const auto& [name, a_too, b_too] :
           {std::tuple{"A and B", true, true}, {"A", true, false}, {"B", false, true}}) {
        all.push_back(
            {Symptom::other_stage,
             format(
                 "looks like the last slice of K multiplied from another stage: %s of the slice %d before, "
                 "in slices of %d",
                 name, before, slice),
             [&e, slice, before, a_too, b_too](const Sample& s) {
               const Group& g = e.group(s);
               const int last = (g.k - 1) / slice * slice, other = last - before * slice;
               if (other < 0) return nothing();
               // Behind K there are zeros, in A or in B.
               const int count = a_too && b_too ? slice : g.k - last;
               const int64_t a = Evidence::a_row(g, s.place.row), b = Evidence::b_column(g, s.place.col),
                             a_step = g.a_k_step(), step = g.b_k_step();
               const Sum kept = e.dot(a, a_step, b, step, 0, last),
                         taken = e.dot(a + (a_too ? other : last) * a_step, a_step,
                                       b + (b_too ? other : last) * step, step, 0, count);
               return Sum{kept.value + taken.value, kept.magnitude + taken.magnitude};
             }});
      }
    }
  }
  return all;
}

// Another column or row of the same group: always so many further on, as in a tile next to it, or
// each with its neighbour, so many at a time.
std::vector<Hypothesis> other_places(const Evidence& e) {
  std::vector<Hypothesis> all;
  const auto add = [&](const std::string& what, auto place_of) {
    all.push_back({Symptom::other_place, "looks like " + what, [&e, place_of](const Sample& s) {
                     const Group& g = e.group(s);
                     const auto [row, col] = place_of(s.place.row, s.place.col);
                     const bool inside = row >= 0 && row < g.m && col >= 0 && col < g.n;
                     return inside ? e.product(g, row, g, col) : nothing();
                   }});
  };
  for (int by = 8; by <= 256; by += 8) {
    for (const int shift : {by, -by}) {
      add(format("the columns %d to the %s, as in another tile", by, shift > 0 ? "right" : "left"),
          [shift](int row, int col) { return std::pair(row, col + shift); });
      add(format("the rows %d further %s, as in another tile", by, shift > 0 ? "down" : "up"),
          [shift](int row, int col) { return std::pair(row + shift, col); });
    }
  }
  for (int count = 1; count <= 128; count *= 2) {
    add(format("neighbouring columns exchanged, %d at a time", count),
        [count](int row, int col) { return std::pair(row, col ^ count); });
    add(format("neighbouring rows exchanged, %d at a time", count),
        [count](int row, int col) { return std::pair(row ^ count, col); });
  }
  return all;
}

// Chunks of 16 bytes where a swizzle has put them, or would have: chunk c of row r lies at c xor
// the row's lowest bits. What lies beyond the matrix is zero.
class Swizzle {
 public:
  Swizzle(const Evidence& e, int bytes, bool of_a, bool of_b)
      : e_(e), bytes_(bytes), of_a_(of_a), of_b_(of_b) {}

  Sum sum(const Sample& s) const {
    const Group& g = e_.group(s);
    Sum sum;
    for (int k = 0; k < g.k; ++k) {
      const double product = (of_a_ ? moved_a(g, s.place.row, k) : a(g, s.place.row, k)) *
                             (of_b_ ? moved_b(g, s.place.col, k) : b(g, s.place.col, k));
      sum.value += product;
      sum.magnitude += std::fabs(product);
    }
    return sum;
  }

 private:
  // The place along a row of chunks where the element at `along` of row `row` is found.
  int moved(Format type, int row, int along) const {
    const int chunk = 16 * 8 / format_info(type).bits, chunks = bytes_ / 16;
    return along ^ (row / (8 / chunks) % chunks * chunk);
  }
  double a(const Group& g, int row, int k) const {
    return e_.a_at(Evidence::a_row(g, row) + k * g.a_k_step());
  }
  double b(const Group& g, int col, int k) const {
    return e_.b_at(Evidence::b_column(g, col) + k * g.b_k_step());
  }
  double moved_a(const Group& g, int row, int k) const {
    const Format type = e_.matrices().formats.a;
    if (g.a_transposed) {
      const int from = moved(type, k, row);
      return from < g.m ? a(g, from, k) : 0;
    }
    const int from = moved(type, row, k);
    return from < g.k ? a(g, row, from) : 0;
  }
  double moved_b(const Group& g, int col, int k) const {
    const Format type = e_.matrices().formats.b;
    if (g.b_layout == BLayout::nk) {
      const int from = moved(type, col, k);
      return from < g.k ? b(g, col, from) : 0;
    }
    const int from = moved(type, k, col);
    return from < g.n ? b(g, from, k) : 0;
  }

  const Evidence& e_;
  int bytes_;
  bool of_a_, of_b_;
};

std::vector<Hypothesis> missing_swizzles(const Evidence& e) {
  std::vector<Hypothesis> all;
  for (const int bytes : {128, 64, 32}) {
    for (const auto& [name, of_a, of_b] :
         {std::tuple{"B", false, true}, {"A", true, false}, {"A and B", true, true}}) {
      const Swizzle swizzle(e, bytes, of_a, of_b);
      all.push_back(
          {Symptom::missing_swizzle,
           format("looks like %s without the swizzle of %d bytes: chunks of 16 bytes are taken from "
                  "where they would be without it",
                  name, bytes),
           [swizzle](const Sample& s) { return swizzle.sum(s); }});
    }
  }
  return all;
}

// Does this row of a group lie where boxes of `box` rows reach that begin in group `from`?
bool reaches(const Layout& layout, int from, int group, int row, int box) {
  const int64_t rows = layout.groups[size_t(from)].m, first = layout.offsets[size_t(from)];
  return layout.offsets[size_t(group)] + row < first + (rows + box - 1) / box * box;
}

}  // namespace

// Rows at the start of groups have the weights of one before it, up to where its last box ends.
// Where whole groups have, and all that follow, it is another mistake.
Failure explain_overrun(const Evidence& e) {
  const Layout& layout = e.layout();
  if (layout.offsets.size() != layout.groups.size() + 1) return {};
  const auto is_made_with = [&](int weights, int group, int row, int col) {
    const Group &g = layout.groups[size_t(group)], &of_b = layout.groups[size_t(weights)];
    const Sample at{g.d.offset + row * g.d.ld + col, {group, row, col}};
    return of_b.k == g.k && of_b.n == g.n && e.matches(at, e.product(g, row, of_b, col));
  };
  // By chance a few elements of a wrong row are right.
  const auto has_right_end = [&](int g) {
    const int m = layout.groups[size_t(g)].m;
    return m > 0 && std::all_of(e.samples().begin(), e.samples().end(),
                                [&](const Sample& s) { return is_made_with(g, g, m - 1, s.place.col); });
  };
  bool some_end_right = false;
  for (int g = e.samples().front().place.group; g < int(layout.groups.size()); ++g)
    some_end_right = some_end_right || has_right_end(g);
  if (!some_end_right) return {};
  for (const int box : {8, 16, 32, 64, 128, 256}) {
    const auto is_of_one_before = [&](const Sample& s) {
      for (int from = 0; from < s.place.group; ++from) {
        if (reaches(layout, from, s.place.group, s.place.row, box) &&
            is_made_with(from, s.place.group, s.place.row, s.place.col))
          return true;
      }
      return false;
    };
    if (!e.most(is_of_one_before)) continue;
    return {
        Symptom::overrun,
        format("rows at the start of group %d have the weights of a group before it, whose last rows fill "
               "no box: looks like stores of always %d rows",
               e.samples().front().place.group, box)};
  }
  return {};
}

Failure explain_tiles(const Evidence& e) {
  for (const auto hypotheses : {other_stages, other_places}) {
    if (const Failure found = first_that_explains(e, hypotheses(e)); found.symptom != Symptom::unknown)
      return found;
  }
  return {};
}

Failure explain_swizzle(const Evidence& e) {
  for (const Hypothesis& each : missing_swizzles(e)) {
    const auto explains = [&](const Sample& s) { return e.matches(s, each.sum(s)); };
    if (std::all_of(e.samples().begin(), e.samples().end(), explains)) return {each.symptom, each.what};
  }
  return {};
}

}  // namespace gg
