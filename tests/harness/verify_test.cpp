// SPDX-License-Identifier: MIT
//
// The work of the trials around a launch, on host memory: running out of memory, other offsets, the
// shape sets, NaN in given operands. That wrong launches fail is the subject of planted_bugs.

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "common/harness/problem/shapes.h"
#include "common/harness/verify/problem_files.h"
#include "common/harness/verify/trials.h"
#include "tests/process.h"

namespace gg {
namespace {

// One launch on the host; `skipped` says of which elements of D (row counted from the first
// group's) to leave as they are, `spoilt` where to write NaN.
using Where = std::function<bool(int row, int col)>;
Launch product(Where skipped, Where spoilt) {
  return [=](const Problem& p, cudaStream_t) {
    const int32_t* offsets = p.offsets().as<int32_t>();
    for (int g = 0; g < p.groups(); ++g) {
      for (int row = offsets[g]; row < offsets[g + 1]; ++row) {
        for (int col = 0; col < p.n(); ++col) {
          if (skipped(row, col)) continue;
          float sum = 0;
          for (int kk = 0; kk < p.k(); ++kk) {
            sum += to_float(p.a<bf16>()[int64_t(row) * p.k() + kk]) *
                   to_float(p.b<bf16>()[g * p.b_group_stride() + int64_t(kk) * p.n() + col]);
          }
          p.d<bf16>()[int64_t(row) * p.n() + col] = from_float<bf16>(spoilt(row, col) ? NAN : sum);
        }
      }
    }
  };
}
const Where kNowhere = [](int, int) { return false; };
const Launch kClean = product(kNowhere, kNowhere);

std::string free_and_needed(const Error& error) { return error.what(); }

TEST(Memory, TooLittleIsSaidBeforeAnythingRunsWithBytesNeededAndFree) {
  const Shape shape{{64, 64}, {256}, {128}};
  const std::unique_ptr<Machine> machine = host_machine(100000);
  const auto error = testing_gg::error_of([&] { check_problem(*machine, {}, kClean, shape, {}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, Exit::no_memory);
  const Layout layout = packed_layout(shape);
  const int64_t needed = 2 * (layout.a_elems + layout.b_elems + layout.d_elems);
  EXPECT_NE(free_and_needed(*error).find(format("%lld bytes", static_cast<long long>(needed))),
            std::string::npos)
      << error->what();
  EXPECT_NE(free_and_needed(*error).find("100000 are free"), std::string::npos) << error->what();
}

// Room for A, B and D but not for copies of D.
TEST(Memory, WhatRunsOutAfterTheOperandsIsNamedToo) {
  const Shape shape{{64, 64}, {256}, {128}};
  const std::unique_ptr<Machine> machine = host_machine(800000);
  const auto error = testing_gg::error_of([&] { check_problem(*machine, {}, kClean, shape, {}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, Exit::no_memory);
  EXPECT_TRUE(testing_gg::one_line_with(error->what() + std::string("\n"), "copy of D needs 196608 bytes"));
}

TEST(Memory, SizesBeyond64BitsAreNoMemoryToo) {
  // 2^64 elements of B: 0.
  for (Shape shape : {Shape{std::vector<int>(4096, 1), {1 << 30}, {1 << 22}},
                      Shape{{INT32_MAX - 256}, {INT32_MAX}, {INT32_MAX}}}) {
    for (bool own_sizes : {false, true}) {
      shape.own_sizes = own_sizes;
      const auto error = testing_gg::error_of([&] { Buffers(*host_machine(), {}, shape); });
      ASSERT_TRUE(error) << shape.describe();
      EXPECT_EQ(error->code, Exit::no_memory);
    }
  }
}

TEST(OtherOffsets, MoveTheGroupsAndKeepTheRows) {
  const std::vector<std::vector<int>> row_counts = {
      {5, 0, 17, 64}, {64, 64, 64}, {0, 9}, {1, 1}, {7, 7, 7, 8}};
  for (const std::vector<int>& m : row_counts) {
    const Shape shape{m, {64}, {32}}, other = other_offsets(shape);
    EXPECT_NE(other.m, m);
    EXPECT_EQ(other.m_total(), shape.m_total()) << shape.describe();
    EXPECT_EQ(other.groups(), shape.groups());
    for (int rows : other.m) EXPECT_GE(rows, 0);
  }
}

TEST(OtherOffsets, ASingleGroupLosesARowAndNothingStaysNothing) {
  EXPECT_EQ(other_offsets({{64}, {8}, {8}}).m, std::vector<int>{63});
  EXPECT_EQ(other_offsets({{0}, {8}, {8}}).m, std::vector<int>{0});
  EXPECT_EQ(other_offsets({{0, 0}, {8}, {8}}).m, (std::vector<int>{0, 0}));
}

TEST(OtherOffsets, KeepToAStep) {
  EXPECT_EQ(other_offsets({{128, 128}, {8}, {8}}, 64).m, (std::vector<int>{64, 192}));
  EXPECT_EQ(other_offsets({{64}, {8}, {8}}, 64).m, std::vector<int>{0});
}

// D may have another type than A and B: its own rounding decides, not that of the inputs.
TEST(OutputTypes, DecideTheRounding) {
  const Shape shape{{40, 0, 33}, {72}, {256}};
  for (const Format in : {Format::bf16, Format::f16}) {
    for (const Format out : {Format::f32, Format::f16, Format::bf16}) {
      gg::Setup setup;
      setup.request.formats = {in, in, out};
      const auto rounded_first_to = [&](Format middle) {
        return [=](const Problem& p, cudaStream_t) {
          for (const Group& group : p.layout().groups) {
            const Matrices all{p.a<char>() - p.layout().a_start * 2, p.b<char>(), nullptr, p.formats()};
            std::vector<double> sums(size_t(group.m) * size_t(group.n)), sizes(sums.size());
            reference_rows(all, group, 0, group.m, sums.data(), sizes.data());
            for (size_t i = 0; i < sums.size(); ++i) {
              const double sum = decode(middle, encode(middle, sums[i]));
              const int64_t element = group.d.offset - p.layout().d_start + int64_t(i);
              store_code(p.d<char>(), out, element, encode(out, sum));
            }
          }
        };
      };
      const auto machine = host_machine();
      const CheckResult right = check_problem(*machine, setup, rounded_first_to(Format::f32), shape, {});
      EXPECT_FALSE(right.failure) << right.failure->sentence;
      // Not a step finer than the output.
      const Format cut = out == Format::bf16 ? Format::f16 : Format::bf16;
      const CheckResult wrong = check_problem(*machine, setup, rounded_first_to(cut), shape, {});
      EXPECT_TRUE(wrong.failure) << format_info(in).name << " " << format_info(out).name;
    }
  }
}

// Chapters of equal groups have no other offsets: their second launch finds other data, and
// the same rows.
TEST(EqualGroups, AreLaunchedAgainOnOtherData) {
  gg::Setup setup;
  setup.equal_groups = true;
  const Shape shape{{64, 64}, {8}, {16}};
  std::vector<uint32_t> first_of_a;
  const Launch launch = [&](const Problem& p, cudaStream_t stream) {
    EXPECT_EQ(p.offsets().as<int32_t>()[1], 64);
    first_of_a.push_back(load_code(p.a<bf16>(), Format::bf16, 0));
    kClean(p, stream);
  };
  const CheckResult result = check_problem(*host_machine(), setup, launch, shape, {});
  EXPECT_FALSE(result.failure) << result.failure->sentence;
  EXPECT_EQ(first_of_a.size(), 4u);
  EXPECT_NE(first_of_a.front(), first_of_a.back());
  // Later outputs stay as they are.
  const Launch once = [&](const Problem& p, cudaStream_t stream) {
    const uint32_t there = load_code(p.d<bf16>(), Format::bf16, 0);
    if (there == 0xFFFF || there == 0x5A5A) kClean(p, stream);
  };
  const CheckResult stale = check_problem(*host_machine(), setup, once, shape, {});
  ASSERT_TRUE(stale.failure);
  EXPECT_EQ(stale.failure->symptom, Symptom::stale) << stale.failure->sentence;
  EXPECT_NE(stale.failure->sentence.find("other data, over the previous output"), std::string::npos)
      << stale.failure->sentence;
}

TEST(Ideas, AreOnUnlessSwitchedOffAndMustBeListed) {
  gg::Setup setup;
  setup.request.ideas_off = {{{"multicast", true}, {"overlap", false}}};
  const std::unique_ptr<Machine> machine = host_machine();
  const Buffers buffers(*machine, setup, {{4}, {8}, {8}});
  EXPECT_TRUE(buffers.problem().is_off("multicast"));
  EXPECT_FALSE(buffers.problem().is_off("overlap"));
  const IdeasOff none_off = {{{"multicast", false}, {"overlap", false}}};
  EXPECT_FALSE(buffers.problem().with_ideas(none_off).is_off("multicast"));
  EXPECT_TRUE(buffers.problem().is_off("multicast"));
  const auto error = testing_gg::error_of([&] { buffers.problem().is_off("overlapp"); });
  ASSERT_TRUE(error);
  EXPECT_NE(std::string(error->what()).find("'overlapp'"), std::string::npos) << error->what();
}

const ShapeLimits kLimits[] = {{1, 1, {64, 64}, false},  {8, 8, {64, 64}, false}, {8, 8, {128, 128}, false},
                               {8, 8, {32, 128}, false}, {8, 8, {64, 64}, true},  {4, 16, {128, 64}, true}};

TEST(ShapeSets, EveryShapeRespectsTheLimitsAndNoneIsSquare) {
  for (const ShapeLimits& limits : kLimits) {
    for (const ShapeSet& set : shape_sets()) {
      // The others have sizes of their own.
      if (limits.k_multiple > 8 && std::string(set.name).find("edges") != 0) continue;
      const std::vector<Shape> shapes = shape_set(set.name, limits);
      EXPECT_FALSE(shapes.empty()) << set.name;
      bool square_only = true;
      for (const Shape& shape : shapes) {
        EXPECT_EQ(shape.set, set.name);
        EXPECT_LE(shape.groups(), 4096);
        if (!limits.own_sizes) {
          EXPECT_EQ(shape.n.size() * shape.k.size(), 1u) << set.name;
        }
        for (int g = 0; g < shape.groups(); ++g) {
          EXPECT_GE(shape.m[size_t(g)], 0);
          EXPECT_TRUE(shape.n_of(g) >= 1 && shape.n_of(g) % limits.n_multiple == 0) << shape.describe();
          EXPECT_TRUE(shape.k_of(g) >= 1 && shape.k_of(g) % limits.k_multiple == 0) << shape.describe();
          const int m = shape.m[size_t(g)];
          square_only = square_only && (m == 0 || (m == shape.n_of(g) && m == shape.k_of(g)));
        }
      }
      EXPECT_FALSE(square_only) << set.name;
    }
  }
}

TEST(ShapeSets, EdgesHoldTheEdges) {
  for (const ShapeLimits& limits : kLimits) {
    bool least = false, none = false, first_empty = false, last_empty = false, owns_all = false,
         single = false;
    std::vector<int> around;  // rows one below, at and one above the tile
    for (const Shape& shape : shape_set("edges", limits)) {
      const auto empty = std::count(shape.m.begin(), shape.m.end(), 0);
      least |=
          shape.n_of(0) == limits.n_multiple && shape.k_of(0) == limits.k_multiple && shape.m_total() > 0;
      none |= shape.m_total() == 0;
      first_empty |= shape.m.front() == 0 && shape.m_total() > 0;
      last_empty |= shape.m.back() == 0 && shape.m_total() > 0;
      owns_all |= empty > 0 && empty == shape.groups() - 1 && shape.m_total() > limits.tile.m;
      single |= shape.groups() > 1 && shape.m_max() == 1;
      for (int rows : shape.m) {
        if (std::abs(rows - limits.tile.m) <= 1) around.push_back(rows - limits.tile.m);
      }
    }
    EXPECT_TRUE(least && none && first_empty && last_empty && owns_all && single);
    for (int distance : {-1, 0, 1}) EXPECT_GT(std::count(around.begin(), around.end(), distance), 0);
  }
}

TEST(ShapeSets, SkewedAndDecodeShareTheirRowsAsSaid) {
  for (const auto& [name, total] : {std::pair{"skewed", 16384}, std::pair{"decode", 512}}) {
    const Shape shape = shape_set(name, {})[0];
    EXPECT_EQ(shape.groups(), 32);
    EXPECT_EQ(shape.m_total(), total);
    EXPECT_EQ(std::count(shape.m.begin(), shape.m.end(), 0), 6);  // every fifth of 32
    EXPECT_FALSE(std::is_sorted(shape.m.rbegin(), shape.m.rend()));
    std::vector<int> rows = shape.m;
    std::sort(rows.rbegin(), rows.rend());
    EXPECT_NEAR(double(rows[0]) / rows[1], 2, 0.1);  // shares 1 and 1/2
    EXPECT_EQ(shape.n_of(0), 4096);
    EXPECT_EQ(shape.k_of(0), 7168);
  }
}

TEST(ShapeSets, LargeOnesHaveTheSizesTheyAreKnownFor) {
  const Shape huge = shape_set("huge", {})[0], prefill = shape_set("prefill", {})[0];
  EXPECT_GT(huge.m_total() * huge.k_of(0), int64_t(1) << 31);
  EXPECT_GT(huge.m_total() * huge.n_of(0), int64_t(1) << 31);
  EXPECT_EQ(prefill.m, std::vector<int>(8, 2048));
  EXPECT_EQ(shape_set("many", {})[0].groups(), 1000);
  EXPECT_EQ(shape_set("many", {})[0].m_max(), 3);
  ShapeLimits limits{8, 16};
  const std::vector<Shape> drawn = shape_set("random", limits);
  EXPECT_EQ(drawn.size(), 80u);
  for (const Shape& shape : drawn) {
    EXPECT_TRUE(shape.n[0] % 8 == 0 && shape.n[0] >= 8 && shape.k[0] % 16 == 0 && shape.k[0] >= 16)
        << shape.describe();
  }
  EXPECT_EQ(shape_set("random", limits)[7].m, drawn[7].m);
  limits.seed = 1;
  EXPECT_NE(shape_set("random", limits)[7].describe(), drawn[7].describe());
  const std::vector<Shape> step = shape_set("step", {});
  ASSERT_EQ(step.size(), 14u);
  EXPECT_EQ(step.back().m, std::vector<int>(8, 8192));
  const std::vector<Shape> helion = shape_set("helion", {});
  ASSERT_EQ(helion.size(), 2u);
  EXPECT_EQ(helion[0].m, (std::vector<int>{64, 128, 192, 256}));
  EXPECT_EQ(helion[1].m_total(), 16384);
  EXPECT_TRUE(helion[0].shared_b && helion[1].shared_b);
  for (const Shape& shape : shape_set("skew", {})) EXPECT_EQ(shape.m_total(), 16384);
}

TEST(ShapeSets, PeersAreTheTenRowsOfTheTable) {
  const std::vector<Shape> peers = shape_set("peers", {});
  std::vector<std::string> rows;
  for (const Shape& shape : peers) rows.push_back(shape.describe());
  EXPECT_EQ(rows, (std::vector<std::string>{
                      "G=8 M=4096 (512) N=64 K=512", "G=8 M=16384 (2048) N=64 K=2048",
                      "G=4 M=2048 (512) N=512 K=512", "G=4 M=4096 (1024) N=1024 K=1024",
                      "G=8 M=32768 (4096) N=6144 K=7168", "G=8 M=32768 (4096) N=7168 K=3072",
                      "G=8 M=32768 (4096) N=4096 K=2048", "G=128 M=65536 (127..5533) N=1536 K=2048",
                      "G=8 M=16384 (491..4097) N=14336 K=4096", "G=32 M=640 (20) N=6144 K=7168"}));
  std::vector<int> shares = peers[7].m;
  EXPECT_FALSE(std::is_sorted(shares.rbegin(), shares.rend()));
  std::sort(shares.rbegin(), shares.rend());
  EXPECT_NEAR(double(shares[0]) / shares[1], 4.0 / 3, 0.01);     // shares 1/3 and 1/4
  EXPECT_NEAR(double(shares[0]) / shares[127], 130.0 / 3, 0.5);  // and 1/130
  EXPECT_EQ(peers[8].m[0], 4097);                                // 25 % and a row left by rounding
}

TEST(ShapeSets, RaggedOnesAreDrawnOnce) {
  std::vector<std::string> rows;
  for (const Shape& shape : shape_set("ragged", {})) {
    rows.push_back(shape.describe());
    EXPECT_LE(size_t(shape.groups()) * size_t(shape.n_of(0)) * size_t(shape.k_of(0)), size_t(1) << 24);
  }
  EXPECT_EQ(rows, (std::vector<std::string>{
                      "G=7 M=251 (14..48) N=2944 K=512", "G=17 M=8031 (171..862) N=1152 K=512",
                      "G=7 M=248 (12..56) N=768 K=1408", "G=17 M=1768 (104) N=1408 K=640",
                      "G=11 M=2946 (69..417) N=512 K=640", "G=7 M=380 (17..102) N=640 K=1792",
                      "G=8 M=1772 (134..383) N=1792 K=1152", "G=6 M=522 (87) N=640 K=512",
                      "G=13 M=6673 (166..824) N=768 K=1024", "G=5 M=189 (21..67) N=1920 K=896",
                      "G=16 M=992 (26..108) N=896 K=640", "G=29 M=11948 (412) N=640 K=512"}));
}

TEST(ShapeSets, UniformOnesHaveEqualGroupsInSteps) {
  const ShapeLimits limits{8, 16, {64, 64}, false};
  std::vector<Shape> shapes = shape_set("edges_uniform", limits);
  for (int n : {8, 16, 24, 40, 64, 72, 200}) {
    EXPECT_TRUE(std::any_of(shapes.begin(), shapes.end(), [&](const Shape& s) { return s.n_of(0) == n; }))
        << n;
  }
  for (int k : {16, 48, 64, 80}) {
    EXPECT_TRUE(std::any_of(shapes.begin(), shapes.end(), [&](const Shape& s) { return s.k_of(0) == k; }))
        << k;
  }
  for (int m : {64, 192, 640}) {
    EXPECT_TRUE(std::any_of(shapes.begin(), shapes.end(), [&](const Shape& s) { return s.m[0] == m; })) << m;
  }
  shapes.push_back(shape_set("smoke_uniform", limits)[0]);
  EXPECT_EQ(shapes.back().describe(), "G=3 M=384 (128) N=72 K=80");
  for (const Shape& shape : shapes) {
    EXPECT_EQ(shape.m, std::vector<int>(shape.m.size(), shape.m[0]));
    EXPECT_EQ(shape.m[0] % 64, 0);
    EXPECT_TRUE(shape.n_of(0) % 8 == 0 && shape.k_of(0) % 16 == 0) << shape.describe();
  }
}

TEST(ShapeSets, DrawnOnesAreOfManyKinds) {
  const std::vector<Shape> drawn = shape_set("drawn", {});
  ASSERT_EQ(drawn.size(), 30u);
  for (size_t i = 0; i < drawn.size(); ++i) {
    const Shape& shape = drawn[i];
    const int64_t n = shape.n_of(0), k = shape.k_of(0), rows = std::accumulate(shape.m.begin(), shape.m.end(), int64_t(0));
    EXPECT_TRUE(shape.groups() >= 4 && shape.groups() < 64) << shape.describe();
    EXPECT_LE(rows, 2048 * shape.groups()) << shape.describe();
    EXPECT_TRUE(n >= 256 && n <= 8064 && k >= 256 && k <= 8064) << shape.describe();
    EXPECT_TRUE(i % 2 == 0 || (n % 128 == 0 && k % 128 == 0)) << shape.describe();
    const auto [least, most] = std::minmax_element(shape.m.begin(), shape.m.end());
    EXPECT_EQ(*least == *most, i % 5 == 4) << shape.describe();
    EXPECT_LE(shape.groups() * n * k, int64_t(1) << 30) << shape.describe();
    EXPECT_LE(double(rows) * double(n) * double(k), 5e11) << shape.describe();
  }
  EXPECT_EQ(drawn[0].describe(), "G=19 M=1053 (13..94) N=2624 K=3008");
  EXPECT_EQ(drawn[29].describe(), "G=7 M=112 (16) N=7168 K=7936");
}

TEST(ShapeSets, AnUnknownOneIsAnsweredWithThoseThereAre) {
  const auto error = testing_gg::error_of([] { shape_set("smok", {}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, Exit::bad_input);
  for (const ShapeSet& set : shape_sets()) {
    EXPECT_NE(std::string(error->what()).find(set.name), std::string::npos) << error->what();
  }
}

TEST(SplitRows, DealsOutEveryRow) {
  EXPECT_EQ(split_rows(10, {1, 1, 1}), (std::vector<int>{4, 3, 3}));
  EXPECT_EQ(split_rows(7, {0, 1, 0}), (std::vector<int>{0, 7, 0}));
  EXPECT_EQ(split_rows(0, {1, 2}), (std::vector<int>{0, 0}));
}

// Two groups of 3 and 2 rows, 4 columns, K = 5; NaN in row 1 of A and in column 2 of the
// second group's B.
GivenOperands with_nan() {
  GivenOperands given;
  given.shape = {{3, 2}, {4}, {5}, "files"};
  given.rows_of_a = 5;
  uint64_t index = 0;
  const auto add = [&](std::vector<char>& matrices, int rows, int cols, const Where& nan) {
    std::vector<char> matrix(size_t(rows * cols) * 2);
    for (int i = 0; i < rows * cols; ++i) {
      const Fill fill{Fill::Kind::normal, 0, 1, 1};
      const float value = nan(i / cols, i % cols) ? NAN : random_value(fill, index++, normal_quantiles());
      store_code(matrix.data(), Format::bf16, i, encode(Format::bf16, value));
    }
    matrices.insert(matrices.end(), matrix.begin(), matrix.end());
  };
  add(given.a, 3, 5, [](int row, int k) { return row == 1 && k == 4; });
  add(given.a, 2, 5, kNowhere);
  add(given.b, 5, 4, kNowhere);
  add(given.b, 5, 4, [](int k, int col) { return k == 0 && col == 2; });
  return given;
}

TEST(CheckGiven, NanPassesWhereTheReferenceIsNan) {
  const CheckResult result = check_given(*host_machine(), {}, kClean, with_nan());
  EXPECT_FALSE(result.failure) << result.failure->sentence;
}

TEST(CheckGiven, AnUnwrittenNanIsToldFromAWrittenOne) {
  for (const Where& skipped : {Where([](int row, int) { return row == 1; }),
                               Where([](int row, int col) { return row == 3 && col == 2; })}) {
    const CheckResult result = check_given(*host_machine(), {}, product(skipped, kNowhere), with_nan());
    ASSERT_TRUE(result.failure);
    EXPECT_EQ(result.failure->symptom, Symptom::unwritten) << result.failure->sentence;
  }
}

TEST(CheckGiven, NanWhereANumberBelongsFails) {
  const Where spoilt = [](int row, int col) { return row == 4 && col == 3; };
  const CheckResult result = check_given(*host_machine(), {}, product(kNowhere, spoilt), with_nan());
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->symptom, Symptom::nan) << result.failure->sentence;
  EXPECT_NE(result.failure->sentence.find("group 1 row 1 column 3"), std::string::npos)
      << result.failure->sentence;
}

// Each neighbour of a sum is within the limit; one launch writes one of them, the next the other.
TEST(CheckGiven, TwoLaunchesThatDifferFail) {
  int launches = 0;
  const Launch launch = [&](const Problem& p, cudaStream_t stream) {
    kClean(p, stream);
    if (++launches % 2) return;
    float sum = 0;
    for (int kk = 0; kk < p.k(); ++kk) {
      sum += to_float(p.a<bf16>()[kk]) * to_float(p.b<bf16>()[int64_t(kk) * p.n()]);
    }
    const uint32_t nearest = encode(Format::bf16, sum),
                   cut = encode(Format::bf16, sum, Rounding::toward_zero);
    store_code(p.d<bf16>(), Format::bf16, 0, nearest == cut ? cut + 1 : cut);
  };
  const CheckResult result = check_given(*host_machine(), {}, launch, with_nan());
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->symptom, Symptom::nondeterministic) << result.failure->sentence;
}

TEST(CheckGiven, ANumberWhereNanBelongsFails) {
  const Launch launch = [](const Problem& p, cudaStream_t stream) {
    kClean(p, stream);
    p.d<bf16>()[1 * 4 + 0] = from_float<bf16>(1.0f);
  };
  EXPECT_TRUE(check_given(*host_machine(), {}, launch, with_nan()).failure);
}

// A row of A, times ones: its sum, and the codes that pass and fail where all its terms are added
// in f32, in some order.
struct Order {
  std::vector<float> a;
  std::vector<float> right, wrong;
};
CheckResult with_d(const Order& order, float d) {
  GivenOperands given;
  given.shape = {{1}, {8}, {int(order.a.size())}, "files"};
  given.rows_of_a = 1;
  given.a.resize(order.a.size() * 2);
  given.b.resize(order.a.size() * 2 * 8);
  for (size_t i = 0; i < order.a.size(); ++i)
    store_code(given.a.data(), Format::bf16, int64_t(i), encode(Format::bf16, double(order.a[i])));
  for (size_t i = 0; i < order.a.size() * 8; ++i)
    store_code(given.b.data(), Format::bf16, int64_t(i), 0x3F80);
  const Launch launch = [d](const Problem& p, cudaStream_t) {
    for (int col = 0; col < p.n(); ++col)
      store_code(p.d<bf16>(), Format::bf16, col, encode(Format::bf16, double(d)));
  };
  return check_given(*host_machine(), {}, launch, given);
}

TEST(CheckGiven, ASumThatOverflowsInSomeOrdersIsWhatAnyOfThemMakesOfIt) {
  const float inf = INFINITY, large = 3e38f, third = 1.2e38f;
  const Order orders[] = {
      {{large, large, -large, -large}, {0, inf, -inf, NAN}, {large, 1e37f}},
      {{large, large, -large, 0}, {large, inf}, {-inf, NAN, 0}},
      {{-large, -large, large, 0}, {-large, -inf}, {inf, NAN, 0}},
      {{large, large, large, -large}, {inf}, {large, -inf, NAN}},
      {{large, large, large, large, -large, -large}, {inf, -inf, NAN}, {large, 0}},
      {{third, third, -third, -third}, {0}, {inf, -inf, NAN, third}},
      {{inf, large, -third, 0}, {inf}, {NAN, -inf, large}},
      {{inf, -large, -large, 0}, {inf, NAN}, {-inf, 0}},
      {{inf, -inf, large, large}, {NAN}, {inf, -inf, 0}},
  };
  for (const Order& order : orders) {
    for (const float d : order.right) {
      const CheckResult result = with_d(order, d);
      EXPECT_FALSE(result.failure) << result.failure->sentence;
    }
    for (const float d : order.wrong) EXPECT_TRUE(with_d(order, d).failure) << &order - orders << ": " << d;
  }
}

}  // namespace
}  // namespace gg
