// SPDX-License-Identifier: MIT
//
// The fastest of several ways to run a problem: how cuBLAS's proposals are chosen from, and the
// ways of each library in plots/measure/peers. All are chosen by the same rounds. GG_PEER_VERBOSE=1
// in the environment prints each way's microseconds and the choice on stderr.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/harness/bench/stream_timer.h"

namespace peers {

inline void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}
inline void check_timed(cudaError_t error, const char* call, const char*, int) { check(error, call); }

// One way to run the problem that a peer was given.
struct Way {
  virtual ~Way() = default;
  virtual void launch(cudaStream_t stream) = 0;
  std::string name;
};

// A way that has not been made yet: it takes memory of the device, and most are never launched.
struct Offer {
  std::string name;
  std::function<std::unique_ptr<Way>()> make;
};

// Launches of one way, recorded in a graph as the harness records them: what the host does between
// two launches is not timed.
class TimedWay {
 public:
  TimedWay(Way& way, cudaStream_t stream) : timer_(stream) {
    const auto launch = [&] { way.launch(stream); };
    launch();  // the first one loads the kernel
    const double first_us = timer_.time_us(launch, [] {});
    launches_ = std::clamp(int(500 / std::max(first_us, 1.0)), 3, 50);
    replays_in_ms_ = 1000 / std::max(first_us * launches_, 1.0);
    graph_ = timer_.record([&] {
      for (int i = 0; i < launches_; ++i) launch();
    });
  }

  void run_round(int settle_ms, int timed_ms) {
    const auto replay = [&](int times) {
      for (int i = 0; i < times; ++i) timer_.replay(graph_);
    };
    const int times = std::max(1, int(replays_in_ms_ * timed_ms));
    replay(int(replays_in_ms_ * settle_ms));
    rounds_us_.push_back(timer_.time_us([&] { replay(times); }, [] {}) / (launches_ * times));
  }
  void forget_rounds() { rounds_us_.clear(); }
  double median_us() const {
    std::vector<double> sorted = rounds_us_;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }

 private:
  using Timer = gg::StreamTimer<check_timed>;
  Timer timer_;
  Timer::Graph graph_;
  int launches_ = 0;
  double replays_in_ms_ = 0;
  std::vector<double> rounds_us_;
};

// Finds the fastest of the ways offered. All go through one round, then those within three tenths
// of the best through five, then up to twelve within a tenth through 45 more; or, where joules
// count, eight within a seventh through five rounds at their own clocks. Each round has an order of
// its own: a way that always came behind an idle one would find a cooler device.
class Contest {
 public:
  explicit Contest(const std::vector<Offer>& offers) {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    for (const Offer& offer : offers) {
      try {
        Entrant entrant;
        entrant.way = offer.make();
        entrant.way->name = offer.name;
        entrant.timed = std::make_unique<TimedWay>(*entrant.way, stream_);
        left_.push_back(std::move(entrant));
      } catch (const std::exception& error) {
        cudaGraph_t broken_off = nullptr;
        cudaStreamEndCapture(stream_, &broken_off);  // if it was in one
        cudaGetLastError();                          // the next one's launch would find it
        last_error_ = error.what();
        std::fprintf(stderr, "%s left out: %s\n", offer.name.c_str(), error.what());
      }
    }
  }
  Contest(const Contest&) = delete;
  ~Contest() {
    left_.clear();
    cudaStreamDestroy(stream_);
  }

  // The name of the fastest. `sustained`: rounds are as --sustained has them (timer.h), for joules
  // count then. Throws std::runtime_error where none of the ways runs.
  std::string winner(bool sustained) {
    if (left_.empty()) throw std::runtime_error("none of its ways runs here, the last: " + last_error_);
    run_rounds(1, 0, 0);
    keep(1.3, left_.size());
    run_rounds(5, 0, 0);
    if (sustained) {
      keep(1.15, 8);
      run_rounds(5, 100, 30);
    } else {
      keep(1.1, 12);
      run_rounds(45, 0, 0);
    }
    if (verbose()) report(0, "  <- chosen");
    return left_.front().way->name;
  }

 private:
  struct Entrant {
    std::unique_ptr<Way> way;
    std::unique_ptr<TimedWay> timed;
  };

  static bool verbose() { return std::getenv("GG_PEER_VERBOSE"); }

  void run_rounds(int rounds, int settle_ms, int timed_ms) {
    for (Entrant& each : left_) each.timed->forget_rounds();
    for (int round = 0; round < rounds; ++round) {
      std::shuffle(left_.begin(), left_.end(), random_);
      for (Entrant& each : left_) each.timed->run_round(settle_ms, timed_ms);
    }
    std::sort(left_.begin(), left_.end(),
              [](const Entrant& x, const Entrant& y) { return x.timed->median_us() < y.timed->median_us(); });
  }

  void keep(double within, size_t most) {
    const double limit_us = within * left_.front().timed->median_us();
    size_t kept = 0;
    while (kept < std::min(most, left_.size()) && left_[kept].timed->median_us() <= limit_us) ++kept;
    if (verbose()) report(kept, "  left out");
    left_.resize(kept);
  }

  void report(size_t from, const char* what) const {
    for (size_t i = from; i < left_.size(); ++i) {
      std::fprintf(stderr, "%10.2f us  %s%s\n", left_[i].timed->median_us(), left_[i].way->name.c_str(),
                   from > 0 || i == 0 ? what : "");
    }
  }

  cudaStream_t stream_ = nullptr;
  std::mt19937 random_{1};
  std::vector<Entrant> left_;
  std::string last_error_;
};

// A peer's choices. Each problem is timed once: its further sets of buffers, which the harness
// prepares for cold launches, take the same way.
class Choices {
 public:
  // The fastest of these ways, made. `problem`: the numbers that tell it from the peer's other
  // problems. `sustained`: the choice is made as the choice will be timed. Throws
  // std::runtime_error where there is no way, where none runs, and where the one chosen before is
  // not offered any more.
  std::unique_ptr<Way> choose(const std::vector<int64_t>& problem, const std::vector<Offer>& offers,
                              bool sustained) {
    if (offers.empty()) throw std::runtime_error("no way to run this problem");
    std::string& chosen = chosen_[{problem, sustained}];
    if (chosen.empty()) chosen = offers.size() == 1 ? offers[0].name : Contest(offers).winner(sustained);
    for (const Offer& offer : offers) {
      if (offer.name != chosen) continue;
      std::unique_ptr<Way> way = offer.make();
      way->name = offer.name;
      return way;
    }
    throw std::runtime_error("the way chosen before is not offered any more");
  }

 private:
  // The way's name; empty if none ran.
  std::map<std::pair<std::vector<int64_t>, bool>, std::string> chosen_;
};

}  // namespace peers
