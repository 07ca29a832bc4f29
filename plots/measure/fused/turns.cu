// SPDX-License-Identifier: MIT
//
// gg-fused: chapter 07m's gated linear unit beside the unfused way, which is chapter 07l's product and then a
// kernel that reads it, and beside that product alone. All three in turns, on the same operands:
//
//   build/bin/gg-fused [--set prefill,skewed,decode,moe] [--csv FILE]
//
// Each way's D is compared with the other's first, within what rounding C to bf16 may change. Where the
// emulator runs, that is all. Rows of the CSV file are chapter 07m's, the others' names stand as peers.

#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "common/base/csv.h"
#include "common/base/text.h"
#include "common/bench/roof.h"
#include "common/bench/timer.h"
#include "common/check.h"
#include "common/epilogue.cuh"
#include "common/epilogue_glu.cuh"
#include "common/launch.h"
#include "common/machine/buffers.h"
#include "common/problem/shapes.h"
#include "common/ptx/warpgroup.cuh"
#include "common/run/report.h"
#include "ways.h"

namespace {

using gg::Format;
namespace ep = gg::epilogue;

constexpr const char* kChapter = "07m_fused_glu";
constexpr int kThreads = 256, kAtOnce = 8, kUnits = 4;  // outputs of a lane, 16 bytes; so many times
constexpr int kWarpOutputs = 32 * kAtOnce * kUnits;     // of a row

__device__ void unpack(const uint4& words, float (&v)[kAtOnce]) {
  const uint32_t all[] = {words.x, words.y, words.z, words.w};
#pragma unroll
  for (int i = 0; i < kAtOnce; ++i) v[i] = ep::float_of(i % 2 ? all[i / 2] & 0xFFFF0000 : all[i / 2] << 16);
}

// D [rows,N/2] of C [rows,N]. A warp has up to kWarpOutputs outputs of a row: all its loads are under way at
// once, each byte is read once, and 32 lanes read 512 bytes that follow each other, or 64 that do.
__global__ void __launch_bounds__(kThreads) glu(const uint4* c, const float* alpha, const float* prob,
                                                gg::Offsets offsets, int groups, int n, uint4* d) {
  gg::ptx::griddepcontrol_launch_dependents();
  gg::ptx::griddepcontrol_wait();  // C is there
  const int lane = int(threadIdx.x) % 32, outputs = n / 2,
            chunks = (outputs + kWarpOutputs - 1) / kWarpOutputs;
  const int64_t warp = int64_t(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32;
  const int row = int(warp / chunks), first = int(warp % chunks) * kWarpOutputs;
  if (row >= offsets[groups]) return;
  int group = 0;  // groups that end at or before this row
  for (int g = lane; g < (groups + 31) / 32 * 32; g += 32)
    group += __popc(__ballot_sync(~0u, g < groups && offsets[g + 1] <= row));
  uint4 gates[kUnits], ups[kUnits];
#pragma unroll
  for (int i = 0; i < kUnits; ++i) {
    const int column = first + (i * 32 + lane) * kAtOnce;
    if (column >= outputs) continue;
    gates[i] = c[(int64_t(row) * n + ep::gate_column(column)) / kAtOnce];
    ups[i] = c[(int64_t(row) * n + ep::up_column(column)) / kAtOnce];
  }
  const float factor = alpha[group], of_row = prob[row];
#pragma unroll
  for (int i = 0; i < kUnits; ++i) {
    const int column = first + (i * 32 + lane) * kAtOnce;
    if (column >= outputs) continue;
    float gate[kAtOnce], up[kAtOnce];
    unpack(gates[i], gate);
    unpack(ups[i], up);
    uint32_t words[kAtOnce / 2];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j)
      gate[j] = ep::swiglu(ep::scaled(gate[j], factor), ep::scaled(up[j], factor), of_row);
#pragma unroll
    for (int j = 0; j < kAtOnce / 2; ++j) words[j] = ep::word_of<Format::bf16>(gate + 2 * j);
    d[(int64_t(row) * outputs + column) / kAtOnce] = {words[0], words[1], words[2], words[3]};
  }
}

void launch_unfused(const gg::Problem& p, cudaStream_t stream) {
  launch_product(p, stream);
  const int chunks = (p.n() / 2 + kWarpOutputs - 1) / kWarpOutputs;
  const int64_t warps = p.layout().offsets.back() * chunks, each = kThreads / 32;
  if (warps == 0) return;
  gg::launch_kernel({.grid = dim3(unsigned((warps + each - 1) / each)),
                     .threads = kThreads,
                     .shared_bytes = 0,
                     .stream = stream,
                     .dependent = true},
                    glu, static_cast<const uint4*>(p.epilogue().c), p.epilogue().alpha, p.epilogue().prob,
                    p.offsets(), p.groups(), p.n(), p.d<uint4>());
}

gg::Setup setup_with(bool stores_c) {
  gg::Setup setup;
  setup.b_layout = gg::BLayout::nk;
  setup.host_offsets = false;
  setup.epilogue = {.op = gg::Operator::glu, .stores_c = stores_c};
  return setup;
}

std::vector<float> read(gg::Machine& machine, const void* codes, int64_t count) {
  std::vector<uint16_t> raw(static_cast<size_t>(count));
  machine.download(raw.data(), codes, raw.size() * 2);
  std::vector<float> values;
  for (const uint16_t code : raw) values.push_back(ep::float_of(uint32_t(code) << 16));
  return values;
}

// Rounding C moves a gate and an up by up to 2^-8 of themselves, the output by that times 1 + |gate| and once
// more, and both outputs are rounded.
void require_equal(gg::Machine& machine, const gg::Buffers& buffers) {
  const gg::Problem& p = buffers.problem();
  const int64_t rows = p.layout().offsets.back(), outputs = p.n() / 2;
  const auto result = [&](auto launch) {
    buffers.poison(0xFF);
    machine.run([&](cudaStream_t stream) { launch(p, stream); });
    return read(machine, p.d<void>(), rows * outputs);
  };
  const std::vector<float> fused = result(launch_fused), unfused = result(launch_unfused);
  const std::vector<float> c = read(machine, p.epilogue().c, rows * p.n());
  const std::vector<float>& alpha = buffers.epilogue_operands().alpha;
  for (int g = 0; g < p.groups(); ++g) {
    for (int64_t row = p.layout().offsets[size_t(g)]; row < p.layout().offsets[size_t(g) + 1]; ++row) {
      for (int col = 0; col < int(outputs); ++col) {
        const size_t at = size_t(row * outputs + col);
        const float gate = alpha[size_t(g)] * c[size_t(row * p.n() + ep::gate_column(col))];
        const float bound = (std::fabs(unfused[at]) * (5 + std::fabs(gate)) + 0x1p-100f) * 0x1p-8f;
        if (!(std::fabs(fused[at] - unfused[at]) <= bound))
          throw gg::Error(
              gg::Exit::check_failed,
              gg::format("%s: row %lld column %d: fused %g, unfused %g", buffers.shape().describe().c_str(),
                         static_cast<long long>(row), col, double(fused[at]), double(unfused[at])));
      }
    }
  }
}

struct Way {
  const char* name;  // "": chapter 07m
  void (*launch)(const gg::Problem&, cudaStream_t);
};
constexpr Way kWays[] = {{"", launch_fused}, {"unfused", launch_unfused}, {"product", launch_product}};

gg::Row row_of(const Way& way, const gg::Device& device, const gg::Shape& shape) {
  return {{"chapter", kChapter},
          {"kernel", *way.name ? way.name : "grouped_gemm"},
          {"device", device.name},
          {"arch", std::to_string(device.capability)},
          {"cuda", device.cuda},
          {"commit", gg::commit()},
          {"date", gg::today()},
          {"set", shape.set},
          {"groups", std::to_string(shape.groups())},
          {"m_total", std::to_string(shape.m_total())},
          {"m_max", std::to_string(shape.m_max())},
          {"n", std::to_string(shape.n[0])},
          {"k", std::to_string(shape.k[0])},
          {"format", "bf16"},
          {"peer", way.name},
          {"ok", "1"}};
}

void time_ways(gg::Machine& machine, const gg::Device& device, const gg::Shape& shape,
               const std::string& csv) {
  gg::BufferSets sets;
  const auto add = [&] {
    sets.push_back(std::make_unique<gg::Buffers>(machine, setup_with(true), shape));
    sets.back()->fill_operands({gg::Fill::Kind::normal, 0, 1000 + sets.size(), 0});
  };
  add();
  require_equal(machine, *sets[0]);
  if (device.emulated) return;
  const size_t wanted = size_t(gg::cold_sets(sets[0]->bytes(), device.l2_bytes));
  while (sets.size() < wanted) add();
  std::vector<gg::Contestant> contestants;
  for (const Way& way : kWays) {
    const auto launch = [&sets, way](int set, cudaStream_t stream) {
      way.launch(sets[size_t(set)]->problem(), stream);
    };
    contestants.push_back({way.name, launch});
  }
  const gg::Roof roof = gg::read_roof(gg::roof_path(), device.name);
  const auto stopwatch = gg::gpu_stopwatch();
  std::vector<gg::Row> rows;
  for (const bool warm : {false, true}) {
    const std::vector<gg::Timing> timings =
        gg::time_contestants(contestants, warm ? 1 : int(sets.size()), gg::Rounds::brief, *stopwatch);
    for (size_t i = 0; i < timings.size(); ++i) {
      gg::Row row = row_of(kWays[i], device, shape);
      gg::add_timing(row, shape, setup_with(false), timings[i], warm, roof);
      std::printf("%-8s %-8s %s  %9.2f us (%.2f .. %.2f)  %.3f of the product, %.3f of unfused\n",
                  shape.set.c_str(), *kWays[i].name ? kWays[i].name : "fused", warm ? "warm" : "cold",
                  timings[i].median, timings[i].p10, timings[i].p90, timings[i].median / timings[2].median,
                  timings[i].median / timings[1].median);
      rows.push_back(row);
    }
  }
  if (!csv.empty()) gg::append_csv(csv, gg::kResultColumns, rows);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::string sets = "prefill,skewed,decode,moe", csv;
    for (int i = 1; i < argc; i += 2) {
      std::string* const value = !std::strcmp(argv[i], "--set")   ? &sets
                                 : !std::strcmp(argv[i], "--csv") ? &csv
                                                                  : nullptr;
      GG_REQUIRE(value && i + 1 < argc, "%s: --set NAME[,NAME] and --csv FILE are accepted", argv[i]);
      *value = argv[i + 1];
    }
    const gg::Chapter chapter = {.id = "gg-fused", .arch = gg::Arch::sm_90a};
    const gg::Device device = gg::choose_device(gg::Options::Device::automatic, chapter, argv);
    const auto machine = device.emulated ? gg::emulator_machine() : gg::gpu_machine();
    std::printf("gg-fused on %s\n", device.name.c_str());
    for (const std::string& set : gg::split(sets, ',')) {
      for (const gg::Shape& shape : gg::shape_set(set, {64, 8, {64, 64}, false, 0})) {
        if (shape.flops() > 0) time_ways(*machine, device, shape, csv);
      }
    }
    return int(gg::Exit::ok);
  } catch (const gg::Error& error) {
    std::fprintf(stderr, "gg-fused: %s\n", error.what());
    return int(error.code);
  }
}
