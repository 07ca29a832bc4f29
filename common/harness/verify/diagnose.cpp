// SPDX-License-Identifier: MIT
//
// Diagnosis of wrong numbers. A hypothesis says what a known mistake would have put at an element
// of D; the first one that predicts nearly all of the failing elements names the failure. Some
// mistakes have a number that is found first: whose weights, or how many products are missing.

#include "common/harness/verify/diagnose.h"

#include <algorithm>
#include <map>
#include <span>

#include "common/harness/verify/evidence.h"

namespace gg {

namespace {

using Sample = Evidence::Sample;
using Sum = Evidence::Sum;

Sum nothing() { return {NAN, 0}; }

std::string first_error(const Evidence& e) {
  const Sample& s = e.samples().front();
  const Sum right = e.added(s, e.product(e.group(s), s.place.row, e.group(s), s.place.col));
  const double expected = decode(e.limit().format, encode(e.limit().format, right.value));
  return format("the first sampled: group %d row %d column %d, expected %.9g, got %.9g; ", s.place.group,
                s.place.row, s.place.col, e.limit().exact ? expected : right.value,
                double(decode(e.limit().format, e.code(s))));
}

Failure stale(const Evidence& e) {
  if (!e.most([&](const Sample& s) { return e.code(s) == e.code_before(s); })) return {};
  return {Symptom::stale, "the elements still hold what the buffer held before the launch"};
}

std::vector<Hypothesis> offsets_by_one(const Evidence& e) {
  std::vector<Hypothesis> all;
  for (const int shift : {-1, 1}) {
    all.push_back(
        {Symptom::offset_by_one,
         format("looks like the row of A just %s: an offset is off by one", shift < 0 ? "above" : "below"),
         [&e, shift](const Sample& s) {
           return e.product(e.group(s), s.place.row + shift, e.group(s), s.place.col);
         }});
    // A row on the wrong side of a boundary meets the weights of the next expert that has rows.
    all.push_back({Symptom::offset_by_one,
                   format("only the %s row of a group is wrong and has the neighbour's weights: the end of a "
                          "group is off by one",
                          shift < 0 ? "first" : "last"),
                   [&e, shift](const Sample& s) {
                     const std::vector<Group>& groups = e.layout().groups;
                     const bool at_end = shift < 0 ? s.place.row == 0 : s.place.row == e.group(s).m - 1;
                     int g = s.place.group + shift;
                     while (g >= 0 && g < int(groups.size()) && groups[size_t(g)].m == 0) g += shift;
                     if (!at_end || g < 0 || g >= int(groups.size())) return nothing();
                     return e.product(e.group(s), s.place.row, groups[size_t(g)], s.place.col);
                   }});
  }
  return all;
}

Failure expert(const Evidence& e) {
  std::map<int, int> taken_from;  // failing group -> group whose weights it has
  if (!e.most([&](const Sample& s) {
        const int groups = int(e.layout().groups.size());
        const auto fits = [&](int other) {
          const Group& o = e.layout().groups[size_t(other)];
          return other != s.place.group && o.k == e.group(s).k && o.n == e.group(s).n &&
                 e.matches(s, e.product(e.group(s), s.place.row, o, s.place.col));
        };
        const auto known = taken_from.find(s.place.group);
        if (known != taken_from.end()) return fits(known->second);
        for (int other = 0; other < std::min(groups, 256); ++other) {
          if (!fits(other)) continue;
          taken_from[s.place.group] = other;
          return true;
        }
        return false;
      })) {
    return {};
  }
  const bool all_first =
      std::all_of(taken_from.begin(), taken_from.end(), [](auto& pair) { return pair.second == 0; });
  if (all_first && taken_from.size() > 1) {
    return {Symptom::first_group_only,
            "every wrong group has expert 0's weights: the group never enters B's address"};
  }
  const auto [wrong, source] = *taken_from.begin();
  return {Symptom::swapped_expert,
          format("looks like a swapped expert: group %d has the weights of group %d", wrong, source)};
}

std::vector<Hypothesis> transposed_tiles(const Evidence& e) {
  std::vector<Hypothesis> all;
  for (const int tile : {8, 16, 32, 64, 128, 256}) {
    all.push_back({Symptom::transposed_tile,
                   format("looks like tiles of %d x %d with rows and columns exchanged", tile, tile),
                   [&e, tile](const Sample& s) {
                     const int row0 = s.place.row / tile * tile, col0 = s.place.col / tile * tile;
                     const int row = row0 + s.place.col - col0, col = col0 + s.place.row - row0;
                     const Group& g = e.group(s);
                     return row < g.m && col < g.n ? e.product(g, row, g, col) : nothing();
                   }});
  }
  return all;
}

// Orders and leading dimensions that are right where M, N and K are equal.
std::vector<Hypothesis> right_when_square(const Evidence& e) {
  struct Steps {  // elements from a column of D, and from a k, to the next
    int64_t col, k;
  };
  const auto with_b = [&e](Steps (*steps_of)(const Group&)) {
    return [&e, steps_of](const Sample& s) {
      const Group& g = e.group(s);
      const Steps steps = steps_of(g);
      return e.dot(g.a.offset + s.place.row * g.a.ld, 1, g.b.offset + s.place.col * steps.col, steps.k, 0,
                   g.k);
    };
  };
  const auto with_a = [&e](bool transposed) {
    return [&e, transposed](const Sample& s) {
      const Group& g = e.group(s);
      const int64_t start = g.a.offset + int64_t(s.place.row) * (transposed ? 1 : g.n);
      return e.dot(start, transposed ? g.m : 1, Evidence::b_column(g, s.place.col), g.b_k_step(), 0, g.k);
    };
  };
  const auto as_kn = [](const Group& g) -> Steps { return {1, g.n}; };
  const auto as_nk = [](const Group& g) -> Steps { return {g.k, 1}; };
  const auto ld_n = [](const Group& g) -> Steps { return {g.n, 1}; };  // of [N,K]
  const auto ld_k = [](const Group& g) -> Steps { return {1, g.k}; };  // of [K,N]
  const bool nk = e.layout().groups[0].b_layout == BLayout::nk;
  const auto named = [](const char* what) { return format("looks like %s: right only when square", what); };
  return {{Symptom::square_only, named(nk ? "B read as [K,N]" : "B read as [N,K]"),
           nk ? with_b(as_kn) : with_b(as_nk)},
          {Symptom::square_only,
           named(nk ? "B read with a leading dimension of N" : "B read with a leading dimension of K"),
           nk ? with_b(ld_n) : with_b(ld_k)},
          {Symptom::square_only, named("A read with a leading dimension of N"), with_a(false)},
          {Symptom::square_only, named("A read as [K,M]"), with_a(true)}};
}

// The sum of a prefix or a suffix of K: the same number of products must be missing everywhere.
Failure missing_k_slice(const Evidence& e) {
  std::map<int, size_t> short_at_end, short_at_start;  // products missing -> samples explained
  for (const Sample& s : e.samples()) {
    const Group& g = e.group(s);
    const int64_t a = Evidence::a_row(g, s.place.row), b = Evidence::b_column(g, s.place.col);
    const Sum before = e.added(s, {}), whole = e.added(s, e.dot(a, g.a_k_step(), b, g.b_k_step(), 0, g.k));
    Sum prefix = before;
    for (int kk = 0; kk < g.k; ++kk) {
      if (judge(e.code(s), prefix.value, whole.magnitude, e.limit()).ok) ++short_at_end[g.k - kk];
      if (judge(e.code(s), whole.value - prefix.value + before.value, whole.magnitude, e.limit()).ok)
        ++short_at_start[kk];
      prefix.value += e.dot(a, g.a_k_step(), b, g.b_k_step(), kk, kk + 1).value;
    }
  }
  const auto best = [](const std::map<int, size_t>& counts) {
    return counts.empty() ? std::pair<const int, size_t>{0, 0}
                          : *std::max_element(counts.begin(), counts.end(),
                                              [](auto& x, auto& y) { return x.second < y.second; });
  };
  const auto end = best(short_at_end), start = best(short_at_start);
  const bool at_end = end.second >= start.second;
  const auto& [missing, explained] = at_end ? end : start;
  if (explained * 10 < e.samples().size() * 9) return {};
  if (missing == e.group(e.samples().front()).k)
    return {Symptom::missing_k_slice,
            format("the sums are 0: none of their %d products is in them", missing)};
  const bool gradient = e.layout().product == Product::weight_gradient;
  return {Symptom::missing_k_slice,
          format(gradient ? "looks like missing rows: the %s %d rows of the group are not in the sum"
                          : "looks like a missing K slice: the %s %d products are not in the sum",
                 at_end ? "last" : "first", missing)};
}

Failure truncated(const Evidence& e) {
  const bool all = e.most([&](const Sample& s) {
    const Sum sum = e.added(s, e.product(e.group(s), s.place.row, e.group(s), s.place.col));
    return e.code(s) == encode(e.limit().format, sum.value, Rounding::toward_zero);
  });
  if (!all) return {};
  return {Symptom::truncated, "the sum is right but cut toward zero: the output must round to nearest even"};
}

Failure half_accumulator(const Evidence& e) {
  if (!e.limit().exact) return {};
  const bool all_large = std::all_of(e.samples().begin(), e.samples().end(), [&](const Sample& s) {
    const Group& g = e.group(s);
    double largest = 0, sum = e.added(s, {}).value;
    for (int kk = 0; kk < g.k; ++kk) {
      sum += e.a_at(Evidence::a_row(g, s.place.row) + kk * g.a_k_step()) *
             e.b_at(Evidence::b_column(g, s.place.col) + kk * g.b_k_step());
      largest = std::max(largest, std::fabs(sum));
    }
    const double error = std::fabs(decode(e.limit().format, e.code(s)) - sum);
    return largest > 2048 && error <= largest / 64;
  });
  if (!all_large) return {};
  return {Symptom::half_accumulator,
          "only sums that pass 2048 are off, and by little: looks like an accumulator in half precision"};
}

}  // namespace

Failure explain_values(const HostCopy& copy, const Setup& setup, const Layout& layout, const Limit& limit,
                       const std::vector<int64_t>& failing) {
  const Evidence e(copy, setup, layout, limit, failing);
  if (e.samples().empty())
    return {Symptom::unknown, "but no element fails on the CPU: the two references disagree"};
  const bool is_gradient = layout.product == Product::weight_gradient;
  const std::function<Failure()> of_gradient[] = {[&] { return stale(e); },
                                                  [&] { return explain_gradient(e); },
                                                  [&] { return first_that_explains(e, transposed_tiles(e)); },
                                                  [&] { return explain_swizzle(e); },
                                                  [&] { return missing_k_slice(e); },
                                                  [&] { return truncated(e); },
                                                  [&] { return half_accumulator(e); },
                                                  [&] { return explain_tiles(e); }};
  const std::function<Failure()> in_turn[] = {[&] { return stale(e); },
                                              [&] { return first_that_explains(e, offsets_by_one(e)); },
                                              [&] { return explain_overrun(e); },
                                              [&] { return expert(e); },
                                              [&] { return first_that_explains(e, transposed_tiles(e)); },
                                              [&] { return first_that_explains(e, right_when_square(e)); },
                                              [&] { return explain_scales(e, false); },
                                              [&] { return explain_swizzle(e); },
                                              [&] { return missing_k_slice(e); },
                                              [&] { return truncated(e); },
                                              [&] { return half_accumulator(e); },
                                              [&] { return explain_scales(e, true); },
                                              [&] { return explain_tiles(e); }};
  const std::span<const std::function<Failure()>> all =
      is_gradient ? std::span<const std::function<Failure()>>(of_gradient) : in_turn;
  for (const auto& look : all) {
    if (const Failure found = look(); found.symptom != Symptom::unknown)
      return {found.symptom, first_error(e) + found.sentence};
  }
  return {Symptom::unknown, first_error(e) + "no known mistake explains it"};
}

}  // namespace gg
