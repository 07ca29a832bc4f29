// SPDX-License-Identifier: MIT
//
// The shape sets of shapes.h.

#include "common/harness/problem/shapes.h"

#include <algorithm>
#include <numeric>

#include "common/harness/base/random.h"
#include "common/harness/problem/moe.h"

namespace gg {

std::vector<int> split_rows(int rows, const std::vector<double>& shares) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  std::vector<int> m;
  for (double share : shares) m.push_back(int(rows * (share / sum)));
  int rest = rows - std::accumulate(m.begin(), m.end(), 0);
  for (size_t g = 0; rest > 0; g = (g + 1) % m.size()) {
    if (shares[g] > 0) {
      ++m[g];
      --rest;
    }
  }
  return m;
}

// An order fixed by a seed.
static void shuffle(std::vector<double>& shares) {
  for (size_t i = shares.size() - 1; i > 0; --i) std::swap(shares[i], shares[hash(2026, 0, i) % (i + 1)]);
}

static const std::vector<double> kFallingShares = {25, 20, 15, 12, 10, 9, 6, 3};  // per cent

// 32 experts with shares 1/(i+1), every fifth empty, in an order fixed by a seed.
static std::vector<int> skewed_rows(int rows) {
  std::vector<double> shares;
  for (int i = 0; i < 32; ++i) shares.push_back(i % 5 == 4 ? 0.0 : 1.0 / (i + 1));
  shuffle(shares);
  return split_rows(rows, shares);
}

static std::vector<Shape> edges(const ShapeLimits& limits) {
  const int dn = limits.n_multiple, dk = limits.k_multiple, tm = limits.tile.m, tn = limits.tile.n;
  const int n = tn + 2 * dn, k = 64 + dk, less_n = tn > dn ? tn - dn : dn;
  std::vector<int> few_rows(limits.pad_rows_to > 1 ? 40 : 70);  // more than a warp has lanes
  const size_t step = limits.pad_rows_to > 1 ? 5 : 1;           // padded, each costs a whole tile
  for (size_t g = 0; g < few_rows.size(); g += step) few_rows[g] = int(hash(7, 0, g) % 4);
  std::vector<Shape> shapes = {
      {{0, 0, 0}, {n}, {k}},                // nothing to do at all
      {{0, 0, 33, 5}, {n}, {k}},            // empty experts first
      {{7, 64, 0, 0}, {n}, {k}},            // and last
      {{0, 2 * tm + 9, 0, 0}, {n}, {k}},    // one expert owns everything
      {{1, 1, 1, 1, 1}, {n}, {k}},          // a single row each
      {{tm - 1, tm, tm + 1}, {tn}, {128}},  // one row more or less than a tile
      {{tm + 1, 3}, {less_n}, {64 - dk}},   // one step less than a tile of columns and of K
      {{3, tm + 1}, {tn + dn}, {64 + dk}},  // and one more
      {{3, 0, 17}, {dn}, {dk}},             // the least N and K there are
      {{5, 40}, {dn}, {512 + dk}},          // least N with a long K
      {{5, 40}, {3 * tn + dn}, {dk}},       // least K with a wide N
      {{77}, {n}, {k}},                     // a single group
      {few_rows, {2 * tn}, {64}},           // many tiny groups
      {{64, 128, 192, 256}, {128}, {256}},  // the sizes jagged kernels are usually shown with
  };
  if (limits.own_sizes) {
    shapes.push_back({{tm + 3, 0, 5, 2 * tm}, {dn, tn, 2 * tn + dn, less_n}, {dk, 64, 192 + dk, 64 - dk}});
    shapes.push_back({{192, 256}, {320, 448}, {128, 192}});
    shapes.push_back({{5, 0, 17, 64}, {256, dn, 64 + dn, 128}, {128, 64, 32 + dk, dk}});
  }
  return shapes;
}

// For chapters whose groups are equal, in steps of 64 rows: columns that take the tiles of 64, 32,
// 16 and 8, and K below, at and above a slice of 64.
static std::vector<Shape> edges_uniform(const ShapeLimits& limits) {
  const int dk = limits.k_multiple, less = dk < 64 ? 64 - dk : dk, more = 64 + dk;
  const auto equal = [](int groups, int m, int n, int k) {
    return Shape{std::vector<int>(size_t(groups), m), {n}, {k}};
  };
  return {
      equal(1, 64, 8, dk),                                 // the least there is
      equal(2, 64, 16, less),                              // one step less than a slice of K
      equal(3, 64, 24, 64),                                // exactly one
      equal(2, 192, 40, more),                             // one step more
      equal(1, 640, 64, 128),                              // a single long group
      equal(4, 64, 72, 128 + dk), equal(3, 192, 200, dk),  // least K with a wide N
      equal(2, 64, 8, 512 + dk),                           // least N with a long K
      equal(2, 128, 64, 1024),                             // a ring of slices goes round many times
      equal(40, 64, 16, 64),                               // many groups
  };
}

// The shapes on which the libraries are measured, from microseconds to milliseconds.
static std::vector<Shape> peers() {
  const auto equal = [](int groups, int m, int n, int k) {
    return Shape{std::vector<int>(size_t(groups), m), {n}, {k}};
  };
  std::vector<double> shares;
  for (int i = 0; i < 128; ++i) shares.push_back(1.0 / (i + 3));
  shuffle(shares);
  return {equal(8, 512, 64, 512),
          equal(8, 2048, 64, 2048),
          equal(4, 512, 512, 512),
          equal(4, 1024, 1024, 1024),
          equal(8, 4096, 6144, 7168),
          equal(8, 4096, 7168, 3072),
          equal(8, 4096, 4096, 2048),
          {split_rows(65536, shares), {1536}, {2048}},
          {split_rows(16384, kFallingShares), {14336}, {4096}},
          equal(32, 20, 6144, 7168)};
}

static std::vector<Shape> step() {
  std::vector<Shape> shapes;
  for (int m = 1; m <= 8192; m *= 2) shapes.push_back({std::vector<int>(8, m), {4096}, {4096}});
  return shapes;
}

// 16384 rows over 8 groups; the largest holds 1, 1.5, 2 .. 8 times the mean and the others share
// the rest equally.
static std::vector<Shape> skew() {
  std::vector<Shape> shapes;
  for (double ratio : {1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0}) {
    std::vector<double> shares(8, (8 - ratio) / 7);
    shares[3] = ratio;
    shapes.push_back({split_rows(16384, shares), {4096}, {4096}});
  }
  return shapes;
}

static std::vector<Shape> few_tiles() { return {{{64, 64}, {512}, {16384}}}; }
static std::vector<Shape> huge() { return {{{400000, 0, 650001}, {2056}, {2064}}}; }

static std::vector<Shape> many() {
  std::vector<int> m(1000);
  for (size_t g = 0; g < m.size(); ++g) m[g] = int(hash(11, 0, g) % 4);
  return {{m, {256}, {128}}};
}

// 80 problems of 1 to 40 groups, a third of them empty; in one of ten a group owns nearly all.
static std::vector<Shape> random_problems(const ShapeLimits& limits) {
  std::vector<Shape> shapes;
  for (uint64_t i = 0; i < 80; ++i) {
    uint64_t drawn = 0;
    const auto below = [&](int bound) { return int(hash(limits.seed, i, drawn++) % uint64_t(bound)); };
    const int most = below(2) ? 300 : 40;
    std::vector<int> m(size_t(1 + below(below(4) ? 6 : 40)));
    for (int& rows : m) rows = below(3) ? below(most) : 0;
    if (below(10) == 0) m[size_t(below(int(m.size())))] = 700 + below(1500);
    shapes.push_back({m,
                      {limits.n_multiple * (1 + below(600 / limits.n_multiple))},
                      {limits.k_multiple * (1 + below(700 / limits.k_multiple))}});
  }
  return shapes;
}

// Twelve problems of which each takes microseconds: their weights are 32 MB at most, which the L2
// keeps. Rows lie between a quarter and seven quarters of a mean; in every fourth problem all
// groups are equal.
static std::vector<Shape> ragged() {
  constexpr size_t kProblems = 12, kMostWeights = size_t(1) << 24;  // two bytes each
  std::vector<Shape> shapes;
  uint64_t drawn = 0;
  const auto below = [&drawn](int bound) { return int(hash(2026, 1, drawn++) % uint64_t(bound)); };
  while (shapes.size() < kProblems) {
    std::vector<int> m(size_t(4 + below(29)));
    const int mean = 32 << below(5), n = 512 + 128 * below(29), k = 512 + 128 * below(29);
    for (int& rows : m) rows = mean / 4 + below(mean * 3 / 2 + 1);
    if (shapes.size() % 4 == 3) m.assign(m.size(), m[0]);
    if (m.size() * size_t(n) * size_t(k) <= kMostWeights) shapes.push_back({m, {n}, {k}});
  }
  return shapes;
}

// Thirty problems of many kinds, for a race on what no choice of tiles was fitted to: 4 to 63
// groups, 8 to 2032 rows on the mean, N and K of 256 to 8064, each about as often below as above
// its geometric mean. Rows lie as in `ragged`; in every fifth problem all groups are equal, and
// in every second one N and K are multiples of 128, as in models.
static std::vector<Shape> drawn() {
  constexpr size_t kProblems = 30, kMostWeights = size_t(1) << 30;  // two bytes each
  constexpr double kMostProducts = 5e11;
  std::vector<Shape> shapes;
  uint64_t count = 0;
  const auto below = [&count](int bound) { return int(hash(2026, 2, count++) % uint64_t(bound)); };
  const auto size = [&](int step) {
    const int of_64 = 32 + below(32);  // drawn first: C++ leaves the order of two operands open
    return of_64 * (8 << below(5)) / step * step;
  };
  while (shapes.size() < kProblems) {
    const int step = shapes.size() % 2 ? 128 : 8, least = 4 << below(4);
    std::vector<int> m(size_t(least + below(least)));
    const int mean = ((64 + below(64)) << below(8)) / 8, n = size(step), k = size(step);
    for (int& rows : m) rows = mean / 4 + below(mean * 3 / 2 + 1);
    if (shapes.size() % 5 == 4) m.assign(m.size(), m[0]);
    const size_t weights = m.size() * size_t(n) * size_t(k);
    const double products = std::accumulate(m.begin(), m.end(), 0.0) * n * k;
    if (weights <= kMostWeights && products <= kMostProducts) shapes.push_back({m, {n}, {k}});
  }
  return shapes;
}

// Rounds the rows of each group up. `once`: leaves out what that makes equal to an earlier problem.
static void pad(std::vector<Shape>& shapes, int multiple, bool once) {
  std::vector<Shape> kept;
  for (Shape& shape : shapes) {
    shape.unpadded = shape.m;
    for (int& rows : shape.m) rows = int((int64_t(rows) + multiple - 1) / multiple * multiple);
    if (shape.unpadded == shape.m) shape.unpadded.clear();
    const bool known = std::any_of(kept.begin(), kept.end(), [&](const Shape& earlier) {
      return earlier.m == shape.m && earlier.n == shape.n && earlier.k == shape.k;
    });
    if (!known || !once) kept.push_back(shape);
  }
  shapes = kept;
}

static int rounded_up(int value, int step) { return (value + step - 1) / step * step; }

// For launches in each form of a chapter: a ragged problem with some slices of K and some
// columns more than a tile, and equal groups, whose first tiles may be guessed, of more rows
// than half a tile.
static std::vector<Shape> forms(const ShapeLimits& limits) {
  const int n = rounded_up(136, limits.n_multiple), k = rounded_up(328, limits.k_multiple);
  const std::vector<int> ragged =
      limits.pad_rows_to > 1 ? std::vector<int>{0, 200} : std::vector<int>{5, 0, 200};
  return {{ragged, {n}, {k}}, {{200, 200}, {n}, {k}}};
}

// Few rows and a sum of 33 slices of 64: with so many, tiles are claimed, and every block
// has several tiles.
static std::vector<Shape> long_sums(const ShapeLimits& limits) {
  return {{{5, 0, 70, 33}, {rounded_up(136, limits.n_multiple)}, {rounded_up(2056, limits.k_multiple)}}};
}

// For sums over rows: groups that end a row before a slice of 64 ends, with it, and a row after it,
// or in its first row; and sums of many slices.
static std::vector<Shape> ends(const ShapeLimits& limits) {
  const int n = rounded_up(264, limits.n_multiple), k = rounded_up(136, limits.k_multiple);
  return {{{1, 63, 64, 65, 0, 15, 16, 17, 128, 127, 129}, {n}, {k}},
          {{700, 0, 321}, {rounded_up(520, limits.n_multiple)}, {rounded_up(520, limits.k_multiple)}}};
}

// Weight gradients of models: DeepSeek-V3's experts (7168 x 4096 and 2048 x 7168) and Qwen3's
// (2048 x 1536 and 4096 x 3072), with equal groups and with rows as a router deals them out.
static std::vector<Shape> wgrad() {
  const auto equal = [](int groups, int m, int n, int k) {
    return Shape{std::vector<int>(size_t(groups), m), {n}, {k}};
  };
  std::vector<double> shares;
  for (int i = 0; i < 128; ++i) shares.push_back(1.0 / (i + 3));
  shuffle(shares);
  std::vector<int> few = split_rows(32768, shares);
  for (size_t g = 0; g < few.size(); g += 8) few[g] = 0;
  return {equal(4, 8192, 4096, 7168),
          equal(8, 4096, 4096, 7168),
          equal(8, 4096, 7168, 2048),
          equal(16, 2048, 4096, 7168),
          {split_rows(32768, kFallingShares), {4096}, {7168}},
          {skewed_rows(16384), {4096}, {7168}},
          {split_rows(16384, kFallingShares), {3072}, {4096}},
          {few, {1536}, {2048}},
          equal(128, 256, 1536, 2048)};
}

static std::vector<Shape> smoke_uniform(const ShapeLimits& limits) {
  const int step = limits.k_multiple;
  return {{std::vector<int>(3, 128), {72}, {(80 + step - 1) / step * step}}};
}

static std::vector<Shape> helion() {
  std::vector<Shape> shapes = {{{64, 128, 192, 256}, {128}, {256}},
                               {split_rows(16384, kFallingShares), {14336}, {4096}}};
  for (Shape& shape : shapes) shape.shared_b = true;
  return shapes;
}

static std::vector<Shape> far() {
  std::vector<Shape> shapes = {{{5, 17, 40}, {72}, {40}}};
  // An offset of 32 bits is negative, or ends in another B.
  shapes[0].b_stride = (int64_t(1) << 31) + 64;
  return shapes;
}

const std::vector<ShapeSet>& shape_sets() {
  using Limits = const ShapeLimits&;
  using Shapes = std::vector<Shape>;
  static const std::vector<ShapeSet> sets = {
      {.name = "smoke",
       .what = "four groups, one empty, one ragged: small enough for any machine",
       .small = true,
       .make = [](Limits) -> Shapes {
         return {{{5, 0, 17, 64}, {256}, {128}}};
       }},
      {.name = "edges",
       .what = "empty experts, one expert owning all, single rows, sizes around a tile, the least N and K",
       .edges = true,
       .make = edges},
      {.name = "long", .what = "four groups of few rows, K=2056: many slices a tile", .make = long_sums},
      {.name = "ends", .what = "groups that end around a slice of 64 rows, or after several", .make = ends},
      {.name = "wgrad",
       .what =
           "weight gradients of models: 4 to 128 groups of equal and of uneven rows, K and N of 1536 to 7168",
       .mixed = true,
       .make = [](Limits) { return wgrad(); }},
      {.name = "forms",
       .what = "three groups, one empty, and two equal ones: for each form of a chapter",
       .make = forms},
      {.name = "smoke_uniform",
       .what = "three equal groups: small enough for any machine",
       .small = true,
       .make = smoke_uniform},
      {.name = "edges_uniform",
       .what = "equal groups: one and many, the least sizes, N and K around the tiles' steps",
       .edges = true,
       .make = edges_uniform},
      {.name = "prefill",
       .what = "8 groups of 2048 rows, N=4096, K=7168",
       .make = [](Limits) -> Shapes {
         return {{std::vector<int>(8, 2048), {4096}, {7168}}};
       }},
      {.name = "skewed",
       .what = "16384 rows over 32 groups by shares 1/(i+1), every fifth empty, N=4096, K=7168",
       .make = [](Limits) -> Shapes {
         return {{skewed_rows(16384), {4096}, {7168}}};
       }},
      {.name = "decode",
       .what = "512 rows over 32 groups by the same shares, N=4096, K=7168",
       .make = [](Limits) -> Shapes {
         return {{skewed_rows(512), {4096}, {7168}}};
       }},
      {.name = "step",
       .what = "8 equal groups of 1, 2, 4 .. 8192 rows, N=4096, K=4096",
       .mixed = true,
       .make = [](Limits) { return step(); }},
      {.name = "skew",
       .what = "16384 rows over 8 groups, the largest 1 to 8 times the mean, N=4096, K=4096",
       .make = [](Limits) { return skew(); }},
      {.name = "helion",
       .what = "one B for all groups: 64..256 rows, N=128, K=256; 16384 uneven rows, N=14336, K=4096",
       .make = [](Limits) { return helion(); }},
      {.name = "peers",
       .what = "what libraries are timed on: seven of equal groups, from 8 of M=512 N=64 K=512 to 8 of "
               "M=4096; 65536 and 16384 jagged rows; 32 groups of 20 rows",
       .mixed = true,
       .make = [](Limits) { return peers(); }},
      {.name = "moe",
       .what = "as a router deals rows out to experts of models: 8 to 128 groups, 512 to 32768 rows, N and "
               "K of 1024 to 28672",
       .mixed = true,
       .make = [](Limits) { return moe(); }},
      {.name = "ragged",
       .what = "twelve of microseconds: 5 to 29 groups of 12 to 862 rows, every fourth of equal groups, N of "
               "512 to 2944, K of 512 to 1792",
       .mixed = true,
       .make = [](Limits) { return ragged(); }},
      {.name = "drawn",
       .what = "thirty of many kinds, to race on what no choice of tiles was fitted to: 4 to 63 groups, 8 to "
               "2032 rows on the mean, N and K of 256 to 8064",
       .mixed = true,
       .make = [](Limits) { return drawn(); }},
      {.name = "few_tiles",
       .what = "2 groups of 64 rows, N=512, K=16384: few tiles, each a long sum",
       .make = [](Limits) { return few_tiles(); }},
      {.name = "many",
       .what = "1000 groups of 0 to 3 rows, N=256, K=128",
       .make = [](Limits) { return many(); }},
      {.name = "random",
       .what = "80 problems drawn from --seed: sizes, empty groups, one that owns nearly all",
       .make = random_problems},
      {.name = "huge",
       .what = "more than 2^31 elements in A and in D",
       .make = [](Limits) { return huge(); }},
      {.name = "huge_b",
       .what = "more than 2^31 elements in [G,K,N]: 500 groups of 64 rows, N=2112, K=2080",
       .make = [](Limits) -> Shapes {
         return {{std::vector<int>(500, 64), {2112}, {2080}}};
       }},
      {.name = "far",
       .what = "three groups whose B lie 2^31 elements apart, with nothing between them",
       .make = [](Limits) { return far(); }},
  };
  return sets;
}

const ShapeSet* find_shape_set(const std::string& name) {
  for (const ShapeSet& set : shape_sets()) {
    if (name == set.name) return &set;
  }
  return nullptr;
}

bool is_edges(const std::string& set) {
  const ShapeSet* found = find_shape_set(set);
  return found && found->edges;
}

bool is_mixed(const std::string& set) {
  const ShapeSet* found = find_shape_set(set);
  return found && found->mixed;
}

bool is_small(const std::string& set) {
  const ShapeSet* found = find_shape_set(set);
  return found ? found->small : set == "own";
}

std::vector<Shape> shape_set(const std::string& name, const ShapeLimits& limits) {
  const ShapeSet* set = find_shape_set(name);
  if (!set) {
    std::string known;
    for (const ShapeSet& each : shape_sets()) known += (known.empty() ? "" : ", ") + std::string(each.name);
    throw Error(Exit::bad_input,
                format("--set %s: no such shape set; known: %s", name.c_str(), known.c_str()));
  }
  std::vector<Shape> shapes = set->make(limits);
  for (Shape& shape : shapes) shape.set = name;
  if (limits.pad_rows_to > 1) pad(shapes, limits.pad_rows_to, set->edges);
  return shapes;
}

}  // namespace gg
