// SPDX-License-Identifier: MIT
//
// Every chapter that was built: it finds a machine by itself, and says what it is.

#include <gtest/gtest.h>

#include <algorithm>

#include "common/harness/problem/shapes.h"
#include "tests/chapters/run_chapter.h"

namespace testing_gg {
namespace {

class Chapter : public testing::TestWithParam<std::string> {
 protected:
  Outcome run_with(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), program(GetParam()));
    return run(arguments);
  }
};

TEST_P(Chapter, RunsOnWhatIsThereAndSaysWhat) {
  const Outcome outcome = run_with(with(problem_of(GetParam()), {"--check"}));
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  const size_t last = outcome.out.rfind('\n', outcome.out.size() - 2) + 1;
  EXPECT_EQ(outcome.out.rfind(GetParam() + ": ok", std::string::npos), last) << outcome.out;
  const bool emulated = outcome.out.find("on the emulator, order 0:fair", last) != std::string::npos;
  EXPECT_EQ(one_line_with(outcome.err, "no usable GPU ("), emulated) << outcome.err;
  EXPECT_EQ(outcome.err.empty(), !emulated) << outcome.err;
}

TEST_P(Chapter, HelpsWithoutAGpu) {
  const Outcome outcome = run_with({"--help"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out.rfind(GetParam() + ": ", 0), 0u) << outcome.out;
  for (const char* option : {"--device", "--check", "--bench", "--set", "--m", "--csv", "--in", "--out"}) {
    EXPECT_NE(outcome.out.find(option), std::string::npos) << option;
  }
}

TEST_P(Chapter, DescribesItselfInJson) {
  const Folder folder;
  const Outcome outcome = run_with({"--describe"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
  write_text(folder.at("describe.json"), outcome.out);
  const std::string reader =
      "import json, sys; d = json.load(open(sys.argv[1]))\n"
      "print(d['id'], d['arch'], len(d['formats']) > 0, d['limits']['groups'], len(d['tensors']) > 2,"
      " {'smoke', 'edges'} <= {*d['sets']} or {'smoke_uniform', 'edges_uniform'} <= {*d['sets']}, "
      "type(d['options']).__name__)";
  const Outcome read = run({GG_PYTHON, "-B", "-c", reader, folder.at("describe.json")});
  const gg::Arch arch = arch_of(GetParam());
  const std::string name = arch == gg::Arch::sm_80 ? "80" : arch == gg::Arch::sm_90a ? "90a" : "100a";
  const std::string groups = has_epilogue(GetParam()) ? "1024" : "4096";
  EXPECT_EQ(read.out, GetParam() + " " + name + " True " + groups + " True True list\n")
      << outcome.out << read.err;
}

TEST_P(Chapter, RefusesTheSetsThatItDoesNotList) {
  const Words sets = listed(GetParam(), "sets");
  for (const gg::ShapeSet& set : gg::shape_sets()) {
    if (std::find(sets.begin(), sets.end(), set.name) != sets.end()) continue;
    const Outcome outcome = run_without_gpu({program(GetParam()), "--check", "--set", set.name});
    EXPECT_EQ(outcome.code, int(gg::Exit::bad_input)) << outcome.out;
    EXPECT_TRUE(one_line_with(outcome.err, set.name)) << outcome.err;
  }
}

// Tests go over these lists: one that is empty for all chapters would test nothing.
TEST(Chapters, TogetherHaveChoicesOfEachKind) {
  if (built_chapters().size() < 10) GTEST_SKIP() << "some chapters are not built";
  for (const char* key : {"sets", "options", "tiles", "b_layouts"}) {
    size_t most = 0;
    for (const std::string& id : built_chapters()) most = std::max(most, listed(id, key).size());
    EXPECT_GE(most, 2u) << key;
  }
}

TEST_P(Chapter, SaysWhenItsWordsCannotBeWritten) {
  const Outcome outcome = run({"/bin/sh", "-c", "exec '" + program(GetParam()) + "' --help >/dev/full"});
  EXPECT_EQ(outcome.code, int(gg::Exit::cannot_write));
  EXPECT_TRUE(one_line_with(outcome.err, "stdout"));
}

INSTANTIATE_TEST_SUITE_P(Built, Chapter, testing::ValuesIn(built_chapters()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace testing_gg
