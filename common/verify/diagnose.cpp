// SPDX-License-Identifier: MIT
//
// What a wrong number looks like. Each hypothesis says what value a known mistake would have put at an
// element of D; the first one that predicts nearly all of the failing elements names the failure.

#include "common/verify/diagnose.h"

#include <algorithm>
#include <functional>
#include <map>

namespace gg {

const char* symptom_name(Symptom symptom) {
  switch (symptom) {
    case Symptom::unknown:
      return "unknown";
    case Symptom::nan:
      return "NaN";
    case Symptom::unwritten:
      return "unwritten element";
    case Symptom::stale:
      return "previous output left in place";
    case Symptom::out_of_bounds:
      return "write out of bounds";
    case Symptom::padding_read:
      return "padding read";
    case Symptom::neighbour_read:
      return "neighbouring group read";
    case Symptom::nondeterministic:
      return "nondeterministic";
    case Symptom::overlapping:
      return "overlapping launches";
    case Symptom::swapped_expert:
      return "swapped expert";
    case Symptom::first_group_only:
      return "right only for group 0";
    case Symptom::offset_by_one:
      return "offset by one";
    case Symptom::transposed_tile:
      return "transposed tile";
    case Symptom::square_only:
      return "right only when square";
    case Symptom::missing_k_slice:
      return "missing K slice";
    case Symptom::truncated:
      return "truncation instead of rounding";
    case Symptom::half_accumulator:
      return "accumulator in half precision";
    case Symptom::wrong_scale:
      return "wrong scale";
    case Symptom::swapped_halves:
      return "halves of a byte exchanged";
    case Symptom::wrong_epilogue:
      return "wrong epilogue";
  }
  return "?";
}

namespace {

class Explainer {
 public:
  Explainer(const HostCopy& copy, const Setup& setup, const Layout& layout, const Limit& limit,
            const std::vector<int64_t>& failing)
      : copy_(copy),
        setup_(setup),
        matrices_(copy.matrices(setup.formats)),
        a_elems_(int64_t(copy.a.size()) * 8 / format_info(setup.formats.a).bits),
        b_elems_(int64_t(copy.b.size()) * 8 / format_info(setup.formats.b).bits),
        before_(copy.before.data()),
        layout_(layout),
        limit_(limit) {
    const size_t stride = failing.size() / kMostSamples + 1;
    for (size_t i = 0; i * stride < failing.size(); ++i) {
      const int64_t element = failing[sample_at(i, stride, failing.size())];
      samples_.push_back({element, place_of(layout, element)});
    }
  }

  Failure explain() {
    if (samples_.empty())
      return {Symptom::unknown, "but no element fails on the CPU: the two references disagree"};
    const Failure* best = nullptr;
    const std::vector<Failure> candidates = {
        stale(),       offset_by_one(),   expert(),    transposed_tile(),  square_only(),
        scales(false), missing_k_slice(), truncated(), half_accumulator(), scales(true)};
    for (const Failure& candidate : candidates) {
      if (!best && candidate.symptom != Symptom::unknown) best = &candidate;
    }
    Failure failure = best ? *best : Failure{Symptom::unknown, "no known mistake explains it"};
    failure.sentence = first_error() + failure.sentence;
    return failure;
  }

 private:
  static constexpr size_t kMostSamples = 64;
  struct Sample {
    int64_t element;
    Place place;
  };
  using Predict = std::function<bool(const Sample&)>;  // would the mistake have written what we see?

  const Group& group(const Sample& s) const { return layout_.groups[size_t(s.place.group)]; }
  uint32_t code(const Sample& s) const { return load_code(matrices_.d, limit_.format, s.element); }

  bool most(const Predict& predict) const {
    const auto explained = std::count_if(samples_.begin(), samples_.end(), predict);
    return size_t(explained) * 10 >= samples_.size() * 9;
  }

  // The element at a place in memory, with the scale that belongs to it.
  double a_at(int64_t element) const {
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
  double b_at(int64_t element) const {
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
  double scale(const uint8_t* scales, int64_t at) const {
    return decode(matrices_.formats.scaling().scale, scales[at]);
  }

  struct Sum {
    double value = 0, magnitude = 0;
  };
  // sum over k in [first, last) of A[a_off + k * a_step] * B[b_off + k * b_step]
  Sum dot(int64_t a_off, int64_t a_step, int64_t b_off, int64_t b_step, int first, int last) const {
    Sum sum;
    for (int kk = first; kk < last; ++kk) {
      const double product = a_at(a_off + kk * a_step) * b_at(b_off + kk * b_step);
      sum.value += product;
      sum.magnitude += std::fabs(product);
    }
    return sum;
  }
  bool matches(const Sample& s, const Sum& sum) const {
    return !std::isnan(sum.value) && judge(code(s), sum.value, sum.magnitude, limit_).ok;
  }
  // Where column `col` of a group's B starts.
  static int64_t b_column(const Group& group, int col) { return group.b.offset + col * group.b_n_step(); }
  // Row `row` of the group's A (may lie outside the group) times column `col` of a group's B.
  Sum product(const Group& a, int64_t row, const Group& b, int col) const {
    return dot(a.a.offset + row * a.a.ld, 1, b_column(b, col), b.b_k_step(), 0, a.k);
  }

  std::string first_error() const {
    const Sample& s = samples_.front();
    const Sum right = product(group(s), s.place.row, group(s), s.place.col);
    const double expected = decode(limit_.format, encode(limit_.format, right.value));
    return format("the first sampled: group %d row %d column %d, expected %.9g, got %.9g; ", s.place.group,
                  s.place.row, s.place.col, limit_.exact ? expected : right.value,
                  double(decode(limit_.format, code(s))));
  }

  Failure stale() const {
    const bool all =
        most([&](const Sample& s) { return code(s) == load_code(before_, limit_.format, s.element); });
    if (!all) return {};
    return {Symptom::stale, "the elements still hold what the buffer held before the launch"};
  }

  Failure offset_by_one() const {
    for (int shift : {-1, 1}) {
      const char* where = shift < 0 ? "above" : "below";
      if (most([&](const Sample& s) {
            return matches(s, product(group(s), s.place.row + shift, group(s), s.place.col));
          })) {
        return {Symptom::offset_by_one,
                format("looks like the row of A just %s: an offset is off by one", where)};
      }
      // A row on the wrong side of a boundary meets the weights of the neighbouring expert that has rows.
      if (most([&](const Sample& s) {
            const bool at_end = shift < 0 ? s.place.row == 0 : s.place.row == group(s).m - 1;
            int g = s.place.group + shift;
            while (g >= 0 && g < int(layout_.groups.size()) && layout_.groups[size_t(g)].m == 0) g += shift;
            if (!at_end || g < 0 || g >= int(layout_.groups.size())) return false;
            return matches(s, product(group(s), s.place.row, layout_.groups[size_t(g)], s.place.col));
          })) {
        return {Symptom::offset_by_one,
                format("only the %s row of a group is wrong and has the neighbour's weights: "
                       "the end of a group is off by one",
                       shift < 0 ? "first" : "last")};
      }
    }
    return {};
  }

  Failure expert() const {
    std::map<int, int> taken_from;  // failing group -> group whose weights it has
    if (!most([&](const Sample& s) {
          const int groups = int(layout_.groups.size());
          const auto fits = [&](int other) {
            const Group& o = layout_.groups[size_t(other)];
            return other != s.place.group && o.k == group(s).k && o.n == group(s).n &&
                   matches(s, product(group(s), s.place.row, o, s.place.col));
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

  Failure transposed_tile() const {
    for (int tile : {8, 16, 32, 64, 128, 256}) {
      if (most([&](const Sample& s) {
            const int row0 = s.place.row / tile * tile, col0 = s.place.col / tile * tile;
            const int row = row0 + s.place.col - col0, col = col0 + s.place.row - row0;
            return row < group(s).m && col < group(s).n && matches(s, product(group(s), row, group(s), col));
          })) {
        return {Symptom::transposed_tile,
                format("looks like tiles of %d x %d with rows and columns exchanged", tile, tile)};
      }
    }
    return {};
  }

  Failure square_only() const {
    struct Order {
      const char* what;
      std::function<Sum(const Sample&)> sum;
    };
    const auto a_row = [&](const Sample& s) { return group(s).a.offset + s.place.row * group(s).a.ld; };
    const auto column = [&](const Sample& s) { return b_column(group(s), s.place.col); };
    const bool nk = layout_.groups[0].b_layout == BLayout::nk;
    const std::vector<Order> orders = {
        {nk ? "B read as [K,N]" : "B read as [N,K]",
         [&](const Sample& s) {
           const Group& g = group(s);
           return nk ? dot(a_row(s), 1, g.b.offset + s.place.col, g.n, 0, g.k)
                     : dot(a_row(s), 1, g.b.offset + int64_t(s.place.col) * g.k, 1, 0, g.k);
         }},
        {nk ? "B read with a leading dimension of N" : "B read with a leading dimension of K",
         [&](const Sample& s) {
           const Group& g = group(s);
           return nk ? dot(a_row(s), 1, g.b.offset + int64_t(s.place.col) * g.n, 1, 0, g.k)
                     : dot(a_row(s), 1, g.b.offset + s.place.col, g.k, 0, g.k);
         }},
        {"A read with a leading dimension of N",
         [&](const Sample& s) {
           return dot(group(s).a.offset + int64_t(s.place.row) * group(s).n, 1, column(s),
                      group(s).b_k_step(), 0, group(s).k);
         }},
        {"A read as [K,M]",
         [&](const Sample& s) {
           return dot(group(s).a.offset + s.place.row, group(s).m, column(s), group(s).b_k_step(), 0,
                      group(s).k);
         }},
    };
    for (const Order& order : orders) {
      if (most([&](const Sample& s) { return matches(s, order.sum(s)); })) {
        return {Symptom::square_only, format("looks like %s: right only when square", order.what)};
      }
    }
    return {};
  }

  // The sum of a prefix or a suffix of K: the same number of products must be missing everywhere.
  Failure missing_k_slice() const {
    std::map<int, size_t> short_at_end, short_at_start;  // products missing -> samples explained
    for (const Sample& s : samples_) {
      const Group& g = group(s);
      const int64_t a = g.a.offset + s.place.row * g.a.ld, b = b_column(g, s.place.col);
      const Sum whole = dot(a, 1, b, g.b_k_step(), 0, g.k);
      Sum prefix;
      for (int kk = 0; kk < g.k; ++kk) {
        if (judge(code(s), prefix.value, whole.magnitude, limit_).ok) ++short_at_end[g.k - kk];
        if (judge(code(s), whole.value - prefix.value, whole.magnitude, limit_).ok) ++short_at_start[kk];
        prefix.value += dot(a, 1, b, g.b_k_step(), kk, kk + 1).value;
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
    if (explained * 10 < samples_.size() * 9) return {};
    return {Symptom::missing_k_slice,
            format("looks like a missing K slice: the %s %d products are not in the sum",
                   at_end ? "last" : "first", missing)};
  }

  Failure truncated() const {
    const bool all = most([&](const Sample& s) {
      const Sum sum = product(group(s), s.place.row, group(s), s.place.col);
      return code(s) == encode(limit_.format, sum.value, Rounding::toward_zero);
    });
    if (!all) return {};
    return {Symptom::truncated,
            "the sum is right but cut toward zero: the output must round to nearest even"};
  }

  Failure half_accumulator() const {
    if (!limit_.exact) return {};
    const bool all_large = std::all_of(samples_.begin(), samples_.end(), [&](const Sample& s) {
      const Group& g = group(s);
      double largest = 0, sum = 0;
      for (int kk = 0; kk < g.k; ++kk) {
        sum +=
            a_at(g.a.offset + s.place.row * g.a.ld + kk) * b_at(b_column(g, s.place.col) + kk * g.b_k_step());
        largest = std::max(largest, std::fabs(sum));
      }
      const double error = std::fabs(decode(limit_.format, code(s)) - sum);
      return largest > 2048 && error <= largest / 64;
    });
    if (!all_large) return {};
    return {Symptom::half_accumulator,
            "only sums that pass 2048 are off, and by little: looks like an accumulator in half precision"};
  }

  Failure scales(bool last) const {
    if (!matrices_.formats.has_scales()) return {};
    std::vector<int64_t> elements;
    for (const Sample& s : samples_) elements.push_back(s.element);
    return explain_scales(copy_, setup_, layout_, limit_, elements, last);
  }

  const HostCopy& copy_;
  const Setup& setup_;
  Matrices matrices_;
  int64_t a_elems_, b_elems_;
  const void* before_;
  const Layout& layout_;
  Limit limit_;
  std::vector<Sample> samples_;
};

}  // namespace

size_t sample_at(size_t i, size_t stride, size_t count) {
  const size_t jitter = i == 0 ? 0 : hash(0, 8, i) % stride;
  return std::min(i * stride + jitter, count - 1);
}

Failure explain_values(const HostCopy& copy, const Setup& setup, const Layout& layout, const Limit& limit,
                       const std::vector<int64_t>& failing) {
  return Explainer(copy, setup, layout, limit, failing).explain();
}

Place place_of(const Layout& layout, int64_t element) {
  for (size_t g = 0; g < layout.groups.size(); ++g) {
    const Region& d = layout.groups[g].d;
    const int64_t inside = element - d.offset;
    if (inside >= 0 && inside < d.rows * d.ld && inside % d.ld < d.cols) {
      return {int(g), int(inside / d.ld), int(inside % d.ld)};
    }
  }
  return {};
}

}  // namespace gg
