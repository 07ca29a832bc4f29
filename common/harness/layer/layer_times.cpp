// SPDX-License-Identifier: MIT
//
// All launches take turns, round by round.

#include "common/harness/layer/layer_times.h"

#include <cstdio>
#include <map>

#include "common/harness/base/csv.h"
#include "common/harness/bench/timer.h"
#include "common/harness/layer/layer_check.h"
#include "common/harness/machine/emulator.h"

namespace gg {

const std::vector<std::string> kLayerColumns = {"layer",  "launch", "launches", "us_median", "us_p10",
                                                "us_p90", "tflops", "bytes",    "clock_mhz", "device",
                                                "commit", "date",   "version"};

namespace {

// A launch of a step, or several in a row.
struct Entry {
  std::string name;
  std::vector<LayerLaunch> launches;
};
std::vector<Entry> entries_of(const Layer& layer) {
  // At a rate of 0: what is timed again and again must not change the weights.
  const std::vector<LayerLaunch> step = layer.step(0), both = layer.forward_and_backward(),
                                 forward = layer.forward();
  std::vector<Entry> entries;
  for (const LayerLaunch& each : step) entries.push_back({each.name, {each}});
  entries.push_back({"forward", forward});
  entries.push_back({"backward", {both.begin() + std::ptrdiff_t(forward.size()), both.end()}});
  entries.push_back({"forward and backward", both});
  entries.push_back({"step", step});
  return entries;
}

}  // namespace

void count_layer(const Layer& layer) {
  std::printf("%s\n  %-22s %14s %14s %14s\n", text_of(layer.sizes()).c_str(), "", "multiply-adds",
              "bytes read", "bytes written");
  for (const Entry& entry : entries_of(layer)) {
    emulator()->reset_counts();
    layer.run(entry.launches);
    std::map<std::string, uint64_t> counts;
    for (const auto& [name, value] : emulator_counters()) counts[name] = value;
    std::printf("  %-22s %14llu %14llu %14llu\n", entry.name.c_str(),
                static_cast<unsigned long long>(counts["multiply_adds"]),
                static_cast<unsigned long long>(counts["global_load_bytes"]),
                static_cast<unsigned long long>(counts["global_store_bytes"]));
  }
}

bool time_layer(const LayerProgram& program, const NamedLayer& named, const LayerOptions& options,
                const Device& device, Machine& machine) {
  Layer layer(machine, program, named.sizes, options.seed, false);
  layer.draw_target();
  std::printf("%s: %s\n", named.name, text_of(named.sizes).c_str());
  LayerChecks checks(layer);
  // All that a launch reads is there then, in whatever order they are timed.
  checks.launches();
  if (!checks.passed()) return false;
  const std::vector<Entry> entries = entries_of(layer);
  std::vector<Contestant> contestants;
  for (const Entry& entry : entries) {
    contestants.push_back({entry.name, [&entry](int, cudaStream_t stream) {
                             for (const LayerLaunch& each : entry.launches) each.run(stream);
                           }});
  }
  const auto stopwatch = gpu_stopwatch();
  const std::vector<Timing> timings = time_contestants(contestants, 1, Rounds::brief, *stopwatch);
  std::printf("  %-22s %10s %9s %9s %9s\n", "", "us", "TFLOP/s", "MB", "GB/s");
  std::vector<Row> rows;
  for (size_t i = 0; i < entries.size(); ++i) {
    double flops = 0, bytes = 0;
    int kernels = 0;
    for (const LayerLaunch& each : entries[i].launches) {
      kernels += each.kernels;
      flops += each.flops;
      bytes += each.bytes;
    }
    const double us = timings[i].median;
    const std::string tflops = flops > 0 ? format("%.1f", flops / us * 1e-6) : "";
    std::printf("  %-22s %10.1f %9s %9.0f %9.0f\n", entries[i].name.c_str(), us, tflops.c_str(), bytes * 1e-6,
                bytes / us * 1e-3);
    rows.push_back({{"layer", named.name},
                    {"launch", entries[i].name},
                    {"launches", std::to_string(kernels)},
                    {"us_median", number_text(us)},
                    {"us_p10", number_text(timings[i].p10)},
                    {"us_p90", number_text(timings[i].p90)},
                    {"tflops", tflops},
                    {"bytes", number_text(bytes)},
                    {"clock_mhz", std::to_string(timings[i].clock_mhz)},
                    {"device", device.name},
                    {"commit", commit()},
                    {"date", today()},
                    {"version", ""}});
  }
  if (!options.csv.empty()) append_csv(options.csv, kLayerColumns, rows);
  return true;
}

}  // namespace gg
