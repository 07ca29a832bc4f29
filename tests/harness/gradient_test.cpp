// SPDX-License-Identifier: MIT
//
// Weight gradients, whose sum runs over a group's rows: right ones pass, planted bugs are named.

#include <gtest/gtest.h>

#include <algorithm>

#include "common/harness/harness.cuh"
#include "common/harness/verify/trials.h"

namespace gg {
namespace {

const CheckOptions kOptions{.seed = 5, .graph_replay = true, .neighbours = true};
const Shape kShape{{5, 0, 63, 64, 65, 130}, {24}, {16}};

Setup setup_of(Format d, bool accumulate) {
  Setup setup;
  setup.request.formats = {Format::bf16, Format::bf16, d};
  setup.request.accumulate = accumulate;
  setup.product = Product::weight_gradient;
  setup.host_offsets = false;
  return setup;
}

// A launch on the host takes this for one group's sum. The right one changes nothing.
struct Taken {
  int first, last;  // rows
  bool writes = true, adds_before = true;
};
using Bug = void (*)(const Problem& p, int group, Taken& taken);

void right(const Problem&, int, Taken&) {}

Launch launch_with(Bug bug) {
  return [bug](const Problem& p, cudaStream_t) {
    const auto* offsets = static_cast<const int32_t*>(p.offsets().as<int32_t>());
    for (int g = 0; g < p.groups(); ++g) {
      Taken taken{offsets[g], offsets[g + 1]};
      bug(p, g, taken);
      if (!taken.writes) continue;
      for (int i = 0; i < p.k(); ++i) {
        for (int j = 0; j < p.n(); ++j) {
          float sum = 0;
          for (int64_t row = taken.first; row < taken.last; ++row)
            sum += to_float(p.a<bf16>()[row * p.k() + i]) * to_float(p.b<bf16>()[row * p.n() + j]);
          const int64_t at = (int64_t(g) * p.k() + i) * p.n() + j;
          const Format d = p.formats().d;
          if (p.accumulates() && taken.adds_before) sum += decode(d, load_code(p.d<void>(), d, at));
          store_code(p.d<void>(), d, at, encode(d, sum));
        }
      }
    }
  };
}

CheckResult checked(Bug bug, bool accumulate = false, Format d = Format::f32) {
  return check_problem(*host_machine(), setup_of(d, accumulate), launch_with(bug), kShape, kOptions);
}

void expect_named(const CheckResult& result, Symptom symptom, const char* words) {
  ASSERT_TRUE(result.failure) << "passed";
  EXPECT_EQ(result.failure->symptom, symptom) << result.failure->sentence;
  EXPECT_NE(result.failure->sentence.find(words), std::string::npos) << result.failure->sentence;
}

TEST(Gradients, RightOnesPass) {
  for (const Format d : {Format::f32, Format::bf16}) {
    for (const bool accumulate : {false, true}) {
      const CheckResult result = checked(right, accumulate, d);
      EXPECT_FALSE(result.failure) << result.failure->sentence;
    }
  }
  // Nothing to sum at all: every gradient is 0.
  for (const Shape& shape : {Shape{{0, 0, 0}, {24}, {16}}, {{0}, {8}, {8}}, {{1}, {8}, {8}}}) {
    const CheckResult result =
        check_problem(*host_machine(), setup_of(Format::f32, false), launch_with(right), shape, kOptions);
    EXPECT_FALSE(result.failure) << result.failure->sentence;
  }
}

TEST(Gradients, AWholeLastSliceIsNamed) {
  for (const bool accumulate : {false, true}) {
    expect_named(checked(
                     [](const Problem& p, int, Taken& t) {
                       const int end = t.first + (t.last - t.first + 63) / 64 * 64;
                       t.last = std::min(end, int(p.m_total()));
                     },
                     accumulate),
                 Symptom::neighbour_read, "its last slice of 64 rows is added whole");
  }
}

// Past the last group's rows are rows that nobody owns, which are NaN.
TEST(Gradients, AWholeLastSliceOfEachGroupIsNamed) {
  expect_named(checked([](const Problem& p, int, Taken& t) {
                 const int end = t.first + (t.last - t.first + 63) / 64 * 64;
                 t.last = std::min(end, int(p.rows()));
               }),
               Symptom::neighbour_read, "its last slice of 64 rows is added whole");
}

TEST(Gradients, RowsThatNobodyOwnsAreNamed) {
  expect_named(checked([](const Problem& p, int group, Taken& t) {
                 if (group == p.groups() - 1) t.last += 7;
               }),
               Symptom::padding_read, "rows of A or B past the last offset are read");
}

TEST(Gradients, AnEmptyGroupsOldOneIsNamed) {
  expect_named(checked([](const Problem&, int, Taken& t) { t.writes = t.last > t.first; }),
               Symptom::unwritten, "group 1 row 0 column 0, was never written");
}

TEST(Gradients, OneThatIsNotAddedIsNamed) {
  expect_named(checked([](const Problem&, int, Taken& t) { t.adds_before = false; }, true),
               Symptom::unwritten, "what D held is not added");
}

TEST(Gradients, RowsOfAnotherGroupAreNamed) {
  expect_named(checked([](const Problem& p, int group, Taken& t) {
                 const int32_t* offsets = p.offsets().as<int32_t>();
                 const int other = std::min(group + 1, p.groups() - 1);
                 t.first = offsets[other];
                 t.last = offsets[other + 1];
               }),
               Symptom::swapped_expert, "looks like the rows of the group 1 further on");
}

TEST(Gradients, RowsOfTheFirstGroupAreNamed) {
  expect_named(checked([](const Problem& p, int, Taken& t) {
                 t.first = 0;
                 t.last = p.offsets().as<int32_t>()[1];
               }),
               Symptom::first_group_only, "every group has the rows of group 0");
  expect_named(checked([](const Problem&, int, Taken& t) {
                 t.last -= t.first;
                 t.first = 0;
               }),
               Symptom::first_group_only, "counted from the first row of all");
}

TEST(Gradients, MissingRowsAreNamed) {
  expect_named(
      checked([](const Problem&, int, Taken& t) { t.last = t.first + (t.last - t.first) / 16 * 16; }),
      Symptom::missing_k_slice, "ends with the last whole 16 rows");
  expect_named(checked([](const Problem&, int, Taken& t) { t.last = std::max(t.first, t.last - 3); }),
               Symptom::missing_k_slice, "the last 3 rows of the group are not in the sum");
}

TEST(Gradients, EndsThatAreOffByOneAreNamed) {
  expect_named(checked([](const Problem&, int, Taken& t) { t.last = std::max(t.first, t.last - 1); }),
               Symptom::offset_by_one, "a group that ends a row too early");
  expect_named(checked([](const Problem&, int, Taken& t) { t.first = std::min(t.first + 1, t.last); }),
               Symptom::offset_by_one, "a group that begins a row too late");
}

}  // namespace
}  // namespace gg
