// SPDX-License-Identifier: MIT
//
// Every chapter on a GPU: its check in all forms, each larger set that it lists, what it writes,
// and what it says when memory does not suffice.

#include <gtest/gtest.h>

#include <algorithm>

#include "common/harness/problem/shapes.h"
#include "common/harness/run/device.h"
#include "tests/chapters/run_chapter.h"

namespace testing_gg {
namespace {

bool contains(const Words& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

class ChapterOnGpu : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const std::string why = gg::why_not_on_gpu({.arch = arch_of(GetParam())});
    if (!why.empty()) GTEST_SKIP() << why;
  }

  // Those of the sets that the chapter lists, in one process: many that start at once wait
  // for their contexts.
  void check(const Words& sets) {
    const Words all = listed(GetParam(), "sets");
    std::string names;
    for (const std::string& set : sets) {
      if (contains(all, set)) names += (names.empty() ? "" : ",") + set;
    }
    if (names.empty()) return;
    const Words arguments = {"--device", "gpu", "--check", "--set", names};
    std::string line = GetParam();
    for (const std::string& word : arguments) line += " " + word;
    const Outcome outcome = run_chapter(GetParam(), arguments);
    EXPECT_EQ(outcome.code, 0) << line << "\n" << outcome.out << outcome.err;
  }
};

const Words kTiny = {"smoke", "edges", "long", "forms", "smoke_uniform", "edges_uniform"};
const Words kHuge = {"huge", "huge_b", "far"};  // beyond 2^31 elements

// The check that a reader runs has one problem in each form.
TEST_P(ChapterOnGpu, IsRightOnTinySetsInAllItsForms) {
  const Outcome outcome = run_chapter(GetParam(), {"--device", "gpu", "--check"});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
}

TEST_P(ChapterOnGpu, IsRightBeyond32BitIndices) {
  Words huge;
  for (const std::string& set : kHuge) {
    if (contains(listed(GetParam(), "sets"), set)) huge.push_back(set);
  }
  ASSERT_FALSE(huge.empty());
  check(huge);
}

TEST_P(ChapterOnGpu, WritesWholeFilesThatItReadsBackAndWritesAgain) { expect_whole_files(GetParam(), "gpu"); }

// The emulator adds as the tensor cores do, so random data too must give the same bits
// on both machines.
TEST_P(ChapterOnGpu, GivesTheBitsOfTheEmulator) {
  std::vector<Words> problems = {problem_of(GetParam())};
  if (contains(listed(GetParam(), "tiles"), "256x128")) problems.push_back(tall_problem(GetParam()));
  if (contains(listed(GetParam(), "b_layouts"), "kn") && contains(listed(GetParam(), "b_layouts"), "nk")) {
    problems.push_back(with(tall_problem(GetParam()), {"--b-layout", "kn"}));
  }
  for (const Words& problem : problems) {
    const Folder gpu, emulator;
    write_tensors(GetParam(), gpu, with(problem, {"--device", "gpu"}));
    write_tensors(GetParam(), emulator, with(problem, {"--device", "emu"}));
    expect_same_files_but_sums(gpu, emulator);
  }
}

// A pair's next tile is sent at once when all have said that they have read this one, if it is
// known by then: so it is where K has too few slices for claims. Rows that are stored by hand keep
// loads waiting. Kernels that said "read" before the load was made hung on this problem, in one of
// some thousand launches.
TEST_P(ChapterOnGpu, ReadsATileBeforeTheNextOneIsThere) {
  if (!contains(listed(GetParam(), "sets"), "moe")) GTEST_SKIP() << "it is not timed on problems of this set";
  const gg::Shape shape = gg::shape_set("moe", {.pad_rows_to = limit_of(GetParam(), "m_multiple")}).at(4);
  std::string rows;
  for (const int m : shape.m) rows += (rows.empty() ? "" : ",") + std::to_string(m);
  const Outcome outcome =
      run_chapter(GetParam(), {"--bench", "--device", "gpu", "--m", rows, "--n", "1536", "--k", "1984"});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
}

INSTANTIATE_TEST_SUITE_P(Built, ChapterOnGpu, testing::ValuesIn(built_chapters()),
                         [](const auto& info) { return info.param; });

// One chapter of each kind is asked for what the harness says.
class ChapterOfEachKindOnGpu : public ChapterOnGpu {};
INSTANTIATE_TEST_SUITE_P(Built, ChapterOfEachKindOnGpu, testing::ValuesIn(one_of_each_kind()),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ChapterOfEachKindOnGpu);

TEST_P(ChapterOfEachKindOnGpu, AppendsAColdAndAWarmRowPerRun) {
  const Folder folder;
  // Cold inputs are some dozens of these.
  const SmallProblem problem = {"64,0,512", 3, 576, 512, 1024, 512};
  const std::string shape = gg::format(",own,%d,%d,%d,%d,%d,bf16,", problem.groups, problem.m_total,
                                       problem.m_max, problem.n, problem.k);
  for (int runs = 1; runs <= 2; ++runs) {
    const Outcome outcome =
        run_chapter(GetParam(), with(problem.words(), {"--bench", "--csv", folder.at("x.csv")}));
    ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err;
    std::istringstream lines(text_of(folder.at("x.csv")));
    std::string line;
    std::getline(lines, line);
    EXPECT_EQ(line.rfind("chapter,kernel,device,", 0), 0u) << line;
    int rows = 0;
    for (; std::getline(lines, line); ++rows) {
      EXPECT_EQ(line.rfind(GetParam() + ",", 0), 0u) << line;
      EXPECT_NE(line.find(shape + (rows % 2 == 0 ? "0," : "1,")), std::string::npos) << line;
    }
    EXPECT_EQ(rows, 2 * runs);
  }
}

TEST_P(ChapterOfEachKindOnGpu, NamesTheBytesItNeedsAndThoseThatAreFree) {
  std::vector<Words> problems = {{"--groups", "512", "--m", "4000000", "--n", "8192", "--k", "8192"}};
  // 2^64 elements of B, which a 64-bit count takes for none; some chapters refuse so large an N, or
  // G times K.
  if (is_described(GetParam(), "\"n\": 2147483647, \"groups_times_k\": 8796093018112"))
    problems.push_back({"--groups", "1024", "--m", "128", "--n", "1073741824", "--k", "16777216"});
  for (const Words& sizes : problems) {
    for (const char* half : {"--check", "--bench"}) {
      const Outcome outcome = run_chapter(GetParam(), with(sizes, {half}));
      EXPECT_EQ(outcome.code, int(gg::Exit::no_memory)) << outcome.out << outcome.err;
      EXPECT_TRUE(one_line_with(outcome.err, " bytes"));
      EXPECT_TRUE(one_line_with(outcome.err, " are free"));
    }
  }
}

// Large sets, comma-separated: small problems together, for each process makes a context, a set of
// large ones by itself. Each takes less than a minute.
struct OnSets {
  std::string chapter, sets;
};
void PrintTo(const OnSets& each, std::ostream* out) { *out << each.chapter << " " << each.sets; }

class ChapterOnGpuSets : public testing::TestWithParam<OnSets> {};

TEST_P(ChapterOnGpuSets, AreRight) {
  const auto& [id, sets] = GetParam();
  if (const std::string why = gg::why_not_on_gpu({.arch = arch_of(id)}); !why.empty()) GTEST_SKIP() << why;
  const Outcome outcome = run_chapter(id, {"--device", "gpu", "--check", "--set", sets});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
}

// Only chapters whose architecture this machine has say which sets they take: to ask takes time.
// Outputs behind an epilogue are judged on the host, at 2 us each: those chapters get no sets of
// over 100 million of them. Their tiles are those of the products before them, which get all sets.
std::vector<OnSets> large_sets() {
  const Words big = {"prefill", "skewed", "step", "skew", "peers", "moe"};
  const Words too_big = {"skewed", "step", "skew", "peers", "moe"};
  std::vector<OnSets> all;
  for (const std::string& id : built_chapters()) {
    if (!gg::why_not_on_gpu({.arch = arch_of(id)}).empty()) continue;
    const bool epilogue = has_epilogue(id);
    std::string small;
    for (const std::string& set : listed(id, "sets")) {
      if (contains(with(kTiny, kHuge), set) || (epilogue && contains(too_big, set))) continue;
      if (contains(big, set)) {
        all.push_back({id, set});
      } else {
        small += (small.empty() ? "" : ",") + set;
      }
    }
    if (!small.empty()) all.push_back({id, small});
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Large, ChapterOnGpuSets, testing::ValuesIn(large_sets()), [](const auto& info) {
  std::string name = info.param.chapter + "_" + info.param.sets;
  std::replace(name.begin(), name.end(), ',', '_');
  return name;
});
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ChapterOnGpuSets);

}  // namespace
}  // namespace testing_gg
