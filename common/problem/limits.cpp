// SPDX-License-Identifier: MIT
//
// Which problems a chapter works on, and the sentences that refuse the others.

#include "common/problem/limits.h"

#include <algorithm>
#include <numeric>

#include "common/base/text.h"
#include "common/problem/shapes.h"

namespace gg {

constexpr int kSpareRows = 136;

int most_groups(const Chapter& chapter) {
  return chapter.epilogue.op == Operator::gemm ? kMostGroups : kMostExperts;
}

Steps steps_of(const Chapter& chapter, const Formats& formats, BLayout b_layout) {
  Steps steps;
  if (chapter.epilogue.op == Operator::gemm) return steps;
  const auto row = [](Format type) { return 128 / format_info(type).bits; };  // elements of 16 bytes
  const auto add = [](int& step, std::string& why, int multiple, const std::string& reason) {
    const int both = std::lcm(step, multiple);
    if (both > step) why = reason;
    step = both;
  };
  const auto rows_of = [&](const char* matrix, Format type) {
    return format("a row of %s in %s is whole 16 bytes", matrix, format_info(type).name);
  };
  add(steps.k, steps.why_k, row(formats.a), rows_of("A", formats.a));
  add(steps.n, steps.why_n, row(formats.d), rows_of("D", formats.d));
  if (b_layout == BLayout::kn) add(steps.n, steps.why_n, row(formats.b), rows_of("B", formats.b));
  const bool is_gated = chapter.epilogue.op != Operator::quant;
  if (is_gated) add(steps.n, steps.why_n, 64, "32 columns of gate are followed by 32 of up");
  return steps;
}

void refuse_unsupported(const Shape& shape, const Chapter& chapter, int tile_k, const Steps& steps) {
  GG_REQUIRE(shape.groups() >= 1, "no groups: at least one is wanted");
  GG_REQUIRE(shape.groups() <= most_groups(chapter), "%d groups: at most %d are accepted", shape.groups(),
             most_groups(chapter));
  GG_REQUIRE(shape.m_total() <= INT32_MAX - 2 * kGuardRows,
             "%lld rows in all: at most %d are accepted (rows are counted in int32)",
             static_cast<long long>(shape.m_total()), INT32_MAX - 2 * kGuardRows);
  for (int g = 0; g < shape.groups(); ++g) {
    const int m = shape.m[size_t(g)], n = shape.n_of(g), k = shape.k_of(g);
    GG_REQUIRE(n >= 1, "N=%d: at least 1 is wanted", n);
    GG_REQUIRE(k >= 1, "K=%d: at least 1 is wanted", k);
    GG_REQUIRE(k % chapter.k_multiple == 0, "K=%d: %s wants multiples of %d (%s)", k, chapter.id,
               chapter.k_multiple, chapter.multiple_reason);
    GG_REQUIRE(n % chapter.n_multiple == 0, "N=%d: %s wants multiples of %d (%s)", n, chapter.id,
               chapter.n_multiple, chapter.multiple_reason);
    GG_REQUIRE(m % chapter.m_multiple == 0, "M=%d of group %d: %s wants multiples of %d (%s)", m, g,
               chapter.id, chapter.m_multiple, chapter.multiple_reason);
    GG_REQUIRE(!chapter.equal_groups || m == shape.m[0],
               "group %d has %d rows, group 0 has %d: %s wants equal groups", g, m, shape.m[0], chapter.id);
    GG_REQUIRE(k % steps.k == 0, "K=%d: %s wants multiples of %d here (%s)", k, chapter.id, steps.k,
               steps.why_k.c_str());
    GG_REQUIRE(n % steps.n == 0, "N=%d: %s wants multiples of %d here (%s)", n, chapter.id, steps.n,
               steps.why_n.c_str());
    GG_REQUIRE(!tile_k || k % tile_k == 0, "K=%d: --tile-k %d wants multiples of %d", k, tile_k, tile_k);
  }
}

std::vector<std::string> sets_of(const Chapter& chapter, const std::vector<const char*>& sets) {
  std::vector<std::string> taken;
  for (const char* set : sets) {
    if (has(chapter.sets, set)) taken.push_back(set);
  }
  return taken;
}
std::vector<std::string> default_check_sets(const Chapter& chapter) {
  return sets_of(chapter, {"smoke", "edges", "smoke_uniform", "edges_uniform"});
}
std::vector<std::string> default_bench_sets(const Chapter& chapter) {
  const std::vector<std::string> sets = sets_of(chapter, {"prefill", "decode"});
  return sets.empty() ? sets_of(chapter, {"peers"}) : sets;
}
std::vector<std::string> default_count_sets(const Chapter& chapter) {
  const std::vector<std::string> sets = sets_of(chapter, {"smoke"});
  return sets.empty() ? sets_of(chapter, {"smoke_uniform"}) : sets;
}

std::vector<Shape> shapes_for(const ProblemOptions& options, const Chapter& chapter,
                              const std::vector<std::string>& sets, std::vector<std::string>& left_out) {
  std::vector<Shape> shapes;
  if (options.one_problem()) {
    shapes.push_back({options.m, options.n, options.k, "own"});
  } else {
    const int k_multiple =
        std::lcm(std::lcm(chapter.k_multiple, options.steps.k), std::max(options.tile_k, 1));
    const int n_multiple = std::lcm(chapter.n_multiple, options.steps.n);
    ShapeLimits limits{n_multiple, k_multiple, {64, 64}, chapter.own_sizes != OwnSizes::never, options.seed};
    if (chapter.pads_groups) limits.pad_rows_to = chapter.m_multiple;
    if (!chapter.tiles.empty()) limits.tile = options.tile.m ? options.tile : chapter.tiles[0];
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
      refuse_unsupported(shape, chapter, options.tile_k, options.steps);
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
