// SPDX-License-Identifier: MIT
//
// The line that tells somebody at a terminal what work of some seconds does: what, how many blocks
// are done of how many, and how long the rest takes. It is written over and over in one place, and
// erased when the work ends.

#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace gg::emu {

// How far a launch is. The threads that run its blocks count, the line reads.
struct LaunchProgress {
  int64_t blocks = 0;  // of the grid
  // Rounds of the last launch of this kernel with as many blocks; 0: there was none.
  int64_t rounds_before = 0;
  std::atomic<int64_t> done{0};    // blocks that have ended
  std::atomic<int64_t> rounds{0};  // of the scheduler, over all clusters

  // The share that is done, 0 to 1: of the rounds that the last such launch took, and behind them
  // of the blocks.
  double share() const;
};

// The text of the line in `columns` characters at most: `what` is cut where it is too long, the end
// is not. `launch`: null if the work is of another kind. `seconds`: since the launch, or what is
// done else, began.
std::string progress_text(const std::string& what, const LaunchProgress* launch, double seconds, int columns);

class ProgressLine {
 public:
  static ProgressLine& get();  // the line on stderr: there if that is a terminal
  // A line on `to` for tests. Without a terminal nothing is ever written.
  ProgressLine(std::FILE* to, bool terminal) : to_(to), terminal_(terminal) {}
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Work shows when it takes longer than this, 5 unless it is set; with 0 as soon as it begins.
  void set_patience(double seconds) { patience_ = seconds; }

  // `what` begins, as a part of what has begun before and not ended; end() ends what began last.
  void begin(const std::string& what);
  void end();
  // The same of a launch. What comes back is to be counted in, and lives until end_launch;
  // null: nobody looks.
  LaunchProgress* begin_launch(const std::string& kernel, const void* code, int64_t blocks);
  void end_launch();
  // Erases the line for good: the process ends.
  void close();

  // While one lives the line is away, and others may write to the terminal.
  class Aside {
   public:
    explicit Aside(ProgressLine& line) : lock_(line.mutex_) { line.erase(); }

   private:
    std::lock_guard<std::mutex> lock_;
  };

 private:
  using Clock = std::chrono::steady_clock;
  struct Part {
    std::string what;
    Clock::time_point begin;
  };

  void draw_again(int64_t work);  // what the thread does, until this work has ended
  void draw_at_once();
  void draw();
  void erase();
  int columns() const;

  std::FILE* const to_;
  const bool terminal_;
  double patience_ = 5;
  std::mutex mutex_;  // of all below
  std::condition_variable ended_;
  std::thread thread_;
  std::vector<Part> parts_;  // the whole first
  std::unique_ptr<LaunchProgress> launch_;
  std::pair<const void*, int64_t> launch_key_;
  // Rounds that launches took, by code and blocks.
  std::map<std::pair<const void*, int64_t>, int64_t> rounds_;
  int64_t works_ = 0;  // that have ended, each with all its parts
  bool closed_ = false;
  size_t shown_ = 0;  // characters that are on the terminal
};

// A part of the work on stderr's line, while this lives.
class ProgressPart {
 public:
  explicit ProgressPart(const std::string& what) { ProgressLine::get().begin(what); }
  ~ProgressPart() { ProgressLine::get().end(); }
  ProgressPart(const ProgressPart&) = delete;
  ProgressPart& operator=(const ProgressPart&) = delete;
};

}  // namespace gg::emu
