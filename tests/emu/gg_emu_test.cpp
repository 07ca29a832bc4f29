// SPDX-License-Identifier: MIT
//
// gg-emu: its options, what it refuses, and programs that run under it.

#include <gtest/gtest.h>

#include "../process.h"

namespace {

using testing_gg::Outcome;

const std::string kPrograms = std::string(GG_BINARY_DIR) + "/bin/";
const std::string kRuntimeTest = std::string(GG_BINARY_DIR) + "/tests/runtime_test";

Outcome gg_emu(const std::vector<std::string>& words) {
  std::vector<std::string> command = {kPrograms + "gg-emu"};
  command.insert(command.end(), words.begin(), words.end());
  return testing_gg::run(command);
}

bool says(const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; }

TEST(GgEmu, HelpListsOptionsAndFaults) {
  const Outcome outcome = gg_emu({"--help"});
  EXPECT_EQ(outcome.code, 0);
  for (const char* word :
       {"--like", "--order", "--report", "--allow", "--trace", "deadlock", "uninit-shared", "race"}) {
    EXPECT_TRUE(says(outcome.out, word)) << word;
  }
}

TEST(GgEmu, RefusesInOneSentence) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "no program is named"},
      {{"--fast", "x"}, "there is no option --fast"},
      {{"--like"}, "--like wants a value"},
      {{"--like", "v100", "x"}, "--like v100"},
      {{"--order", "1:slow", "x"}, "--order 1:slow"},
      {{"--order", "-1", "x"}, "--order -1"},
      {{"--allow", "race,rain", "x"}, "\"rain\" is no kind of fault"},
      {{"--allow", "", "x"}, "\"\" is no kind of fault"},
      {{"--trace", "t.json", "x"}, "--trace is not supported"},
      {{"no-such-program"}, "there is no program no-such-program"},
      {{"/no/such/program"}, "there is no program /no/such/program"},
      {{kPrograms + "gg-emu"}, "does not link libcudart.so.13"},
  };
  for (const auto& [words, sentence] : cases) {
    const Outcome outcome = gg_emu(words);
    EXPECT_EQ(outcome.code, 2) << sentence;
    EXPECT_TRUE(says(outcome.err, sentence)) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(GgEmu, SurvivesAnyProgramFile) {
  const testing_gg::Folder folder;
  const std::string good = testing_gg::text_of(kPrograms + "gg-emu"), file = folder.at("program");
  uint64_t state = 7;
  const auto random = [&state] {
    return (state = state * 6364136223846793005ull + 1442695040888963407ull) >> 33;
  };
  for (int trial = 0; trial < 60; ++trial) {
    std::string bytes = good.substr(0, trial % 2 ? random() % 3000 : good.size());
    for (int i = 0; i < 20 && !bytes.empty(); ++i)
      bytes[random() % std::min<size_t>(bytes.size(), 800)] = char(random());
    testing_gg::write_text(file, bytes);  // not executable: it can't start, whatever is in it
    const Outcome outcome = gg_emu({file});
    EXPECT_EQ(outcome.code, 2) << outcome.err;
  }
}

std::string filter(const char* test) { return std::string("--gtest_filter=") + test; }

TEST(GgEmu, RunsAProgram) {
  const Outcome outcome = gg_emu({kRuntimeTest, filter("Runtime.ReplaysWhatWasCaptured")});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(says(outcome.out, "[  PASSED  ] 1 test.")) << outcome.out;
}

TEST(GgEmu, PlaysAnotherDevice) {
  const Outcome outcome = gg_emu({"--like", "a100", kRuntimeTest, filter("Runtime.NamesErrors")});
  EXPECT_TRUE(says(outcome.out, "no device like an H200")) << outcome.out;
}

TEST(GgEmu, ReportsCounts) {
  const Outcome outcome =
      gg_emu({"--report", "--order", "3:skew", kRuntimeTest, filter("Runtime.LaunchesClusters")});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(says(outcome.err, "counts of ")) << outcome.err;
  EXPECT_TRUE(says(outcome.err, "instructions_move")) << outcome.err;
  EXPECT_FALSE(says(outcome.out, "instructions")) << outcome.out;
}

TEST(GgEmu, EndsAtAFaultUnlessItIsAllowed) {
  const std::vector<std::string> program = {kRuntimeTest, filter("*DISABLED_ReadsUnwrittenSharedMemory"),
                                            "--gtest_also_run_disabled_tests"};
  const Outcome stopped = gg_emu(program);
  EXPECT_EQ(stopped.code, 3);
  EXPECT_TRUE(says(stopped.err, "fault uninit-shared")) << stopped.err;
  std::vector<std::string> words = {"--allow", "race,uninit-shared"};
  words.insert(words.end(), program.begin(), program.end());
  const Outcome warned = gg_emu(words);
  EXPECT_EQ(warned.code, 0) << warned.err;
  EXPECT_TRUE(says(warned.err, "allowed: ") && says(warned.err, "uninit-shared")) << warned.err;
}

}  // namespace
