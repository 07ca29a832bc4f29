// SPDX-License-Identifier: MIT
//
// Events around launches or graph replays; median, 10th and 90th percentile over interleaved rounds.

#include "common/timer.h"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>
#include <thread>

#include "common/check.h"

namespace gg {
namespace {

constexpr double kGraphBelowUs = 200;  // launches shorter than this are replayed from a graph
constexpr double kRoundUs = 3000;      // what one round of one contestant should last
constexpr double kBudgetUs = 1200000;  // what all rounds of one contestant may last
// At the power limit rounds differ by 7 %, so medians of 41 by 0.7 %: too much between kernels as quick.
constexpr int kLeastRounds = 5, kMostRounds = 121;
constexpr double kSettleUs =
    300000;  // untimed rounds before, until clocks and power are those of sustained work
constexpr int kMostLaunchesInGraph = 512;

struct Stream {
  cudaStream_t stream = nullptr;
  cudaEvent_t start = nullptr, stop = nullptr;
  Stream() {
    GG_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    GG_CHECK(cudaEventCreate(&start));
    GG_CHECK(cudaEventCreate(&stop));
  }
  ~Stream() {
    cudaEventDestroy(start);
    cudaEventDestroy(stop);
    cudaStreamDestroy(stream);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Microseconds of `work` on the device; `meanwhile` runs on the host while the device is busy.
  template <class Work, class Meanwhile>
  double time(const Work& work, const Meanwhile& meanwhile) {
    float ms = 0;
    GG_CHECK(cudaEventRecord(start, stream));
    work();
    GG_CHECK(cudaEventRecord(stop, stream));
    meanwhile();
    GG_CHECK(cudaEventSynchronize(stop));
    GG_CHECK(cudaEventElapsedTime(&ms, start, stop));
    return double(ms) * 1000;
  }
};

// One contestant's round: some launches, directly or from a graph.
class Round {
 public:
  Round(const Contestant& contestant, int sets, Stream& stream)
      : contestant_(contestant), sets_(sets), stream_(stream) {
    launches_ = 1;
    const auto nothing = [] {};
    stream_.time([&] { direct(); }, nothing);  // module loading and the like
    const double once = stream_.time([&] { direct(); }, nothing);
    launches_ = std::clamp(int(kRoundUs / std::max(once, 0.5)), 1, kMostLaunchesInGraph);
    if (launches_ > 1) launches_ = (launches_ + sets - 1) / sets * sets;
    if (once < kGraphBelowUs) record();
    const double round = stream_.time([&] { run(); }, nothing);
    rounds = std::clamp(int(kBudgetUs / std::max(round, 1.0)), kLeastRounds, kMostRounds);
  }

  void run() {
    if (graph_) {
      GG_CHECK(cudaGraphLaunch(graph_.get(), stream_.stream));
    } else {
      direct();
    }
  }
  int launches() const { return launches_; }
  int rounds = 0;

 private:
  void direct() {
    for (int i = 0; i < launches_; ++i) contestant_.launch(next_++ % sets_, stream_.stream);
  }
  void record() {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    GG_CHECK(cudaStreamBeginCapture(stream_.stream, cudaStreamCaptureModeThreadLocal));
    direct();
    GG_CHECK(cudaStreamEndCapture(stream_.stream, &graph));
    GG_CHECK(cudaGraphInstantiate(&executable, graph, 0));
    GG_CHECK(cudaGraphDestroy(graph));
    graph_ = {executable, [](cudaGraphExec_t exec) { cudaGraphExecDestroy(exec); }};
  }

  const Contestant& contestant_;
  int sets_, launches_ = 1, next_ = 0;
  Stream& stream_;
  std::shared_ptr<CUgraphExec_st> graph_;
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

std::vector<Timing> time_contestants(const std::vector<Contestant>& contestants, int sets) {
  Stream stream;
  std::vector<std::unique_ptr<Round>> rounds;
  int count = kMostRounds;
  for (const Contestant& contestant : contestants) {
    rounds.push_back(std::make_unique<Round>(contestant, sets, stream));
    count = std::min(count, rounds.back()->rounds);
  }
  for (double settled = 0; settled < kSettleUs;) {
    for (const auto& round : rounds) settled += stream.time([&] { round->run(); }, [] {});
  }
  std::vector<Timing> timings(contestants.size());
  std::vector<std::vector<double>> samples(contestants.size());
  // Each round has an order of its own: who always came behind an idle one would find a cooler device.
  std::vector<size_t> order(rounds.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::mt19937 random(1);
  for (int r = 0; r < count; ++r) {
    std::shuffle(order.begin(), order.end(), random);
    for (const size_t i : order) {
      const auto observe = [&] {
        if (r != 0 && r != count - 1) return;
        const DeviceState state = device_state();
        (r == 0 ? timings[i].clock_mhz : timings[i].clock_after_mhz) = state.clock_mhz;
        timings[i].power_w = state.power_w;
      };
      samples[i].push_back(stream.time([&] { rounds[i]->run(); }, observe) / rounds[i]->launches());
    }
  }
  for (size_t i = 0; i < samples.size(); ++i) set_percentiles(timings[i], samples[i]);
  return timings;
}

Timing time_rested(const Contestant& contestant) {
  constexpr int kRounds = 15;
  constexpr auto kPause = std::chrono::milliseconds(40);
  Stream stream;
  Timing timing;
  std::vector<double> samples;
  const auto observe = [&] {
    const DeviceState state = device_state();
    timing.clock_mhz = timing.clock_after_mhz = state.clock_mhz;
    timing.power_w = state.power_w;
  };
  contestant.launch(0, stream.stream);  // module loading and the like
  for (int r = 0; r < kRounds; ++r) {
    GG_CHECK(cudaStreamSynchronize(stream.stream));
    std::this_thread::sleep_for(kPause);
    samples.push_back(stream.time([&] { contestant.launch(0, stream.stream); }, observe));
  }
  set_percentiles(timing, samples);
  return timing;
}

DeviceState device_state() {
  // NVML API reference: nvmlDeviceGetClockInfo with NVML_CLOCK_SM = 1; power comes in milliwatts.
  struct Nvml {
    void* device = nullptr;
    int (*clock)(void*, int, unsigned*) = nullptr;
    int (*power)(void*, unsigned*) = nullptr;
    Nvml() {
      void* so = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
      if (!so) return;
      const auto init = reinterpret_cast<int (*)()>(dlsym(so, "nvmlInit_v2"));
      const auto by_bus =
          reinterpret_cast<int (*)(const char*, void**)>(dlsym(so, "nvmlDeviceGetHandleByPciBusId_v2"));
      char bus[32] = {};
      int current = 0;
      if (!init || !by_bus || init() != 0) return;
      if (cudaGetDevice(&current) != cudaSuccess ||
          cudaDeviceGetPCIBusId(bus, sizeof bus, current) != cudaSuccess)
        return;
      if (by_bus(bus, &device) != 0) device = nullptr;
      clock = reinterpret_cast<decltype(clock)>(dlsym(so, "nvmlDeviceGetClockInfo"));
      power = reinterpret_cast<decltype(power)>(dlsym(so, "nvmlDeviceGetPowerUsage"));
    }
  };
  static const Nvml nvml;
  DeviceState state;
  unsigned value = 0;
  if (nvml.device && nvml.clock && nvml.clock(nvml.device, 1, &value) == 0) state.clock_mhz = int(value);
  if (nvml.device && nvml.power && nvml.power(nvml.device, &value) == 0) state.power_w = value / 1000.0;
  return state;
}

}  // namespace gg
