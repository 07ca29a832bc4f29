// SPDX-License-Identifier: MIT
//
// A thread of its own draws the line, so that those who work never look at the clock. There is one
// while something is done, and only if stderr is a terminal.

#include "common/emu/core/state/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "common/harness/base/duration.h"

namespace gg::emu {

double LaunchProgress::share() const {
  if (rounds < rounds_before) return double(rounds) / double(rounds_before);
  return blocks > 0 ? std::min(1.0, double(done) / double(blocks)) : 0;
}

std::string progress_text(const std::string& what, const LaunchProgress* launch, double seconds,
                          int columns) {
  constexpr double kLeastShare = 0.001;  // less says nothing of the rest
  std::string end = ": ";
  if (launch) end += std::to_string(launch->done) + " of " + std::to_string(launch->blocks) + " blocks, ";
  const double share = launch ? launch->share() : 0;
  end += share >= kLeastShare ? duration_text(seconds / share - seconds) + " left"
                              : duration_text(seconds) + " so far";
  const size_t room = size_t(std::max(0, columns)), dots = 3;
  if (what.size() + end.size() <= room) return what + end;
  if (end.size() + dots >= room) return end.substr(2, room);
  return what.substr(0, room - end.size() - dots) + "..." + end;
}

ProgressLine& ProgressLine::get() {
  // It is never destroyed: see Runtime::get.
  static auto& line = *new ProgressLine(stderr, isatty(STDERR_FILENO) == 1);
  return line;
}

ProgressLine::~ProgressLine() {
  close();
  if (thread_.joinable()) thread_.join();
}

void ProgressLine::begin(const std::string& what) {
  if (!terminal_) return;
  std::lock_guard lock(mutex_);
  parts_.push_back({what, Clock::now()});
  draw_at_once();
  if (parts_.size() == 1 && !closed_) thread_ = std::thread([this, work = works_] { draw_again(work); });
}

void ProgressLine::end() {
  if (!terminal_) return;
  std::thread over;
  {
    std::lock_guard lock(mutex_);
    if (!parts_.empty()) parts_.pop_back();
    if (!parts_.empty()) return;
    ++works_;
    erase();
    over.swap(thread_);
  }
  ended_.notify_all();
  if (over.joinable()) over.join();
}

LaunchProgress* ProgressLine::begin_launch(const std::string& kernel, const void* code, int64_t blocks) {
  if (!terminal_) return nullptr;
  begin(kernel);
  std::lock_guard lock(mutex_);
  launch_key_ = {code, blocks};
  launch_ = std::make_unique<LaunchProgress>();
  launch_->blocks = blocks;
  const auto before = rounds_.find(launch_key_);
  if (before != rounds_.end()) launch_->rounds_before = before->second;
  draw_at_once();
  return launch_.get();
}

void ProgressLine::end_launch() {
  if (!terminal_) return;
  {
    std::lock_guard lock(mutex_);
    if (launch_ && launch_->done == launch_->blocks) rounds_[launch_key_] = launch_->rounds;
    launch_.reset();
  }
  end();
}

void ProgressLine::close() {
  if (!terminal_) return;
  std::lock_guard lock(mutex_);
  closed_ = true;
  erase();
  ended_.notify_all();
}

void ProgressLine::draw_again(int64_t work) {
  constexpr std::chrono::milliseconds kBetween(500);
  std::unique_lock lock(mutex_);
  const auto over = [this, work] { return closed_ || works_ != work; };
  const std::chrono::duration<double> patience(patience_);
  if (ended_.wait_for(lock, patience, over)) return;
  do {
    draw();
  } while (!ended_.wait_for(lock, kBetween, over));
}

// Without patience every part shows, also one that ends before the thread would look.
void ProgressLine::draw_at_once() {
  if (patience_ <= 0 && !closed_) draw();
}

void ProgressLine::draw() {
  std::string what;
  for (const Part& part : parts_) what += (what.empty() ? "" : ", ") + part.what;
  const double seconds = std::chrono::duration<double>(Clock::now() - parts_.back().begin).count();
  const std::string text = progress_text(what, launch_.get(), seconds, columns() - 1);
  const size_t rest = shown_ > text.size() ? shown_ - text.size() : 0;
  std::fprintf(to_, "\r%s%*s", text.c_str(), int(rest), "");
  std::fflush(to_);
  shown_ = std::max(shown_, text.size());
}

void ProgressLine::erase() {
  if (shown_ == 0) return;
  std::fprintf(to_, "\r%*s\r", int(shown_), "");
  std::fflush(to_);
  shown_ = 0;
}

// A line that is longer than the terminal is wide could not be written over.
int ProgressLine::columns() const {
  winsize size{};
  return ioctl(fileno(to_), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace gg::emu
