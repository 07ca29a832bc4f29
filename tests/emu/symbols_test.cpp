// SPDX-License-Identifier: MIT
//
// The names that the emulator's libcudart.so.13 exports: all that NVIDIA's has, and no chapter
// needs one that only says it is not supported, or that common/emu/foreign has.

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "../process.h"

namespace {

using testing_gg::Outcome;
using testing_gg::run;

// Name -> letter of nm, without versions.
std::map<std::string, char> symbols(const std::string& file, const char* which) {
  const Outcome outcome = run({GG_NM, "-D", which, file});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  std::map<std::string, char> found;
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::vector<std::string> all;
    for (std::string word; words >> word;) all.push_back(word);
    if (all.size() < 2) continue;
    found[all.back().substr(0, all.back().find('@'))] = all[all.size() - 2][0];
  }
  return found;
}

bool is_cuda(const std::string& name) { return name.rfind("cu", 0) == 0 || name.rfind("__cuda", 0) == 0; }

// Defined by the runtime itself; generated ones that say they are not supported are weak.
std::set<std::string> implemented(const char* library) {
  std::set<std::string> names;
  for (const auto& [name, letter] : symbols(library, "--defined-only")) {
    if (letter == 'T') names.insert(name);
  }
  return names;
}

TEST(Symbols, EveryNameOfTheRuntimeIsExported) {
  const auto exported = symbols(GG_EMU_CUDART, "--defined-only");
  std::istringstream names(testing_gg::text_of(std::string(GG_SOURCE_DIR) + "/common/emu/cudart/names.txt"));
  int count = 0;
  for (std::string name; std::getline(names, name); ++count) EXPECT_TRUE(exported.count(name)) << name;
  EXPECT_EQ(count, 422);
}

TEST(Symbols, NothingElseIs) {
  for (const auto& [name, letter] : symbols(GG_EMU_CUDART, "--defined-only")) {
    EXPECT_TRUE(is_cuda(name) || name == "gg_emu_interface" || letter == 'A') << name;
  }
}

TEST(Symbols, ForeignOnesAreListed) {
  std::set<std::string> foreign = implemented(GG_EMU_CUDART);
  for (const std::string& name : implemented(GG_EMU_CUDART_ALONE)) {
    EXPECT_TRUE(foreign.erase(name)) << name << " is there only without common/emu/foreign";
  }
  std::set<std::string> listed;
  std::istringstream names(
      testing_gg::text_of(std::string(GG_SOURCE_DIR) + "/common/emu/foreign/cudart/foreign_names.txt"));
  for (std::string name; std::getline(names, name);) {
    if (name[0] != '#') listed.insert(name);
  }
  EXPECT_EQ(foreign, listed);
  EXPECT_GT(listed.size(), 200u);
}

TEST(Symbols, ChaptersNeedNoneThatIsNotSupported) {
  const std::set<std::string> have = implemented(GG_EMU_CUDART_ALONE);
  EXPECT_TRUE(have.count("cudaMalloc"));
  EXPECT_FALSE(have.count("cudaMalloc3DArray"));
  EXPECT_FALSE(have.count("cudaGraphCreate"));
  std::istringstream chapters(GG_CHAPTERS);
  int needed = 0;
  for (std::string id; chapters >> id;) {
    for (const auto& [name, letter] :
         symbols(std::string(GG_BINARY_DIR) + "/bin/" + id, "--undefined-only")) {
      if (!is_cuda(name)) continue;
      ++needed;
      EXPECT_TRUE(have.count(name)) << id << " needs " << name;
    }
  }
  EXPECT_GT(needed, 20);
}

TEST(Symbols, TheRuntimeNeedsNoOtherRuntime) {
  for (const auto& [name, letter] : symbols(GG_EMU_CUDART, "--undefined-only"))
    EXPECT_FALSE(is_cuda(name)) << name;
}

}  // namespace
