// SPDX-License-Identifier: MIT
//
// Helpers of several tests: running a program and keeping what it said, a folder that goes away,
// text in files, and the gg::Error that a call ends with.

#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "common/kernel/error.h"

namespace testing_gg {

struct Outcome {
  int code = -1;  // 128 + the signal, if one ended the program
  std::string out, err;
};

inline Outcome run(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  std::FILE* const files[2] = {std::tmpfile(), std::tmpfile()};
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    for (int i : {0, 1}) dup2(fileno(files[i]), i + 1);
    execv(argv[0], argv.data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  Outcome outcome;
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  for (int i : {0, 1}) {
    std::rewind(files[i]);
    char piece[4096];
    while (const size_t count = std::fread(piece, 1, sizeof piece, files[i])) {
      (i == 0 ? outcome.out : outcome.err).append(piece, count);
    }
    std::fclose(files[i]);
  }
  return outcome;
}

// Starts a chapter on the emulator at once, as --device emu does after NVIDIA's runtime was loaded:
// what is refused needs no GPU, and to ask the driver for one takes a second where many do.
inline Outcome run_without_gpu(std::vector<std::string> words) {
  words.insert(words.begin(),
               {"/usr/bin/env", "LD_LIBRARY_PATH=" GG_BINARY_DIR "/lib/emu", "GG_EMU_RESTARTED="});
  return run(words);
}

// A new folder, removed with all it holds.
class Folder {
 public:
  Folder() {
    std::string name = testing::TempDir() + "/gg-XXXXXX";
    path = mkdtemp(name.data()) ? name : "";
  }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string at(const std::string& name) const { return path + "/" + name; }
  std::string path;
};

inline void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}
inline std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

template <class Call>
std::optional<gg::Error> error_of(Call call) {
  try {
    call();
  } catch (const gg::Error& error) {
    return error;
  }
  return std::nullopt;
}

// One sentence: a single line that holds what it is about.
inline testing::AssertionResult one_line_with(const std::string& text, const std::string& part) {
  if (text.empty() || text.find('\n') != text.size() - 1)
    return testing::AssertionFailure() << "not one line:\n" << text;
  if (text.find(part) == std::string::npos)
    return testing::AssertionFailure() << "without '" << part << "': " << text;
  return testing::AssertionSuccess();
}

#ifdef GG_BUILT_CHAPTERS
// The chapters of this build in order of reading, as CMake lists them.
inline std::vector<std::string> built_chapters() {
  std::vector<std::string> ids;
  std::stringstream list(GG_BUILT_CHAPTERS);
  for (std::string id; std::getline(list, id, ' ');) ids.push_back(id);
  return ids;
}
inline bool is_built(const std::string& id) {
  const std::vector<std::string> ids = built_chapters();
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}
inline std::string program(const std::string& id) { return GG_BINARY_DIR "/bin/" + id; }
#endif

}  // namespace testing_gg
