// SPDX-License-Identifier: MIT
//
// Chapters 04 and 07b say which block computes which tile: the worked example to the letter, here
// and in the lesson, and for other sizes every tile exactly once, dealt out in turn.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <tuple>

#include "tests/process.h"

namespace testing_gg {
namespace {

struct Case {
  const char *chapter, *worked_example;
};
void PrintTo(const Case& each, std::ostream* out) { *out << each.chapter; }

constexpr Case kCases[] = {{"04_persistent",
                            "block 0: 0(0,0) 0(1,1) 0(2,2) 1(0,3) 1(1,2) 1(2,1) 1(3,0) 1(3,6)\n"
                            "block 1: 0(0,1) 0(1,2) 0(2,3) 1(0,4) 1(1,3) 1(2,2) 1(3,1)\n"
                            "block 2: 0(0,2) 0(1,3) 0(2,4) 1(0,5) 1(1,4) 1(2,3) 1(3,2)\n"
                            "block 3: 0(0,3) 0(1,4) 1(0,0) 1(0,6) 1(1,5) 1(2,4) 1(3,3)\n"
                            "block 4: 0(0,4) 0(2,0) 1(0,1) 1(1,0) 1(1,6) 1(2,5) 1(3,4)\n"
                            "block 5: 0(1,0) 0(2,1) 1(0,2) 1(1,1) 1(2,0) 1(2,6) 1(3,5)\n"},
                           {"07b_own_sizes",
                            "block 0: 0(0,0) 0(0,2) 0(0,4) 1(3,0) 1(1,2) 1(3,3) 1(1,5) 1(3,6)\n"
                            "block 1: 0(1,0) 0(1,2) 0(1,4) 1(0,1) 1(2,2) 1(0,4) 1(2,5)\n"
                            "block 2: 0(2,0) 0(2,2) 0(2,4) 1(1,1) 1(3,2) 1(1,4) 1(3,5)\n"
                            "block 3: 0(0,1) 0(0,3) 1(0,0) 1(2,1) 1(0,3) 1(2,4) 1(0,6)\n"
                            "block 4: 0(1,1) 0(1,3) 1(1,0) 1(3,1) 1(1,3) 1(3,4) 1(1,6)\n"
                            "block 5: 0(2,1) 0(2,3) 1(2,0) 1(0,2) 1(2,3) 1(0,5) 1(2,6)\n"}};

class Schedule : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!is_built(GetParam().chapter)) GTEST_SKIP() << GetParam().chapter << " is not built";
  }

  static std::string printed(std::vector<std::string> options) {
    options.insert(options.begin(), {program(GetParam().chapter), "--print-schedule"});
    const Outcome outcome = run(options);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return outcome.out;
  }

  // Every tile of each problem is there once, and no block has two tiles more than another.
  static void expect_each_tile_once(const std::vector<int>& m, const std::vector<int>& n, int tile,
                                    int blocks) {
    std::string m_list, n_list, k_list;
    for (size_t group = 0; group < m.size(); ++group) {
      const std::string comma = group ? "," : "";
      m_list += comma + std::to_string(m[group]);
      n_list += comma + std::to_string(n[group]);
      k_list += comma + "64";
    }
    const std::string size = std::to_string(tile);
    std::stringstream lines(printed({"--m", m_list, "--n", n_list, "--k", k_list, "--tile", size + "x" + size,
                                     "--blocks", std::to_string(blocks)}));

    std::map<std::tuple<int, int, int>, int> times;  // that a tile of a group is computed
    size_t fewest = SIZE_MAX, most = 0;
    int block = 0;
    for (std::string line; std::getline(lines, line); ++block) {
      EXPECT_EQ(line.rfind("block " + std::to_string(block) + ":", 0), 0u) << line;
      static const std::regex entry(R"( (\d+)\((\d+),(\d+)\))");
      size_t count = 0;
      for (std::sregex_iterator it(line.begin(), line.end(), entry), end; it != end; ++it, ++count) {
        ++times[{std::stoi((*it)[1]), std::stoi((*it)[2]), std::stoi((*it)[3])}];
      }
      fewest = std::min(fewest, count);
      most = std::max(most, count);
    }
    EXPECT_EQ(block, blocks);
    EXPECT_LE(most - fewest, 1u);

    size_t tiles = 0;
    for (size_t group = 0; group < m.size(); ++group) {
      for (int row = 0; row < m[group]; row += tile) {
        for (int col = 0; col < n[group]; col += tile, ++tiles) {
          const auto found = times.find({int(group), row / tile, col / tile});
          EXPECT_TRUE(found != times.end() && found->second == 1)
              << "group " << group << ", tile " << row / tile << "," << col / tile;
        }
      }
    }
    EXPECT_EQ(times.size(), tiles) << "tiles that are in no group";
  }
};

TEST_P(Schedule, PrintsTheWorkedExample) { EXPECT_EQ(printed({}), GetParam().worked_example); }

TEST_P(Schedule, IsTheOneInTheLesson) {
  const std::string lesson =
      text_of(GG_SOURCE_DIR "/chapters/" + std::string(GetParam().chapter) + "/README.md");
  std::stringstream lines(GetParam().worked_example);
  std::stringstream shown(lesson.substr(lesson.find("```\nblock 0:") + 4));
  for (std::string line, there; std::getline(lines, line);) {
    std::getline(shown, there);
    // A remark may stand three blanks to the right.
    EXPECT_EQ(there.substr(0, there.find("   ")), line);
  }
}

TEST_P(Schedule, HasEveryTileOnce) {
  expect_each_tile_once({192, 256}, {320, 448}, 64, 5);
  expect_each_tile_once({64, 0, 200}, {256, 256, 256}, 64, 6);
  expect_each_tile_once({5, 0, 17, 64}, {256, 8, 72, 128}, 64, 1);
  expect_each_tile_once({129, 128, 127, 1}, {136, 128, 120, 8}, 128, 3);
  expect_each_tile_once({0, 0, 577, 0}, {8, 8, 264, 8}, 64, 132);
  expect_each_tile_once(std::vector<int>(70, 3), std::vector<int>(70, 72), 64, 264);
}

TEST_P(Schedule, IsEmptyWithoutRows) { expect_each_tile_once({0, 0}, {64, 64}, 64, 4); }

INSTANTIATE_TEST_SUITE_P(Chapters, Schedule, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.chapter); });

}  // namespace
}  // namespace testing_gg
