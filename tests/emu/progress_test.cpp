// SPDX-License-Identifier: MIT
//
// The line for somebody who waits: its text, what is left of it on a terminal, and that nothing
// is written elsewhere.

#include "common/emu/core/state/progress.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

namespace {

using gg::emu::LaunchProgress;
using gg::emu::progress_text;
using gg::emu::ProgressLine;

constexpr int kWide = 200;
constexpr double kLong = 1e6;  // seconds that no machine takes

TEST(Progress, TellsBlocksAndWhatTheRestTakes) {
  LaunchProgress launch;
  launch.blocks = 512;
  EXPECT_EQ(progress_text("prefill, grouped_gemm", &launch, 7, kWide),
            "prefill, grouped_gemm: 0 of 512 blocks, 7 seconds so far");
  launch.done = 128;
  EXPECT_EQ(progress_text("prefill, grouped_gemm", &launch, 60, kWide),
            "prefill, grouped_gemm: 128 of 512 blocks, 3 minutes left");
  launch.done = 511;
  EXPECT_EQ(progress_text("x", &launch, 511, kWide), "x: 511 of 512 blocks, 1 second left");
  launch.done = 8;
  EXPECT_EQ(progress_text("x", &launch, 600, kWide), "x: 8 of 512 blocks, 10.5 hours left");
}

// Blocks of a persistent kernel that claims tiles end all at once: the launch before says more.
TEST(Progress, TakesTheLastSuchLaunchForMeasure) {
  LaunchProgress launch;
  launch.blocks = 132;
  launch.rounds_before = 4000;
  launch.rounds = 1000;
  EXPECT_EQ(progress_text("x", &launch, 10, kWide), "x: 0 of 132 blocks, 30 seconds left");
  launch.rounds = 5000;  // it takes longer than the last
  EXPECT_EQ(progress_text("x", &launch, 50, kWide), "x: 0 of 132 blocks, 50 seconds so far");
}

TEST(Progress, TellsHowLongOtherWorkTakesSoFar) {
  EXPECT_EQ(progress_text("problem 1 of 2, the reference", nullptr, 42, kWide),
            "problem 1 of 2, the reference: 42 seconds so far");
}

TEST(Progress, FitsIntoTheTerminal) {
  LaunchProgress launch;
  launch.blocks = 512;
  launch.done = 128;
  const std::string what = "prefill, problem 1 of 1, trial 2 of 9, random data, grouped_gemm";
  EXPECT_EQ(progress_text(what, &launch, 60, 70),
            "prefill, problem 1 of 1, trial 2...: 128 of 512 blocks, 3 minutes left");
  for (int columns = 0; columns < 120; ++columns)
    EXPECT_LE(progress_text(what, &launch, 60, columns).size(), size_t(columns));
  EXPECT_EQ(progress_text(what, &launch, 60, 36), "128 of 512 blocks, 3 minutes left");
}

// A file in the place of a terminal.
class Screen {
 public:
  Screen() : file_(std::tmpfile()) {}
  ~Screen() { std::fclose(file_); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  std::FILE* file() const { return file_; }
  std::string written() const {  // by whoever writes meanwhile, up to now
    std::string text(size_t(1) << 16, '\0');
    const ssize_t count = pread(fileno(file_), text.data(), text.size(), 0);
    text.resize(size_t(std::max<ssize_t>(count, 0)));
    return text;
  }
  // Waits until `text` is there. It comes unless there is a mistake, however slow the machine is.
  void wait_for(const std::string& text) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    while (written().find(text) == std::string::npos && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  // The characters that are left when each one overwrites what stands at its place.
  std::string shown() const {
    std::string line;
    size_t at = 0;
    for (const char c : written()) {
      if (c == '\r') {
        at = 0;
        continue;
      }
      if (at == line.size()) line += ' ';
      line[at++] = c;
    }
    return line.substr(0, line.find_last_not_of(' ') + 1);
  }

 private:
  std::FILE* const file_;
};

TEST(Progress, ComesAfterItsTimeAndIsErased) {
  const Screen screen;
  {
    ProgressLine line(screen.file(), true);
    line.set_patience(0.05);
    line.begin("problem 1 of 2");
    LaunchProgress* const launch = line.begin_launch("grouped_gemm", nullptr, 4);
    ASSERT_NE(launch, nullptr);
    launch->done = 2;
    screen.wait_for("2 of 4 blocks");
    line.end_launch();
    line.end();
  }
  EXPECT_NE(screen.written().find("\rproblem 1 of 2, grouped_gemm: 2 of 4 blocks, "), std::string::npos)
      << screen.written();
  EXPECT_EQ(screen.shown(), "");
}

TEST(Progress, ShortWorkShowsNothing) {  // short beside its patience: the thread has time to look
  const Screen screen;
  {
    ProgressLine line(screen.file(), true);
    line.set_patience(kLong);
    for (int i = 0; i < 3; ++i) {
      line.begin("work");
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      line.end();
    }
  }
  EXPECT_EQ(screen.written(), "");
}

// Without patience nothing is too short to show, and nobody waits for a thread to look.
TEST(Progress, ComesAtOnceWithoutPatience) {
  const Screen screen;
  {
    ProgressLine line(screen.file(), true);
    line.set_patience(0);
    line.begin("problem 1 of 2");
    EXPECT_NE(screen.written().find("\rproblem 1 of 2: "), std::string::npos);
    line.begin_launch("grouped_gemm", nullptr, 4);
    EXPECT_NE(screen.written().find("\rproblem 1 of 2, grouped_gemm: 0 of 4 blocks, "), std::string::npos);
    line.end_launch();
    line.end();
  }
  EXPECT_EQ(screen.shown(), "");
}

TEST(Progress, IsNotThereWithoutATerminal) {
  const Screen screen;
  {
    ProgressLine line(screen.file(), false);
    line.set_patience(0);
    line.begin("work");
    EXPECT_EQ(line.begin_launch("kernel", nullptr, 4), nullptr);
    line.end_launch();
    line.end();
  }
  EXPECT_EQ(screen.written(), "");
}

TEST(Progress, StandsAsideForOthers) {
  const Screen screen;
  ProgressLine line(screen.file(), true);
  line.set_patience(0);
  line.begin("work");
  {
    const ProgressLine::Aside aside(line);
    EXPECT_EQ(screen.shown(), "");
  }
  line.end();
}

// A process that ends in the middle of its work, as at a fault, leaves nothing.
TEST(Progress, IsErasedForGood) {
  const Screen screen;
  ProgressLine line(screen.file(), true);
  line.set_patience(0);
  line.begin("work");
  line.close();
  const std::string written = screen.written();
  EXPECT_NE(written, "");
  EXPECT_EQ(screen.shown(), "");
  line.begin("more");
  line.end();
  line.end();
  EXPECT_EQ(screen.written(), written);
}

// A launch that has ended is what the next one of the same kernel and grid is measured by.
TEST(Progress, RemembersWhatLaunchesTook) {
  const Screen screen;
  ProgressLine line(screen.file(), true);
  const int code = 0, other = 0;
  const auto run = [&](const void* of, int64_t blocks) {
    LaunchProgress* const launch = line.begin_launch("kernel", of, blocks);
    const int64_t before = launch->rounds_before;
    launch->done = blocks;
    launch->rounds = 256 * blocks;
    line.end_launch();
    return before;
  };
  EXPECT_EQ(run(&code, 4), 0);
  EXPECT_EQ(run(&code, 8), 0);
  EXPECT_EQ(run(&other, 4), 0);
  EXPECT_EQ(run(&code, 4), 1024);
  EXPECT_EQ(run(&code, 8), 2048);
}

}  // namespace
