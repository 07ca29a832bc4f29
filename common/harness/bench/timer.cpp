// SPDX-License-Identifier: MIT
//
// Events around launches or graph replays; median, 10th and 90th percentile of interleaved rounds.

#include "common/harness/bench/timer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <utility>

#include "common/harness/bench/stream_timer.h"
#include "common/kernel/check.h"

namespace gg {
namespace {

constexpr double kGraphBelowUs = 200;  // launches shorter than this are replayed from a graph
constexpr double kBatchUs = 3000;      // what the launches of a graph should last
constexpr int kMostLaunchesInGraph = 512;
constexpr double kBudgetUs = 1500000;  // what all rounds of one contestant may last
constexpr int kLeastRounds = 5;
// Untimed rounds before, until clocks and power are those of sustained work.
constexpr double kWarmUpUs = 300000;

struct RoundLengths {
  double settle_us, timed_us;  // what is run before, and what is timed
  int most;
};
RoundLengths lengths_of(Rounds rounds) {
  // At the power limit rounds of 3 ms differ by 7 %, so medians of 41 by 0.7 %: too much between
  // kernels as quick.
  if (rounds == Rounds::brief) return {0, 3000, 121};
  // An H200's clock stands still for 20 ms after another kernel, and has settled after 60 to 100.
  return {100000, 30000, 11};
}

class GpuStopwatch : public Stopwatch {
 public:
  ~GpuStopwatch() override { cudaStreamDestroy(stream_); }
  GpuStopwatch() = default;
  GpuStopwatch(const GpuStopwatch&) = delete;
  GpuStopwatch& operator=(const GpuStopwatch&) = delete;

  cudaStream_t stream() override { return stream_; }

  double time(const std::function<void()>& work, const std::function<void()>& meanwhile) override {
    return timer_.time_us(work, meanwhile);
  }

  std::function<void()> record(const std::function<void()>& work) override {
    return [this, graph = timer_.record(work)] { timer_.replay(graph); };
  }

  void wait() override { GG_CHECK(cudaStreamSynchronize(stream_)); }
  DeviceState state() override { return device_state(); }

 private:
  static cudaStream_t created() {
    cudaStream_t stream = nullptr;
    GG_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
  }

  const cudaStream_t stream_ = created();
  StreamTimer<check_cuda> timer_{stream_};
};

// One contestant's rounds: batches of launches, directly or from a graph.
class Turns {
 public:
  Turns(const Contestant& contestant, int sets, RoundLengths lengths, Stopwatch& stopwatch)
      : contestant_(contestant), sets_(sets), stopwatch_(stopwatch) {
    const auto nothing = [] {};
    stopwatch_.time([&] { launch(1); }, nothing);  // module loading and the like
    const double once = stopwatch_.time([&] { launch(1); }, nothing);
    batch_ = std::clamp(int(kBatchUs / std::max(once, 0.5)), 1, kMostLaunchesInGraph);
    if (batch_ > 1) batch_ = (batch_ + sets - 1) / sets * sets;
    if (contestant.adds) batch_ = sets;
    if (once < kGraphBelowUs) graph_ = stopwatch_.record([&] { launch(batch_); });
    const double batch_us = std::max(1.0, stopwatch_.time([&] { run(1); }, nothing));
    to_settle_ = int(std::ceil(lengths.settle_us / batch_us));
    to_time_ = std::max(1, int(lengths.timed_us / batch_us));
    rounds = std::clamp(int(kBudgetUs / ((to_settle_ + to_time_) * batch_us)), kLeastRounds, lengths.most);
  }

  void settle() { run(to_settle_); }
  // Microseconds per launch; `meanwhile` runs on the host.
  double time(const std::function<void()>& meanwhile) {
    return stopwatch_.time([&] { run(to_time_); }, meanwhile) / launches();
  }
  int launches() const { return to_time_ * batch_; }  // timed in a round
  // The very batches that were timed, as often as it takes to launch on every set; waits for them.
  void replay() {
    run((sets_ + batch_ - 1) / batch_);
    stopwatch_.wait();
  }
  int rounds = 0;

 private:
  void run(int batches) {
    for (int i = 0; i < batches; ++i) {
      if (graph_) {
        graph_();
      } else {
        launch(batch_);
      }
    }
  }
  void launch(int times) {
    for (int i = 0; i < times; ++i) contestant_.launch(next_++ % sets_, stopwatch_.stream());
  }
  const Contestant& contestant_;
  int sets_, next_ = 0;
  Stopwatch& stopwatch_;
  int batch_, to_settle_, to_time_;  // launches; batches
  std::function<void()> graph_;      // launches a batch; empty: it is launched directly
};

double percentile(const std::vector<double>& sorted, double fraction) {
  const double at = fraction * double(sorted.size() - 1);
  const size_t low = size_t(std::floor(at)), high = size_t(std::ceil(at));
  return sorted[low] + (sorted[high] - sorted[low]) * (at - double(low));
}

void set_percentiles(Timing& timing, std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  timing.median = percentile(samples, 0.5);
  timing.p10 = percentile(samples, 0.1);
  timing.p90 = percentile(samples, 0.9);
}

}  // namespace

std::unique_ptr<Stopwatch> gpu_stopwatch() { return std::make_unique<GpuStopwatch>(); }

int cold_sets(size_t bytes, size_t l2_bytes) {
  constexpr size_t kMost = 4096;
  const size_t sets = 2 * l2_bytes / bytes + 2;
  return sets <= kMost ? int(sets) : 0;
}

std::vector<Timing> time_contestants(const std::vector<Contestant>& contestants, int sets, Rounds kind,
                                     Stopwatch& stopwatch) {
  std::vector<std::unique_ptr<Turns>> turns;
  const RoundLengths lengths = lengths_of(kind);
  int rounds = lengths.most;
  for (const Contestant& contestant : contestants) {
    turns.push_back(std::make_unique<Turns>(contestant, sets, lengths, stopwatch));
    rounds = std::min(rounds, turns.back()->rounds);
  }
  for (double spent = 0; spent < kWarmUpUs;) {
    for (const auto& turn : turns) spent += turn->time([] {}) * turn->launches();
  }
  std::vector<Timing> timings(contestants.size());
  std::vector<std::vector<double>> samples(contestants.size());
  // Each round has an order of its own: who always followed an idle one would find a cooler device.
  std::vector<size_t> order(turns.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::mt19937 random(1);
  size_t before = turns.size();  // who ran before
  for (int r = 0; r < rounds; ++r) {
    std::shuffle(order.begin(), order.end(), random);
    for (const size_t i : order) {
      const auto observe = [&] {
        if (r != 0 && r != rounds - 1) return;
        const DeviceState state = stopwatch.state();
        (r == 0 ? timings[i].clock_mhz : timings[i].clock_after_mhz) = state.clock_mhz;
        timings[i].power_w = state.power_w;
      };
      if (i != std::exchange(before, i)) turns[i]->settle();
      samples[i].push_back(turns[i]->time(observe));
    }
  }
  for (size_t i = 0; i < samples.size(); ++i) {
    set_percentiles(timings[i], samples[i]);
    if (contestants[i].right) timings[i].right = contestants[i].right(sets, [&] { turns[i]->replay(); });
  }
  return timings;
}

Timing time_rested(const Contestant& contestant) {
  constexpr int kRounds = 15;
  constexpr auto kPause = std::chrono::milliseconds(40);
  GpuStopwatch stopwatch;
  Timing timing;
  std::vector<double> samples;
  const auto observe = [&] {
    const DeviceState state = stopwatch.state();
    timing.clock_mhz = timing.clock_after_mhz = state.clock_mhz;
    timing.power_w = state.power_w;
  };
  contestant.launch(0, stopwatch.stream());  // module loading and the like
  for (int r = 0; r < kRounds; ++r) {
    stopwatch.wait();
    std::this_thread::sleep_for(kPause);
    samples.push_back(stopwatch.time([&] { contestant.launch(0, stopwatch.stream()); }, observe));
  }
  set_percentiles(timing, samples);
  return timing;
}

}  // namespace gg
