// SPDX-License-Identifier: MIT
//
// The problems that a chapter works on, and the sentences that refuse the others.

#include "common/harness/problem/limits.h"

#include <algorithm>
#include <numeric>

#include "common/harness/base/text.h"
#include "common/harness/problem/shapes.h"

namespace gg {

constexpr int kSpareRows = 136;

int most_groups(const Chapter& chapter) {
  return chapter.epilogue.op == Operator::gemm ? kMostGroups : kMostExperts;
}

Steps steps_of(const Chapter& chapter, const Request& request) {
  const Formats& formats = request.formats;
  Steps steps;
  // Elements of 16 bytes.
  const auto row = [](Format type) { return 128 / format_info(type).bits; };
  const auto add = [](int& step, std::string& why, int multiple, const std::string& reason) {
    const int both = std::lcm(step, multiple);
    if (both > step) why = reason;
    step = both;
  };
  const auto rows_of = [&](const char* matrix, Format type) {
    return format("a row of %s in %s is whole 16 bytes", matrix, format_info(type).name);
  };
  for (const OwnNumber& own : chapter.numbers) {
    const auto given = request.numbers.find(own.name);
    if (own.divides_k && given != request.numbers.end())
      add(steps.k, steps.why_k, given->second, format("--%s %d", own.name, given->second));
  }
  const bool is_plain = chapter.epilogue.op == Operator::gemm;
  if (is_plain && !formats.has_scales()) return steps;  // one multiple for all types
  add(steps.k, steps.why_k, row(formats.a), rows_of("A", formats.a));
  if (is_plain) return steps;
  add(steps.n, steps.why_n, row(formats.d), rows_of("D", formats.d));
  if (request.b_layout == BLayout::kn) add(steps.n, steps.why_n, row(formats.b), rows_of("B", formats.b));
  const int of_pair = chapter.epilogue.op == Operator::quant          ? 1
                      : chapter.epilogue.op == Operator::glu_gradient ? 32
                                                                      : 64;
  add(steps.n, steps.why_n, of_pair, "32 columns of gate are followed by 32 of up");
  return steps;
}

Multiples multiples_of(const Chapter& chapter, const Steps& steps) {
  return {chapter.m_multiple, std::lcm(chapter.n_multiple, steps.n), std::lcm(chapter.k_multiple, steps.k)};
}

namespace {

// The number that a chapter takes in place of one that is no multiple.
std::string next_multiple(const char* how, int64_t value, int64_t multiple) {
  const int64_t up = (value + multiple - 1) / multiple * multiple;
  if (up > INT32_MAX) return format("give %lld", static_cast<long long>(up - multiple));
  return format("%s to %lld", how, static_cast<long long>(up));
}

void refuse_groups(const Shape& shape, const Chapter& chapter) {
  GG_REQUIRE(shape.groups() >= 1, "no groups: at least one is wanted: give the rows of one");
  GG_REQUIRE(shape.groups() <= most_groups(chapter),
             "%d groups: at most %d are accepted: split the problem into several", shape.groups(),
             most_groups(chapter));
  GG_REQUIRE(shape.m_total() <= kMostRows,
             "%lld rows in all: at most %d are accepted (rows are counted in int32): split the problem into "
             "several",
             static_cast<long long>(shape.m_total()), kMostRows);
}

// Beyond what its grid or its tensor maps count.
void refuse_large(int m, int n, int k, int g, int groups, const Chapter& chapter) {
  GG_REQUIRE(n <= chapter.most_n, "N=%d: the grid of %s covers at most %d columns: split N", n, chapter.id,
             chapter.most_n);
  GG_REQUIRE(m <= chapter.most_m, "M=%d of group %d: the grid of %s covers at most %d rows: split the group",
             m, g, chapter.id, chapter.most_m);
  GG_REQUIRE(int64_t(groups) * k <= chapter.most_b_rows,
             "%d groups of K=%d: the tensor map of %s counts at most %lld rows of B: split the problem into "
             "several",
             groups, k, chapter.id, static_cast<long long>(chapter.most_b_rows));
}

}  // namespace

void refuse_unsupported(const Shape& shape, const Chapter& chapter, const Steps& steps) {
  refuse_groups(shape, chapter);
  const Multiples multiples = multiples_of(chapter, steps);
  for (int g = 0; g < shape.groups(); ++g) {
    const int m = shape.m[size_t(g)], n = shape.n_of(g), k = shape.k_of(g);
    const std::string pad_n = next_multiple("pad", n, multiples.n),
                      pad_k = next_multiple("pad", k, multiples.k);
    GG_REQUIRE(n >= 1, "N=%d: at least 1 is wanted: give %d or more", n, multiples.n);
    GG_REQUIRE(k >= 1, "K=%d: at least 1 is wanted: give %d or more", k, multiples.k);
    GG_REQUIRE(k % chapter.k_multiple == 0, "K=%d: %s wants multiples of %d (%s): %s", k, chapter.id,
               chapter.k_multiple, chapter.multiple_reason, pad_k.c_str());
    GG_REQUIRE(n % chapter.n_multiple == 0, "N=%d: %s wants multiples of %d (%s): %s", n, chapter.id,
               chapter.n_multiple, chapter.multiple_reason, pad_n.c_str());
    GG_REQUIRE(m % chapter.m_multiple == 0, "M=%d of group %d: %s wants multiples of %d (%s): %s", m, g,
               chapter.id, chapter.m_multiple, chapter.multiple_reason,
               next_multiple("round up", m, multiples.m).c_str());
    GG_REQUIRE(!chapter.equal_groups || m == shape.m[0],
               "group %d has %d rows, group 0 has %d: %s wants equal groups: pad each to %d", g, m,
               shape.m[0], chapter.id, shape.m_max());
    GG_REQUIRE(k % steps.k == 0, "K=%d: %s wants multiples of %d here (%s): %s", k, chapter.id, steps.k,
               steps.why_k.c_str(), pad_k.c_str());
    GG_REQUIRE(n % steps.n == 0, "N=%d: %s wants multiples of %d here (%s): %s", n, chapter.id, steps.n,
               steps.why_n.c_str(), pad_n.c_str());
    refuse_large(m, n, k, g, shape.groups(), chapter);
  }
}

std::vector<std::string> sets_of(const Chapter& chapter, const List<const char*>& sets) {
  std::vector<std::string> taken;
  for (const char* set : sets) {
    if (has(chapter.sets, set)) taken.push_back(set);
  }
  return taken;
}
std::vector<std::string> default_check_sets(const Chapter& chapter) {
  return sets_of(chapter, {"smoke", "edges", "long", "ends", "smoke_uniform", "edges_uniform"});
}
std::vector<std::string> default_bench_sets(const Chapter& chapter) {
  if (chapter.product == Product::weight_gradient) return sets_of(chapter, {"wgrad"});
  const std::vector<std::string> sets = sets_of(chapter, {"prefill", "decode"});
  return sets.empty() ? sets_of(chapter, {"peers"}) : sets;
}
std::vector<std::string> default_count_sets(const Chapter& chapter) {
  const std::vector<std::string> sets = sets_of(chapter, {"smoke"});
  return sets.empty() ? sets_of(chapter, {"smoke_uniform"}) : sets;
}

std::vector<Shape> shapes_for(const ProblemOptions& options, const Chapter& chapter,
                              const std::vector<std::string>& sets, std::vector<std::string>& left_out) {
  const Steps steps = steps_of(chapter, options.request);
  std::vector<Shape> shapes;
  if (options.one_problem()) {
    shapes.push_back({options.m, options.n, options.k, "own"});
  } else {
    const Multiples multiples = multiples_of(chapter, steps);
    ShapeLimits limits{
        multiples.n, multiples.k, {64, 64}, chapter.own_sizes != OwnSizes::never, options.seed};
    if (chapter.pads_groups) limits.pad_rows_to = chapter.m_multiple;
    if (!chapter.tiles.empty())
      limits.tile = options.request.tile.m ? options.request.tile : chapter.tiles[0];
    for (const std::string& set : sets) {
      std::vector<Shape> of_set = shape_set(set, limits);
      GG_REQUIRE(has(chapter.sets, set), "--set %s: %s cannot take this set; --help lists its sets",
                 set.c_str(), chapter.id);
      shapes.insert(shapes.end(), of_set.begin(), of_set.end());
    }
  }
  std::vector<Shape> supported;
  int shapes_seen = 0;
  for (Shape& shape : shapes) {
    shape.shared_b = shape.shared_b || options.shared_b;
    if (chapter.epilogue.op != Operator::gemm) {
      // Every other problem of a set has rows behind the last group, and not whole atoms of them.
      const bool spare = !options.one_problem() && shapes_seen++ % 2 == 0;
      shape.rows = shape.m_total() + (spare ? kSpareRows : 0);
    }
    const bool listed = shape.n.size() > 1 || shape.k.size() > 1;
    shape.own_sizes =
        chapter.own_sizes == OwnSizes::always || (chapter.own_sizes == OwnSizes::when_listed && listed);
    try {
      refuse_unsupported(shape, chapter, steps);
      supported.push_back(shape);
    } catch (const Error& error) {
      if (!is_mixed(shape.set)) throw;
      left_out.push_back(
          format("%s of set %s left out: %s", shape.describe().c_str(), shape.set.c_str(), error.what()));
    }
  }
  return supported;
}

}  // namespace gg
