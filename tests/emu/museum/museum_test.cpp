// SPDX-License-Identifier: MIT
//
// Every exhibit of the museum, each pair run under gg-emu: what is said of the wrong one is kept
// word by word in golden/ (GG_UPDATE_GOLDEN=1 in the environment writes it anew), the right one
// passes, and the page tells the story of each with words of its golden file.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>

#include "tests/process.h"

namespace {

using testing_gg::Outcome;

const std::filesystem::path kRoom = std::filesystem::path(GG_SOURCE_DIR) / "tests/emu/museum";
const std::vector<std::string> kOrders = {"0:fair", "1:fair", "0:skew", "1:skew", "2:skew", "5:skew"};

// Orders in which a mistake shows. In those of odd seed a dependent launch begins when the one
// before it has ended; and in 1:skew the block that leaves stands still until the others have read.
enum class Shows { in_every_order, in_even_orders };
struct Exhibit {
  std::string name, program;
  Shows shows = Shows::in_every_order;
};
const std::vector<Exhibit> kExhibits = {
    {"straddling_pair", "museum_hopper"},
    {"offsets_before_the_wait", "museum_hopper", Shows::in_even_orders},
    {"empty_expert", "museum_hopper"},
    {"rows_past_the_last_offset", "museum_hopper"},
    {"offset_of_32_bits", "museum_hopper"},
    {"padded_scales", "museum_hopper"},
    {"map_in_flight", "museum_hopper"},
    {"store_before_the_tile", "museum_hopper"},
    {"peer_has_left", "museum_hopper", Shows::in_even_orders},
    {"parity_of_another_ring", "museum_blackwell"},
    {"no_slices", "museum_blackwell"},
    {"released_before_it_was_read", "museum_blackwell"},
};
void PrintTo(const Exhibit& each, std::ostream* out) { *out << each.name; }

bool shows(const Exhibit& exhibit, const std::string& order) {
  return exhibit.shows == Shows::in_every_order || (order[0] - '0') % 2 == 0;
}

Outcome run(const Exhibit& exhibit, const std::string& order, const std::string& which) {
  return testing_gg::run({GG_BINARY_DIR "/bin/gg-emu", "--order", order,
                          GG_BINARY_DIR "/tests/" + exhibit.program, exhibit.name, which});
}

// Addresses differ from run to run, lines of PTX and of the toolkit's headers from
// compiler to compiler.
std::string what_lasts(const std::string& report) {
  std::string text =
      std::regex_replace(report, std::regex("\\n[^\\n]*(PTX line |through include/)[^\\n]*"), "");
  return std::regex_replace(text, std::regex("0x[0-9a-f]+"), "0x...");
}

std::string golden_of(const std::string& name) {
  const std::string text = testing_gg::text_of((kRoom / "golden" / (name + ".txt")).string());
  return text.substr(std::min(text.size(), text.find('\n') + 1));  // behind the licence
}

// The lines between the marks of a kernel, without the indentation of the first mark.
std::string mistake_of(const std::string& kernel) {
  const size_t mark = kernel.find("// [mistake]\n"), end = kernel.find("// [/mistake]\n");
  if (mark == std::string::npos || end == std::string::npos) return "";
  const size_t indent = mark - kernel.rfind('\n', mark) - 1;
  std::istringstream lines(kernel.substr(kernel.find('\n', mark) + 1, end - mark));
  std::string text;
  for (std::string line; std::getline(lines, line) && line.find("// [/mistake]") == std::string::npos;)
    text += line.substr(std::min(indent, line.size())) + "\n";
  return text;
}

class Museum : public testing::TestWithParam<Exhibit> {
 protected:
  // Source lines are shown from there.
  void SetUp() override { std::filesystem::current_path(GG_SOURCE_DIR); }
};

TEST_P(Museum, ItsMistakeIsReported) {
  const Outcome outcome = run(GetParam(), "0:fair", "wrong");
  EXPECT_TRUE(outcome.code == 1 || outcome.code == 3) << outcome.code << outcome.out << outcome.err;
  const std::string said = what_lasts(outcome.out + outcome.err);
  const char* const update = std::getenv("GG_UPDATE_GOLDEN");
  if (update && *update) {
    testing_gg::write_text((kRoom / "golden" / (GetParam().name + ".txt")).string(),
                           "SPDX-License-Identifier: MIT\n" + said);
  }
  EXPECT_EQ(said, golden_of(GetParam().name)) << "GG_UPDATE_GOLDEN=1 writes it anew";
}

TEST_P(Museum, ItsMistakeIsReportedInOrders) {
  for (const std::string& order : kOrders) {
    if (!shows(GetParam(), order)) continue;
    const Outcome outcome = run(GetParam(), order, "wrong");
    EXPECT_TRUE(outcome.code == 1 || outcome.code == 3)
        << order << ": " << outcome.code << outcome.out << outcome.err;
  }
}

TEST_P(Museum, ItsTwinIsRight) {
  for (const std::string& order : kOrders) {
    const Outcome outcome = run(GetParam(), order, "right");
    EXPECT_EQ(outcome.code, 0) << order;
    EXPECT_EQ(outcome.out + outcome.err, "right\n") << order;
  }
}

// The section of the page: its blocks of text are quotes of the report, its block of C++ is that
// between the [mistake] marks.
TEST_P(Museum, ItsStoryQuotesTheReport) {
  const std::string page = testing_gg::text_of((kRoom / "README.md").string());
  const size_t begin = page.find("\n## " + GetParam().name + "\n");
  ASSERT_NE(begin, std::string::npos);
  const std::string story = page.substr(begin, page.find("\n## ", begin + 1) - begin);
  EXPECT_TRUE(std::regex_search(story, std::regex("[A-Za-z0-9-]+/[A-Za-z0-9._-]+#[0-9]+"))) << "no reference";
  EXPECT_NE(story.find("(" + GetParam().name + ".cuh)"), std::string::npos) << "no link to the kernel";
  const std::string kernel = testing_gg::text_of((kRoom / (GetParam().name + ".cuh")).string());
  int reports = 0, mistakes = 0;
  const std::regex fence("```(text|cuda)\n([^`]*)```");
  for (std::sregex_iterator i(story.begin(), story.end(), fence), end; i != end; ++i) {
    const bool report = (*i)[1].str() == "text";
    ++(report ? reports : mistakes);
    if (report) {
      EXPECT_NE(golden_of(GetParam().name).find((*i)[2].str()), std::string::npos) << (*i)[2].str();
    } else {
      EXPECT_EQ((*i)[2].str(), mistake_of(kernel));
    }
  }
  EXPECT_GE(reports, 1);
  EXPECT_EQ(mistakes, 1);
}

INSTANTIATE_TEST_SUITE_P(Exhibits, Museum, testing::ValuesIn(kExhibits),
                         [](const auto& info) { return info.param.name; });

TEST(MuseumPage, HasNoOtherStories) {
  const std::string page = testing_gg::text_of((kRoom / "README.md").string());
  std::set<std::string> told, shown;
  const std::regex title("\n## ([a-z0-9_]+)\n");
  for (std::sregex_iterator i(page.begin(), page.end(), title), end; i != end; ++i)
    told.insert((*i)[1].str());
  for (const Exhibit& each : kExhibits) shown.insert(each.name);
  EXPECT_EQ(told, shown);
}

}  // namespace
