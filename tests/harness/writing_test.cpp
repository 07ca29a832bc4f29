// SPDX-License-Identifier: MIT
//
// Files that our programs leave on a disk: several files together or none, rows of many programs in
// one CSV, symbolic links that stay links, and nothing that was there is touched on the way.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <set>

#include "common/harness/base/csv.h"
#include "common/harness/base/files.h"
#include "tests/process.h"

namespace gg {
namespace {

using testing_gg::Folder;
using testing_gg::text_of;
using testing_gg::write_text;

size_t entries(const Folder& folder) {
  return size_t(std::distance(std::filesystem::directory_iterator(folder.path), {}));
}

TEST(NewFiles, TakeTheirPlacesTogether) {
  const Folder folder;
  write_text(folder.at("a"), "old a");
  {
    NewFiles files;
    files.add(folder.at("a"), "new a");
    files.add(folder.at("b"), "new b");
    EXPECT_EQ(text_of(folder.at("a")), "old a");
    EXPECT_FALSE(exists(folder.at("b")));
    files.commit();
    EXPECT_EQ(text_of(folder.at("a")), "new a");
    EXPECT_EQ(text_of(folder.at("b")), "new b");
  }
  EXPECT_EQ(entries(folder), 2u);
}

TEST(NewFiles, LeaveNothingWhereTheyAreNotPutIntoPlace) {
  const Folder folder;
  NewFiles().add(folder.at("a"), "a");
  EXPECT_EQ(entries(folder), 0u);
}

// The first file fits and the second one does not.
[[noreturn]] void write_two_with_little_room(const Folder& folder) {
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{1000, 1000};
  setrlimit(RLIMIT_FSIZE, &limit);
  const auto error = testing_gg::error_of([&] {
    NewFiles files;
    files.add(folder.at("a"), "new a");
    files.add(folder.at("d"), std::string(5000, 'd'));
    files.commit();
  });
  std::fputs(error ? error->what() : "written", stderr);
  std::_Exit(error ? int(error->code) : 0);
}

TEST(NewFiles, AFullDiskLeavesAllEarlierFilesWhole) {
  const Folder folder;
  write_text(folder.at("a"), "old a");
  write_text(folder.at("d"), "old d");
  EXPECT_EXIT(write_two_with_little_room(folder), testing::ExitedWithCode(int(Exit::cannot_write)),
              "/d: writing failed: File too large; what was there before is unchanged");
  EXPECT_EQ(text_of(folder.at("a")), "old a");
  EXPECT_EQ(text_of(folder.at("d")), "old d");
  EXPECT_EQ(entries(folder), 2u);
}

TEST(NewFiles, SayWhichWereReplacedWhereOneCannotBe) {
  const Folder folder;
  NewFiles files;
  for (const char* name : {"a", "b", "c"}) files.add(folder.at(name), name);
  std::filesystem::create_directory(folder.at("c"));  // no file takes the place of a folder
  const auto error = testing_gg::error_of([&] { files.commit(); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, Exit::cannot_write);
  EXPECT_EQ(error->what(), folder.at("c") +
                               ": renaming it into place failed: Is a directory; already replaced: " +
                               folder.at("a") + ", " + folder.at("b"));
}

TEST(NewFiles, AreNotWrittenOverSomebodyElses) {
  const Folder folder;
  write_text(folder.at("x.new"), "mine");
  write_text(folder.at("x.new-" + std::to_string(getpid()) + "-0"), "mine too");
  write_file(folder.at("x"), "x");
  EXPECT_EQ(text_of(folder.at("x.new")), "mine");
  EXPECT_EQ(text_of(folder.at("x.new-" + std::to_string(getpid()) + "-0")), "mine too");
  EXPECT_EQ(text_of(folder.at("x")), "x");
}

TEST(NewFiles, ReplaceWhatALinkLeadsTo) {
  const Folder folder;
  std::filesystem::create_directory(folder.at("data"));
  write_text(folder.at("data/x"), "old");
  std::filesystem::create_symlink("data/x", folder.at("first"));
  std::filesystem::create_symlink("first", folder.at("second"));
  std::filesystem::create_symlink("data/none", folder.at("dangling"));
  for (const char* link : {"second", "dangling"}) write_file(folder.at(link), link);
  EXPECT_TRUE(std::filesystem::is_symlink(folder.at("second")));
  EXPECT_EQ(text_of(folder.at("data/x")), "second");
  EXPECT_TRUE(std::filesystem::is_symlink(folder.at("dangling")));
  EXPECT_EQ(text_of(folder.at("data/none")), "dangling");
}

TEST(NewFiles, HaveThePermissionsOfThoseTheyReplace) {
  const Folder folder;
  write_file(folder.at("x"), "old");
  std::filesystem::permissions(folder.at("x"), std::filesystem::perms(0640));
  write_file(folder.at("x"), "new");
  EXPECT_EQ(std::filesystem::status(folder.at("x")).permissions(), std::filesystem::perms(0640));
}

const std::vector<std::string> kColumns = {"writer", "row"};

TEST(Csv, KeepsTheRowsOfAllProgramsThatAppend) {
  constexpr int kWriters = 12, kRows = 25;
  const Folder folder;
  const std::string path = folder.at("x.csv");
  std::vector<pid_t> children;
  for (int writer = 0; writer < kWriters; ++writer) {
    const pid_t child = fork();
    if (child == 0) {
      for (int row = 0; row < kRows; ++row) {
        const auto error = testing_gg::error_of([&] {
          append_csv(path, kColumns, {{{"writer", std::to_string(writer)}, {"row", std::to_string(row)}}});
        });
        if (error) _exit(int(error->code));
      }
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  std::istringstream text(text_of(path));
  std::string line;
  ASSERT_TRUE(std::getline(text, line));
  EXPECT_EQ(line, "writer,row");
  std::set<std::string> rows;
  size_t count = 0;
  for (; std::getline(text, line); ++count) rows.insert(line);
  EXPECT_EQ(count, size_t(kWriters * kRows));
  EXPECT_EQ(rows.size(), count);
  EXPECT_EQ(entries(folder), 1u);
}

TEST(Csv, RefusesWhatIsNoPlainFileBeforeItReads) {
  const Folder folder;
  ASSERT_EQ(mkfifo(folder.at("pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/full", folder.at("link"));
  for (const std::string& path :
       {folder.at("pipe"), std::string("/dev/full"), folder.at("link"), folder.path}) {
    for (const bool append : {false, true}) {
      const auto error = testing_gg::error_of(
          [&] { append ? append_csv(path, kColumns, {}) : require_csv(path, kColumns); });
      ASSERT_TRUE(error) << path;
      EXPECT_EQ(error->code, Exit::cannot_write);
      EXPECT_EQ(error->what(), path + ": is there and is no plain file; name another");
    }
  }
}

TEST(Csv, ARefusalLeavesNoFile) {
  const Folder folder;
  write_text(folder.at("other.csv"), "another,header\n");
  const auto error = testing_gg::error_of([&] { append_csv(folder.at("other.csv"), kColumns, {}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, Exit::bad_input);
  EXPECT_EQ(text_of(folder.at("other.csv")), "another,header\n");
  require_csv(folder.at("new.csv"), kColumns);
  EXPECT_EQ(entries(folder), 1u);
}

}  // namespace
}  // namespace gg
