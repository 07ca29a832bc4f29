// SPDX-License-Identifier: MIT
// What the peers written in CUDA share: errors as sentences, memory that frees itself, and the choice of the
// fastest of several ways to run a problem. Three variables of the environment are read:
//   GG_PEER_CHOICE=TEXT   only ways whose name contains TEXT
//   GG_PEER_VERBOSE=1     each way's microseconds and the choice, on stderr
//   GG_PEER_SUSTAINED=1   set by --sustained: the choice is made as the choice will be timed, common/bench/timer.h
#pragma once

#include <cuda_runtime.h>

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
#include <vector>

namespace peers {

inline void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

// Runs the body of an exported function: null, or the sentence that it threw. The text lives until the next
// one.
template <class Body>
const char* sentence_of(Body&& body) {
  static thread_local std::string text;
  try {
    body();
    return nullptr;
  } catch (const std::exception& error) {
    text = error.what();
    return text.c_str();
  }
}

struct DeviceFree {
  void operator()(void* memory) const { cudaFree(memory); }
};
template <class T>
using Device = std::unique_ptr<T, DeviceFree>;

template <class T>
Device<T> device_array(size_t count) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, std::max<size_t>(count, 1) * sizeof(T)), "cudaMalloc");
  return Device<T>(static_cast<T*>(memory));
}

template <class T>
Device<T> on_device(const std::vector<T>& values) {
  Device<T> array = device_array<T>(values.size());
  check(cudaMemcpy(array.get(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
        "cudaMemcpy");
  return array;
}

// One way to run the problem that a peer was given.
struct Way {
  virtual ~Way() = default;
  virtual void launch(cudaStream_t stream) = 0;
  std::string name;
};

inline bool wanted(const std::string& name) {
  const char* choice = std::getenv("GG_PEER_CHOICE");
  return !choice || name.find(choice) != std::string::npos;
}

// Launches of one way, recorded in a graph as the harness records them: what the host does between two
// launches is not timed.
class TimedWay {
 public:
  TimedWay(Way& way, cudaStream_t stream) : stream_(stream) {
    check(cudaEventCreate(&begin_), "cudaEventCreate");
    check(cudaEventCreate(&end_), "cudaEventCreate");
    way.launch(stream);  // the first one loads the kernel
    const float first_us = time_us([&] { way.launch(stream); });
    launches_ = std::clamp(int(500 / std::max(first_us, 1.0f)), 3, 50);
    replays_in_ms_ = 1000 / std::max(first_us * float(launches_), 1.0f);
    cudaGraph_t graph = nullptr;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    for (int i = 0; i < launches_; ++i) way.launch(stream);
    check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    check(cudaGraphInstantiate(&replay_, graph, 0), "cudaGraphInstantiate");
    check(cudaGraphDestroy(graph), "cudaGraphDestroy");
  }
  TimedWay(const TimedWay&) = delete;
  ~TimedWay() {
    cudaGraphExecDestroy(replay_);
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }

  void run_round(int settle_ms, int timed_ms) {
    const auto replay = [&](int times) {
      for (int i = 0; i < times; ++i) check(cudaGraphLaunch(replay_, stream_), "cudaGraphLaunch");
    };
    const int times = std::max(1, int(replays_in_ms_ * float(timed_ms)));
    replay(int(replays_in_ms_ * float(settle_ms)));
    rounds_us_.push_back(time_us([&] { replay(times); }) / float(launches_ * times));
  }
  void forget_rounds() { rounds_us_.clear(); }
  float median_us() const {
    std::vector<float> sorted = rounds_us_;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }

 private:
  template <class Work>
  float time_us(Work&& work) {
    check(cudaEventRecord(begin_, stream_), "cudaEventRecord");
    work();
    check(cudaEventRecord(end_, stream_), "cudaEventRecord");
    check(cudaEventSynchronize(end_), "the kernel");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin_, end_), "cudaEventElapsedTime");
    return ms * 1000;
  }

  cudaStream_t stream_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  cudaGraphExec_t replay_ = nullptr;
  int launches_ = 0;
  float replays_in_ms_ = 0;
  std::vector<float> rounds_us_;
};

// Takes all ways through five rounds, then up to twelve within a tenth of the best through 45 more; or, where
// joules count, eight within a seventh through five rounds at their own clocks. Each round has an order of
// its own: a way that always came behind an idle one would find a cooler device.
inline size_t fastest(const std::vector<std::unique_ptr<Way>>& ways) {
  cudaStream_t stream;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  std::vector<std::unique_ptr<TimedWay>> timed(ways.size());
  std::vector<size_t> left;
  for (size_t i = 0; i < ways.size(); ++i) {
    try {
      timed[i] = std::make_unique<TimedWay>(*ways[i], stream);
      left.push_back(i);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s left out: %s\n", ways[i]->name.c_str(), error.what());
    }
  }
  if (left.empty()) throw std::runtime_error("none of its ways runs here");
  std::mt19937 random(1);
  const auto run_rounds = [&](int rounds, int settle_ms, int timed_ms) {
    for (const size_t i : left) timed[i]->forget_rounds();
    for (int round = 0; round < rounds; ++round) {
      std::shuffle(left.begin(), left.end(), random);
      for (const size_t i : left) timed[i]->run_round(settle_ms, timed_ms);
    }
    std::sort(left.begin(), left.end(),
              [&](size_t x, size_t y) { return timed[x]->median_us() < timed[y]->median_us(); });
  };
  const bool sustained = std::getenv("GG_PEER_SUSTAINED");
  run_rounds(5, 0, 0);
  const float limit_us = (sustained ? 1.15f : 1.1f) * timed[left.front()]->median_us();
  std::erase_if(left, [&](size_t i) { return timed[i]->median_us() > limit_us; });
  left.resize(std::min<size_t>(left.size(), sustained ? 8 : 12));
  if (sustained) {
    run_rounds(5, 100, 30);
  } else {
    run_rounds(45, 0, 0);
  }

  if (std::getenv("GG_PEER_VERBOSE")) {
    for (size_t i = 0; i < ways.size(); ++i) {
      if (!timed[i]) continue;
      std::fprintf(stderr, "%10.2f us  %s%s\n", timed[i]->median_us(), ways[i]->name.c_str(),
                   i == left.front() ? "  <- chosen" : "");
    }
  }
  const size_t best = left.front();
  timed.clear();
  check(cudaStreamDestroy(stream), "cudaStreamDestroy");
  return best;
}

// The fastest of `ways`; the others are gone. Each problem is timed once: its further sets of buffers, which
// the harness prepares for cold launches, take the same way. Static, not inline, so that two peers in one
// process do not share `chosen`: the loader makes one of an inline function's variables.
static std::unique_ptr<Way> choose(const std::vector<int64_t>& problem,
                                   std::vector<std::unique_ptr<Way>> ways) {
  static std::map<std::vector<int64_t>, std::string> chosen;
  if (ways.empty()) throw std::runtime_error("no way to run this problem");
  auto found = chosen.find(problem);
  if (found == chosen.end()) {
    const size_t best = ways.size() == 1 ? 0 : fastest(ways);
    found = chosen.emplace(problem, ways[best]->name).first;
  }
  for (auto& way : ways) {
    if (way->name == found->second) return std::move(way);
  }
  throw std::runtime_error("the way chosen before is not offered any more");
}

}  // namespace peers
