// SPDX-License-Identifier: MIT
//
// The code that the tests of refusals share: a row of their tables, and running a row's chapter.

#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "tests/chapters/run_chapter.h"

namespace testing_gg {

// `{}` in an argument stands for the folder of operands, which `spoil` has changed.
struct Bad {
  std::string name, chapter;
  std::vector<std::string> arguments;
  std::string says;
  std::function<void(const Folder&)> spoil = [](const Folder&) {};
};

inline void PrintTo(const Bad& bad, std::ostream* out) { *out << bad.name; }

inline Outcome run_in(const Folder& folder, const std::string& chapter,
                      const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {program(chapter)};
  for (std::string word : arguments) {
    if (const size_t at = word.find("{}"); at != std::string::npos) word.replace(at, 2, folder.path);
    words.push_back(word);
  }
  return run_without_gpu(words);
}

// Refused with exit code 2 and one sentence that holds what the row says, before anything was done.
inline void expect_refused(const Bad& bad, const Folder& folder) {
  bad.spoil(folder);
  const Outcome outcome = run_in(folder, bad.chapter, bad.arguments);
  EXPECT_EQ(outcome.code, int(gg::Exit::bad_input)) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(one_line_with(outcome.err, bad.says));
  EXPECT_EQ(outcome.err.rfind(bad.chapter + ": ", 0), 0u) << outcome.err;
}

inline void expect_accepted(const std::string& chapter, const Folder& folder,
                            const std::vector<std::string>& arguments) {
  const Outcome outcome = run_in(folder, chapter, arguments);
  EXPECT_TRUE(outcome.code == 0 || outcome.code == int(gg::Exit::no_device)) << outcome.out << outcome.err;
}

inline std::string many(const char* text, int count) {
  std::string list = text;
  for (int i = 1; i < count; ++i) list += std::string(",") + text;
  return list;
}

}  // namespace testing_gg
