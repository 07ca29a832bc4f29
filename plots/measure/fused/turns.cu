// SPDX-License-Identifier: MIT
//
// gg-fused: a chapter's fused epilogue beside the unfused way, which is chapter 07l's product and
// then kernels that read it, beside that product alone, and beside libraries. All in turns, on
// the same operands:
//
//   build/bin/gg-fused [--chapter 07m|07n|07o|07p|07q|07r|10b] [--set NAME,NAME] [--peer
//   LIBRARY,LIBRARY] [--csv FILE]
//
// The fused outputs are compared with the unfused ones first, within what rounding the product may
// change. A library's keep the bound of the chapter's own check. Where the emulator runs, that is
// all. Rows of the CSV file are the chapter's, the others' names stand as peers.

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "common/harness/base/csv.h"
#include "common/harness/base/text.h"
#include "common/harness/bench/peers.h"
#include "common/harness/bench/roof.h"
#include "common/harness/bench/timer.h"
#include "common/harness/problem/shapes.h"
#include "common/harness/run/report.h"
#include "common/kernel/check.h"
#include "ways.h"

std::vector<Comparison>& comparisons() {
  static std::vector<Comparison> all;
  return all;
}

namespace {

struct Options {
  std::string chapter = "07m", sets, peers, csv;
};

class Turns {
 public:
  Turns(const Comparison& comparison, gg::Machine& machine, const gg::Device& device, const Options& options)
      : comparison_(comparison), machine_(machine), device_(device), options_(options) {
    if (options.peers.empty()) return;
    for (const std::string& path : gg::split(options.peers, ',')) {
      try {
        peers_.push_back(gg::load_peer(path, false));
      } catch (const gg::Error& error) {
        std::fprintf(stderr, "--peer %s left out: %s\n", path.c_str(), error.what());
      }
    }
  }

  void time(const gg::Shape& shape) {
    entrants_.clear();  // a library's state may refer to the buffers
    sets_.clear();
    products_.clear();
    add_set(shape);
    const size_t wanted = device_.emulated ? 1 : size_t(gg::cold_sets(sets_[0]->bytes(), device_.l2_bytes));
    while (sets_.size() < wanted) add_set(shape);
    entrants_.push_back({"", "", launch_of(comparison_.fused)});
    entrants_.push_back({"unfused", "", launch_of(comparison_.unfused)});
    entrants_.push_back({"product", "", launch_of(launch_07l)});
    for (const auto& [name, launch] : comparison_.others) entrants_.push_back({name, "", launch_of(launch)});
    const Outputs unfused = outputs(1);
    const auto compare = [&](size_t i) {
      comparison_.require_equal(machine_, *sets_[0], products_[0].get(), unfused, outputs(i));
    };
    compare(0);
    for (size_t i = 3; i < entrants_.size(); ++i) compare(i);
    const size_t first_peer = entrants_.size();
    for (const auto& peer : peers_) enter(*peer);
    if (!device_.emulated) return take_turns(shape);
    std::printf("%s: as unfused: fused", shape.describe().c_str());
    for (size_t i = 3; i < first_peer; ++i) std::printf(", %s", entrants_[i].name.c_str());
    for (size_t i = first_peer; i < entrants_.size(); ++i)
      std::printf(", right: %s", entrants_[i].name.c_str());
    std::printf("\n");
  }

 private:
  using Launches = std::function<void(int set, cudaStream_t)>;
  struct Entrant {
    std::string name, version;
    Launches launch;
  };
  static constexpr uint64_t kSeed = 1001;  // of the first set's operands

  void add_set(const gg::Shape& shape) {
    sets_.push_back(std::make_unique<gg::Buffers>(machine_, comparison_.setup, shape));
    sets_.back()->fill_operands({gg::Fill::Kind::normal, 0, kSeed + sets_.size() - 1, 0});
    const gg::Problem& p = sets_.back()->problem();
    const size_t count = size_t(p.m_total()) * size_t(p.n());
    void* const memory = machine_.allocate(count * sizeof(bf16), "the product of the unfused way");
    products_.emplace_back(static_cast<bf16*>(memory),
                           [&machine = machine_](bf16* product) { machine.release(product); });
  }
  Launches launch_of(Launch launch) {
    return [this, launch](int set, cudaStream_t stream) {
      launch(sets_[size_t(set)]->problem(), products_[size_t(set)].get(), stream);
    };
  }

  Outputs outputs(size_t entrant) {
    const gg::Buffers& buffers = *sets_[0];
    buffers.poison(0xFF);
    machine_.run([&](cudaStream_t stream) { entrants_[entrant].launch(0, stream); });
    Outputs outputs;
    for (const gg::Tensor tensor : buffers.outputs()) {
      const gg::TensorMemory& memory = buffers.of(tensor);
      std::vector<char>& bytes = outputs[tensor];
      bytes.resize(memory.bytes - memory.spec.start_byte());
      machine_.download(bytes.data(), memory.first(), bytes.size());
    }
    return outputs;
  }

  void enter(gg::Peer& peer) {
    try {
      const gg::PeerLaunches launches = gg::prepare_and_check(peer, sets_, machine_, kSeed);
      entrants_.push_back({peer.name(), peer.version(), launches.launch});
    } catch (const gg::Error& error) {
      cudaGetLastError();  // if there is one, it was the peer's
      std::fprintf(stderr, "--peer %s left out: %s\n", peer.name().c_str(), error.what());
    }
  }

  void take_turns(const gg::Shape& shape) {
    std::vector<gg::Contestant> contestants;
    for (const Entrant& entrant : entrants_) contestants.push_back({entrant.name, entrant.launch});
    const gg::Roof roof = gg::read_roof(gg::roof_path(), device_.name);
    const auto stopwatch = gg::gpu_stopwatch();
    std::vector<gg::Row> rows;
    for (const bool warm : {false, true}) {
      const std::vector<gg::Timing> timings =
          gg::time_contestants(contestants, warm ? 1 : int(sets_.size()), gg::Rounds::brief, *stopwatch);
      for (size_t i = 0; i < timings.size(); ++i) {
        gg::Row row = row_of(entrants_[i], shape);
        gg::add_timing(row, shape, comparison_.setup, timings[i], warm, roof);
        std::printf("%-8s %-12s %s  %9.2f us (%.2f .. %.2f)  %.3f of the product, %.3f of unfused\n",
                    shape.set.c_str(), entrants_[i].name.empty() ? "fused" : entrants_[i].name.c_str(),
                    warm ? "warm" : "cold", timings[i].median, timings[i].p10, timings[i].p90,
                    timings[i].median / timings[2].median, timings[i].median / timings[1].median);
        rows.push_back(row);
      }
    }
    if (!options_.csv.empty()) gg::append_csv(options_.csv, gg::kResultColumns, rows);
  }

  gg::Row row_of(const Entrant& entrant, const gg::Shape& shape) const {
    return {{"chapter", comparison_.chapter},
            {"kernel", entrant.name.empty() ? "grouped_gemm" : entrant.name},
            {"device", device_.name},
            {"arch", std::to_string(device_.capability)},
            {"cuda", device_.cuda},
            {"commit", gg::commit()},
            {"date", gg::today()},
            {"set", shape.set},
            {"groups", std::to_string(shape.groups())},
            {"m_total", std::to_string(shape.m_total())},
            {"m_max", std::to_string(shape.m_max())},
            {"n", std::to_string(shape.n[0])},
            {"k", std::to_string(shape.k[0])},
            {"format", "bf16"},
            {"peer", entrant.name},
            {"ok", "1"},
            {"version", entrant.version}};
  }

  const Comparison& comparison_;
  gg::Machine& machine_;
  const gg::Device& device_;
  const Options& options_;
  std::vector<std::unique_ptr<gg::Peer>> peers_;
  gg::BufferSets sets_;
  std::vector<std::shared_ptr<bf16>> products_;  // one for each set
  std::vector<Entrant> entrants_;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    std::string* const value = !std::strcmp(argv[i], "--chapter") ? &options.chapter
                               : !std::strcmp(argv[i], "--set")   ? &options.sets
                               : !std::strcmp(argv[i], "--peer")  ? &options.peers
                               : !std::strcmp(argv[i], "--csv")   ? &options.csv
                                                                  : nullptr;
    GG_REQUIRE(value && i + 1 < argc,
               "%s: --chapter ID, --set NAME[,NAME], --peer LIBRARY[,LIBRARY] and --csv FILE are accepted",
               argv[i]);
    *value = argv[i + 1];
  }
  return options;
}

const Comparison& comparison_of(const std::string& chapter) {
  std::string known;
  for (const Comparison& each : comparisons()) {
    if (chapter == each.option || chapter == each.chapter) return each;
    known += (known.empty() ? "" : ", ") + std::string(each.option);
  }
  throw gg::Error(gg::Exit::bad_input,
                  gg::format("--chapter %s: %s can be timed", chapter.c_str(), known.c_str()));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options = parse(argc, argv);
    const Comparison& comparison = comparison_of(options.chapter);
    const gg::Chapter chapter = {.id = "gg-fused", .arch = gg::Arch::sm_90a};
    const gg::Device device = gg::choose_device(gg::Options::Device::automatic, chapter, argv);
    const auto machine = device.emulated ? gg::emulator_machine() : gg::gpu_machine();
    std::printf("gg-fused, %s, on %s\n", comparison.chapter, device.name.c_str());
    Turns turns(comparison, *machine, device, options);
    const gg::ShapeLimits limits = {
        .n_multiple = 64, .k_multiple = 8, .pad_rows_to = comparison.setup.m_multiple};
    for (const std::string& set : gg::split(options.sets.empty() ? comparison.sets : options.sets, ',')) {
      for (const gg::Shape& shape : gg::shape_set(set, limits)) {
        if (shape.flops() > 0) turns.time(shape);
      }
    }
    return int(gg::Exit::ok);
  } catch (const gg::Error& error) {
    std::fprintf(stderr, "gg-fused: %s\n", error.what());
    return int(error.code);
  }
}
