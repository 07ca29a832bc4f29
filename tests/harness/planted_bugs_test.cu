// SPDX-License-Identifier: MIT
//
// Every planted bug and clean twin as a function on host memory, and what chapter 01 says of the
// checks: for each a bug that passes all the others, and the words in which it is reported.

#include <cstdio>

#include "planted_bugs.cuh"

namespace planted {
namespace {

class PlantedBug : public testing::TestWithParam<Planted> {};
class CleanTwin : public testing::TestWithParam<Planted> {};

TEST_P(PlantedBug, IsFailedAndNamed) { must_be_named(*gg::host_machine(), GetParam(), GetParam().host); }
TEST_P(CleanTwin, Passes) { must_pass(*gg::host_machine(), GetParam().host); }

INSTANTIATE_TEST_SUITE_P(Host, PlantedBug, testing::ValuesIn(bugs()), name_of);
INSTANTIATE_TEST_SUITE_P(Host, CleanTwin, testing::ValuesIn(twins()), name_of);

// Finds its rows by the offsets of its first launch, as a launch does that reads them while
// it is recorded.
gg::Launch offsets_kept() {
  return [kept = std::vector<int32_t>()](const gg::Problem& p, cudaStream_t) mutable {
    const auto* offsets = p.offsets().as<int32_t>();
    if (kept.empty()) kept.assign(offsets, offsets + p.groups() + 1);
    View view{p.a<bf16>(), p.b<bf16>(), p.d<bf16>(), kept.data(), p.groups(), p.n(), p.k(), p.b_layout()};
    for (int group = 0; group < view.groups; ++group) {
      for (int i = 0; i < view.rows(group) * view.n; ++i) Clean::element(view, group, i / view.n, i % view.n);
    }
  };
}

// Each launch adds up in the order opposite to the one before, as blocks may that add to D.
gg::Launch sum_in_any_order() {
  return [backwards = false](const gg::Problem& p, cudaStream_t stream) mutable {
    backwards = !backwards;
    backwards ? on_host<CleanBackwards>(p, stream) : on_host<Clean>(p, stream);
  };
}

// The table of chapters/01_naive/README.md, on its problem.
struct OneCheck {
  const char* name;
  gg::Launch launch;
  const char *trial, *symptom, *words;
};
void PrintTo(const OneCheck& each, std::ostream* out) { *out << each.name; }
class FoundByOneCheck : public testing::TestWithParam<OneCheck> {};

TEST_P(FoundByOneCheck, InItsTrialAndWords) {
  const OneCheck& one = GetParam();
  const gg::CheckResult result =
      gg::check_problem(*gg::host_machine(), {}, one.launch, gg::shape_set("smoke", {})[0], kOptions);
  ASSERT_TRUE(result.failure);
  const std::string& said = result.failure->sentence;
  std::printf("%s, FAILED (%s): %s\n", one.name, gg::symptom_name(result.failure->symptom), said.c_str());
  EXPECT_EQ(said.find(std::string("G=4 M=86 (0..64) N=256 K=128, ") + one.trial + ": "), 0u) << said;
  EXPECT_STREQ(gg::symptom_name(result.failure->symptom), one.symptom) << said;
  EXPECT_NE(said.find(one.words), std::string::npos) << said;
}

INSTANTIATE_TEST_SUITE_P(
    Host, FoundByOneCheck,
    testing::Values(
        OneCheck{"Truncation", on_host<Truncation>, "whole numbers", "truncation instead of rounding",
                 "expected 820, got 816; the sum is right but cut toward zero"},
        OneCheck{"NarrowOperand", on_host<NarrowOperand>, "random data", "unknown",
                 "expected 4.18666089, got 3.828125; no known mistake explains it"},
        OneCheck{"OutputTimesZero", on_host<OutputTimesZero>, "whole numbers", "NaN",
                 "22016 of 22016 elements are wrong; the first: group 0 row 0 column 0, is NaN"},
        OneCheck{"PaddingRead", on_host<PaddingRead>, "whole numbers", "padding read",
                 "is NaN only while elements that no group owns are NaN"},
        OneCheck{"OnePastTheEnd", on_host<OnePastTheEnd>, "whole numbers", "write out of bounds",
                 "row 64, column 0 as seen from group 3, which has 64 rows"},
        OneCheck{"SumInAnyOrder", sum_in_any_order(), "random data again, over another fill",
                 "nondeterministic",
                 "two launches on the same data differ, first at group 3 row 0 column 66"},
        OneCheck{"OffsetsKept", offsets_kept(), "graph replay with other offsets, over the previous output",
                 "unknown", "19434 of 22016 elements are wrong"},
        OneCheck{"NeighbourRead", on_host<NeighbourRead>, "NaN in the neighbouring groups' operands",
                 "neighbouring group read", "is NaN only while the neighbouring groups hold NaN"}),
    [](const auto& info) { return std::string(info.param.name); });

// The check's words on a bug, on one problem.
gg::Failure said_of(const gg::Launch& launch, const gg::Setup& setup, const gg::Shape& shape) {
  const gg::CheckResult result = gg::check_problem(*gg::host_machine(), setup, launch, shape, kOptions);
  return result.failure.value_or(gg::Failure{});
}

// There are zeros beyond K, so seven of eight columns are zero.
TEST(FewColumns, WithoutASwizzleLackNoSlice) {
  gg::Setup setup;
  setup.request.b_layout = gg::BLayout::nk;
  for (const int k : {8, 16, 64}) {
    const gg::Failure said = said_of(on_host<NoSwizzle>, setup, {{64, 0, 33}, {8}, {k}});
    EXPECT_STREQ(gg::symptom_name(said.symptom), "missing swizzle") << said.sentence;
    EXPECT_NE(said.sentence.find("looks like B without the swizzle of 128 bytes"), std::string::npos)
        << said.sentence;
  }
  const gg::Failure zeros = said_of(on_host<MissingLastSlice>, setup, {{64, 0, 33}, {8}, {16}});
  EXPECT_STREQ(gg::symptom_name(zeros.symptom), "missing K slice") << zeros.sentence;
  EXPECT_NE(zeros.sentence.find("the sums are 0: none of their 16 products is in them"), std::string::npos)
      << zeros.sentence;
}

TEST(TileMistakes, AreToldWithTheirNumbers) {
  const gg::Shape shape = shapes()[0];
  const std::pair<gg::Launch, const char*> bugs[] = {
      {on_host<LastSliceOfAnotherStage>,
       "looks like the last slice of K multiplied from another stage: A and B of the slice 1 before, in "
       "slices "
       "of 64"},
      {on_host<HalfOfAnotherTile>, "looks like the columns 64 to the right, as in another tile"},
      {on_host<SwappedColumns>, "looks like neighbouring columns exchanged, 16 at a time"},
      {on_host<AlwaysBoxesOf32Rows>,
       "looks like stores of always 32 rows; launches differ in which group's"}};
  for (const auto& [launch, words] : bugs) {
    const gg::Failure said = said_of(launch, {}, shape);
    EXPECT_NE(said.sentence.find(words), std::string::npos) << said.sentence;
  }
  EXPECT_EQ(said_of(on_host<CleanInSlices>, {}, shape).sentence, "");
}

}  // namespace
}  // namespace planted
