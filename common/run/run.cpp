// SPDX-License-Identifier: MIT
//
// gg::run without its templates: what happens between the command line and the exit code.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <thread>

#include "common/bench/peers.h"
#include "common/bench/timer.h"
#include "common/harness.cuh"
#include "common/machine/emulator.h"
#include "common/problem/shapes.h"
#include "common/run/device.h"
#include "common/run/options.h"
#include "common/run/results.h"
#include "common/verify/operand_files.h"
#include "common/verify/verify.h"

#ifndef GG_COMMIT
#define GG_COMMIT "unknown"
#endif

namespace gg {
namespace {

// Bytes that no launch can avoid moving: A, B and D once.
double unavoidable_bytes(const Shape& shape, const Formats& formats) {
  double bytes = 0;
  for (int g = 0; g < shape.groups(); ++g) {
    const double m = shape.m[size_t(g)], n = shape.n_of(g), k = shape.k_of(g);
    if (m > 0) bytes += m * k * format_info(formats.a).bytes + m * n * format_info(formats.d).bytes;
    if (m > 0 && (!shape.shared_b || g == 0)) bytes += k * n * format_info(formats.b).bytes;
  }
  return bytes;
}

class Run {
 public:
  Run(const Chapter& chapter, const Options& options, const Launch& launch)
      : chapter_(chapter), options_(options), launch_(launch) {
    setup_.formats = options.formats;
    setup_.host_offsets = chapter.reads_offsets_on_host;
    setup_.m_multiple = chapter.m_multiple;
    setup_.equal_groups = chapter.equal_groups;
    setup_.b_layout = options.b_layout;
    setup_.tile_k = options.tile_k;
    for (const Idea& idea : chapter.ideas) setup_.ideas_off[idea.name] = false;
    for (const std::string& idea : options.off) setup_.ideas_off[idea] = true;
    setup_.wide_offsets = options.wide_offsets;
    setup_.blocks = options.blocks;
    const bool has_default = !chapter.tiles.empty() && !chapter.chooses_tile;
    setup_.tile = options.tile.m || !has_default ? options.tile : chapter.tiles[0];
  }

  Exit run() {
    // Whatever can be refused is refused before a device is touched.
    const bool chosen = !options_.sets.empty();
    const std::vector<std::string> check_sets = chosen ? options_.sets : default_check_sets(chapter_),
                                   bench_sets = chosen ? options_.sets : default_bench_sets(chapter_);
    std::vector<Shape> to_check, to_time;
    if (!options_.in_dir.empty()) {
      given_ = read_operands(options_.in_dir, setup_, chapter_, options_.shared_b);
      setup_.wide_offsets = given_->wide_offsets;
      to_check = {given_->shape};
    } else {
      if (options_.check) to_check = shapes_for(options_, chapter_, check_sets, left_out_);
      if (options_.bench) {  // what the same sets leave out is said once
        to_time = options_.check && check_sets == bench_sets
                      ? to_check
                      : shapes_for(options_, chapter_, bench_sets, left_out_);
      }
    }
    if (!options_.out_dir.empty()) {
      const std::vector<Shape>& shapes = to_check.empty() ? to_time : to_check;
      GG_REQUIRE(shapes.size() == 1,
                 "--out wants exactly one problem, these are %zu: use --m, --n and --k, or --in",
                 shapes.size());
      require_directory(options_.out_dir);
    }
    if (!options_.csv.empty()) require_csv(options_.csv, kResultColumns);
    if (!options_.counts_csv.empty()) require_csv(options_.counts_csv, kCountColumns);
    device_ = choose_device(options_.device, chapter_, options_.arguments);
    introduce();
    if (device_.emulated) {
      emulator()->set_order(options_.order_seed, options_.order_skew);
      const bool defaults = !chosen && !options_.one_problem();
      if (!to_time.empty() && defaults)
        to_time = shapes_for(options_, chapter_, default_count_sets(chapter_), left_out_);
    }
    machine_ = device_.emulated ? emulator_machine() : gpu_machine();
    if (device_.emulated) say_if_long(to_check, to_time);
    roof_ = read_roof(roof_path(), device_.name);

    if (!options_.out_dir.empty()) {
      write_problem(*machine_, setup_, launch_, (to_check.empty() ? to_time : to_check)[0], given_.get(),
                    options_.seed, options_.out_dir);
    }
    for (const Shape& shape : to_check) check(shape);
    if (device_.emulated) {
      count_sets(to_time);
    } else {
      if (!to_time.empty()) load_peers();
      for (const Shape& shape : to_time) options_.tune ? tune(shape) : void(time(shape));
    }
    return summary();
  }

 private:
  // The first line, and one for each problem of a set that is left out and each option that means nothing on
  // this machine.
  void introduce() const {
    const std::string how = device_.emulated ? "order " + options_.order() : "CUDA " + device_.cuda;
    std::printf("%s on %s (%d.%d), %s: %s -> %s\n", chapter_.id, device_.name.c_str(),
                device_.capability / 10, device_.capability % 10, how.c_str(),
                options_.formats.name().c_str(), format_info(options_.formats.d).name);
    std::fflush(stdout);
    for (const std::string& sentence : left_out_)
      std::fprintf(stderr, "%s: %s\n", chapter_.id, sentence.c_str());
    if (!options_.bench) return;
    const auto leave_out = [&](const std::string& option, bool given, const char* why) {
      if (given) std::fprintf(stderr, "%s: %s left out: %s\n", chapter_.id, option.c_str(), why);
    };
    const bool emulated = device_.emulated;
    leave_out("--peer", emulated && !options_.peers.empty(), "libraries run on a GPU only");
    leave_out("--sustained", emulated && options_.sustained, "the emulator takes no times");
    leave_out("--csv", emulated && !options_.csv.empty(),
              "the emulator counts (--counts-csv), it takes no times");
    leave_out("--counts-csv", !emulated && !options_.counts_csv.empty(), "counters come from the emulator");
  }

  // Before the emulator begins. Problems that do not fit into memory are refused later and not counted here.
  void say_if_long(const std::vector<Shape>& to_check, const std::vector<Shape>& to_time) const {
    constexpr int kTrials = 4;  // launches of a check
    double multiply_adds = 0;
    const auto add = [&](const std::vector<Shape>& shapes, int launches) {
      for (const Shape& shape : shapes) {
        if (unavoidable_bytes(shape, setup_.formats) < double(machine_->free_bytes()))
          multiply_adds += launches * shape.flops() / 2;
      }
    };
    add(to_check, kTrials);
    add(to_time, 1);
    const int cores = std::max(1, int(std::thread::hardware_concurrency()));
    const std::vector<std::string> short_sets = default_count_sets(chapter_);
    const std::string sentence =
        long_emulation(multiply_adds, cores, short_sets.empty() ? "smoke" : short_sets[0]);
    if (!sentence.empty()) std::fprintf(stderr, "%s: %s\n", chapter_.id, sentence.c_str());
  }

  void check(const Shape& shape) {
    const CheckOptions options{options_.seed, !chapter_.reads_offsets_on_host,
                               shape.set == "edges" || shape.set == "edges_uniform"};
    const CheckResult result = given_ ? check_given(*machine_, setup_, launch_, *given_)
                                      : check_problem(*machine_, setup_, launch_, shape, options);
    ++checked_;
    worst_ratio_ = std::max(worst_ratio_, result.worst_ratio);
    worst_factor_ = std::max(worst_factor_, result.worst_factor);
    if (result.failure) {
      ++failed_;
      std::printf("check  %-8s FAILED (%s): %s\n", shape.set.c_str(), symptom_name(result.failure->symptom),
                  result.failure->sentence.c_str());
    } else {
      std::printf("check  %-8s ok  %s; random data: worst error %.0f %% of the limit\n", shape.set.c_str(),
                  shape.describe().c_str(), result.worst_ratio * 100);
    }
    std::fflush(stdout);
  }

  // Enough copies of the problem that a round through them exceeds twice the L2, as far as memory goes.
  BufferSets make_sets(const Shape& shape) {
    BufferSets sets;
    const auto add = [&] {
      const uint64_t seed = bench_seed() + sets.size();
      sets.push_back(std::make_unique<Buffers>(*machine_, setup_, shape));
      sets.back()->fill_operands({Fill::Kind::normal, 0, seed, 0});
    };
    add();
    const size_t bytes = sets[0]->bytes(), wanted = std::min<size_t>(2 * device_.l2_bytes / bytes + 2, 256);
    while (sets.size() < wanted) {
      if (bytes > 2 * device_.l2_bytes && 2 * bytes > machine_->free_bytes()) break;
      add();
    }
    return sets;
  }

  // Microseconds the host takes to write the pointer and size arrays that a launch needs, and to send them.
  double preparation_us(Buffers& buffers, const Shape& shape) const {
    constexpr int kRounds = 9;
    if (!shape.own_sizes) return 0;
    std::vector<double> us;
    for (int r = 0; r < kRounds; ++r) {
      const auto start = std::chrono::steady_clock::now();
      buffers.set_shape(shape);
      us.push_back(
          std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
    }
    std::nth_element(us.begin(), us.begin() + kRounds / 2, us.end());
    return us[kRounds / 2];
  }

  uint64_t bench_seed() const { return options_.seed + 1000; }  // of the first set of buffers

  // Random data on the first set, over poison: what fails here is neither timed nor counted.
  bool correct(Buffers& buffers, const std::function<void(cudaStream_t)>& launch) {
    return right_on_random_data(*machine_, buffers, options_.seed, [&] { machine_->run(launch); });
  }

  // Counts the problems one after the other; a set's row holds the sums over its problems.
  void count_sets(const std::vector<Shape>& shapes) {
    for (size_t i = 0; i < shapes.size();) {
      const std::string& set = shapes[i].set;
      Counters total;
      bool ok = true;
      for (; i < shapes.size() && shapes[i].set == set; ++i) ok = count(shapes[i], total) && ok;
      std::vector<Row> rows;
      for (const auto& [counter, value] : total) {
        rows.push_back({{"chapter", chapter_.id},
                        {"set", set},
                        {"order", options_.order()},
                        {"counter", counter},
                        {"value", std::to_string(value)}});
      }
      if (ok && !options_.counts_csv.empty()) append_csv(options_.counts_csv, kCountColumns, rows);
    }
  }

  // What the emulator counts in one launch on random data, added to `total`; false if the output is wrong.
  bool count(const Shape& shape, Counters& total) {
    Buffers buffers(*machine_, setup_, shape);
    buffers.fill_operands({Fill::Kind::normal, 0, bench_seed(), 0});
    emulator()->reset_counts();
    ++checked_;
    if (!correct(buffers, [&](cudaStream_t stream) { launch_(buffers.problem(), stream); })) {
      ++failed_;
      std::printf("count  %-8s FAILED its check on random data, so it is not counted: %s\n",
                  shape.set.c_str(), shape.describe().c_str());
      return false;
    }
    Counters counters = emulator_counters();
    counters.emplace_back("useful_multiply_adds", uint64_t(shape.flops() / 2));
    if (total.empty()) total.resize(counters.size());
    for (size_t i = 0; i < counters.size(); ++i) {
      total[i] = {counters[i].first, total[i].second + counters[i].second};
    }
    print(counters, shape);
    return true;
  }

  // The counters that are not zero, those of a kind on a line.
  static void print(const Counters& counters, const Shape& shape) {
    constexpr size_t kColumns = 110, kIndent = 19;
    std::printf("count  %-8s %s", shape.set.c_str(), shape.describe().c_str());
    std::string before;
    size_t column = 0;
    for (const auto& [counter, value] : counters) {
      if (value == 0) continue;
      std::string kind = counter.substr(0, counter.find('_')), rest = counter;
      if (kind == "instructions" || kind == "global" || kind == "shared") {
        rest = counter == kind ? "all" : counter.substr(kind.size() + 1);
      } else {
        kind = "other";
      }
      const std::string text = format("  %s %llu", rest.c_str(), static_cast<unsigned long long>(value));
      if (kind != before || column + text.size() > kColumns) {
        std::printf("\n       %-12s", kind == before ? "" : kind.c_str());
        column = kIndent;
      }
      std::printf("%s", text.c_str());
      column += text.size();
      before = kind;
    }
    std::printf("\n");
    std::fflush(stdout);
  }

  // Every legal tile on this problem, best first.
  void tune(const Shape& shape) {
    std::vector<std::pair<double, Tile>> table;
    for (const Tile& tile : chapter_.tiles) {
      setup_.tile = tile;
      if (const double us = time(shape); us > 0) table.push_back({us, tile});
    }
    std::sort(table.begin(), table.end(), [](auto& x, auto& y) { return x.first < y.first; });
    std::printf("tune   %s\n  tile        us   TFLOP/s\n", shape.describe().c_str());
    for (const auto& [us, tile] : table) {
      std::printf("  %-7s %9.1f  %6.1f\n", format("%dx%d", tile.m, tile.n).c_str(), us,
                  shape.flops() / us * 1e-6);
    }
  }

  // Times the chapter and its peers on one problem; our warm median in us, 0 if the check failed. With --off
  // the chapter with all ideas is a contestant too: cards and days differ by more than an idea is worth.
  double time(const Shape& shape) {
    if (shape.flops() == 0) return 0;
    BufferSets sets = make_sets(shape);
    const double prep_us = preparation_us(*sets[0], shape);
    std::vector<Contestant> contestants;
    std::vector<std::string> versions;
    const auto ours = [&](int set, cudaStream_t stream) { launch_(sets[size_t(set)]->problem(), stream); };
    std::map<std::string, bool> none_off;
    for (const auto& [idea, off] : setup_.ideas_off) none_off[idea] = false;
    const auto all_ideas = [&](int set, cudaStream_t stream) {
      launch_(sets[size_t(set)]->problem().with_ideas(none_off), stream);
    };
    std::vector<Row> rows;
    double ours_us = 0;
    const auto enter = [&](const char* name, const auto& launch) {  // whether it may be timed
      if (correct(*sets[0], [&](cudaStream_t stream) { launch(0, stream); })) {
        contestants.push_back({name, launch});
        versions.push_back("");
        return true;
      }
      std::printf("time   %-8s FAILED its check on random data, so it is not timed: %s\n", shape.set.c_str(),
                  shape.describe().c_str());
      rows.push_back(row(shape, name, ""));
      rows.back()["ok"] = "0";
      return false;
    };
    bool right = enter("", ours);
    if (!options_.off.empty()) right = enter(kAllIdeas, all_ideas) && right;
    ++checked_;
    if (!right) ++failed_;
    for (const auto& peer : peers_) add_peer(*peer, shape, sets, contestants, versions);

    for (int warm = 0; warm < 2 && !contestants.empty(); ++warm) {
      if (options_.tune && !warm) continue;
      const std::vector<Timing> timings = time_contestants(
          contestants, warm ? 1 : int(sets.size()), options_.sustained ? Rounds::sustained : Rounds::brief);
      for (size_t i = 0; i < timings.size(); ++i) {
        rows.push_back(row(shape, contestants[i].name, versions[i]));
        add_timing(rows.back(), shape, timings[i], warm);
        if (contestants[i].name.empty() && prep_us > 0) rows.back()["prep_us"] = number_text(prep_us);
        print(rows.back(), shape);
        if (contestants[i].name.empty()) ours_us = timings[i].median;
      }
    }
    if (!options_.csv.empty()) append_csv(options_.csv, kResultColumns, rows);
    return ours_us;
  }

  void load_peers() {
    if (options_.sustained) setenv("GG_PEER_SUSTAINED", "1", 1);  // they choose as they are timed
    for (const std::string& peer : options_.peers) {
      try {
        peers_.push_back(load_peer(peer));
      } catch (const Error& error) {
        std::fprintf(stderr, "--peer %s left out: %s\n", peer.c_str(), error.what());
      }
    }
  }

  void add_peer(Peer& peer, const Shape& shape, const BufferSets& sets, std::vector<Contestant>& contestants,
                std::vector<std::string>& versions) {
    try {
      const std::string version = peer.version();
      contestants.push_back({peer.name(), prepare_and_check(peer, sets, *machine_, bench_seed())});
      versions.push_back(version);
    } catch (const Error& error) {
      cudaGetLastError();  // if there is one, it was the peer's
      std::fprintf(stderr, "--peer %s left out on %s: %s\n", peer.name().c_str(), shape.describe().c_str(),
                   error.what());
    }
  }

  Row row(const Shape& shape, const std::string& peer, const std::string& version) const {
    const auto list = [&](const std::vector<int>& values) {
      return std::to_string(*std::max_element(values.begin(), values.end()));
    };
    return {{"chapter", chapter_.id},
            {"kernel", kernel_name(chapter_, options_, setup_.tile, peer)},
            {"device", device_.name},
            {"arch", std::to_string(device_.capability)},
            {"cuda", device_.cuda},
            {"commit", GG_COMMIT},
            {"date", today()},
            {"set", shape.set},
            {"groups", std::to_string(shape.groups())},
            {"m_total", std::to_string(shape.m_total())},
            {"m_max", std::to_string(shape.m_max())},
            {"n", list(shape.n)},
            {"k", list(shape.k)},
            {"format", setup_.formats.name()},
            {"peer", peer},
            {"ok", "1"},
            {"version", version}};
  }

  void add_timing(Row& row, const Shape& shape, const Timing& timing, int warm) {
    const double bytes = unavoidable_bytes(shape, setup_.formats);
    const auto set = [&](const char* column, double value) {
      if (value > 0) row[column] = number_text(value);
    };
    row["warm"] = std::to_string(warm);
    set("us_median", timing.median);
    set("us_p10", timing.p10);
    set("us_p90", timing.p90);
    set("tflops", shape.flops() / timing.median * 1e-6);
    set("gbytes_per_s", bytes / timing.median * 1e-3);
    set("clock_mhz", timing.clock_mhz);
    set("clock_after_mhz", timing.clock_after_mhz);
    set("power_w", timing.power_w);
    const double matrix = roof_.tflops.count(format_info(setup_.formats.a).name)
                              ? roof_.tflops.at(format_info(setup_.formats.a).name)
                              : 0;
    const double memory = roof_.gbytes_per_s * 1e-3 * shape.flops() / bytes;
    if (matrix > 0 && memory > 0) {
      set("roof_tflops", std::min(matrix, memory));
      row["roof_kind"] = matrix < memory ? "matrix" : "bandwidth";
    }
  }

  void print(const Row& row, const Shape& shape) const {
    const auto value = [&](const char* column) {
      const auto found = row.find(column);
      return found == row.end() || found->second.empty() ? 0.0 : std::stod(found->second);
    };
    std::printf("time   %-8s %s %-14s %9.1f us (%.1f .. %.1f)  %6.1f TFLOP/s  %6.0f GB/s", shape.set.c_str(),
                value("warm") > 0 ? "warm" : "cold",
                row.at("peer").empty() ? row.at("kernel").c_str() : row.at("peer").c_str(),
                value("us_median"), value("us_p10"), value("us_p90"), value("tflops"), value("gbytes_per_s"));
    if (value("roof_tflops") > 0) {
      std::printf("  %3.0f %% of the %s roof", 100 * value("tflops") / value("roof_tflops"),
                  row.at("roof_kind").c_str());
    }
    std::printf("  %s\n", shape.describe().c_str());
    std::fflush(stdout);
  }

  Exit summary() const {
    if (failed_ > 0) {
      std::printf("%s: FAILED, %d of %d problems are wrong\n", chapter_.id, failed_, checked_);
      return Exit::check_failed;
    }
    const std::string where = device_.emulated ? " on the emulator, order " + options_.order() : "";
    std::printf("%s: ok, %d %s checked%s", chapter_.id, checked_, checked_ == 1 ? "problem" : "problems",
                where.c_str());
    if (worst_factor_ > 0)
      std::printf("; worst random error %.0f %% of the limit, 2^%.1f of sum |a*b| beyond rounding",
                  worst_ratio_ * 100, std::log2(worst_factor_));
    std::printf("\n");
    return Exit::ok;
  }

  const Chapter& chapter_;
  const Options& options_;
  const Launch& launch_;
  Setup setup_;
  Device device_;
  Roof roof_;
  std::unique_ptr<Machine> machine_;
  std::vector<std::unique_ptr<Peer>> peers_;  // those that could be loaded
  std::unique_ptr<GivenOperands> given_;
  std::vector<std::string> left_out_;  // problems of mixed sets that the chapter does not take
  int checked_ = 0, failed_ = 0;
  float worst_ratio_ = 0, worst_factor_ = 0;
};

// The problems of --set or --m, --n and --k; the worked example of chapter 04 if there are neither.
void print_schedule(const Options& options, const Chapter& chapter) {
  std::vector<Shape> shapes = {{{192, 256}, {320, 448}, {128, 192}, "worked"}};
  if (options.one_problem() || !options.sets.empty()) {
    std::vector<std::string> left_out;
    shapes = shapes_for(options, chapter, options.sets, left_out);
  }
  for (const Shape& shape : shapes) {
    if (shapes.size() > 1) std::printf("%s\n", shape.describe().c_str());
    chapter.print_schedule(shape, options.tile.m ? options.tile : Tile{64, 64},
                           options.blocks ? options.blocks : 6);
  }
}

// What the options ask for, without the handling of errors.
Exit run_options(const Options& options, const Chapter& chapter, const std::vector<Formats>& formats,
                 const Launch& launch) {
  if (options.help) {
    std::fputs(help_text(chapter, formats).c_str(), stdout);
  } else if (options.describe) {
    std::fputs(describe_text(chapter, formats).c_str(), stdout);
  } else if (options.print_schedule) {
    print_schedule(options, chapter);
  } else {
    return Run(chapter, options, launch).run();
  }
  return Exit::ok;
}

}  // namespace

int run_chapter(int argc, char** argv, const Chapter& chapter, const std::vector<Formats>& formats,
                const Launch& launch) {
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes makes writing fail, as a full disk does
  try {
    const Exit code = run_options(parse_options(argc, argv, chapter, formats), chapter, formats, launch);
    if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
      throw Error(Exit::cannot_write, "the results could not be written to stdout");
    }
    return int(code);
  } catch (const Error& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s: %s\n", chapter.id, error.what());
    return int(error.code);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "%s: this problem needs more host memory than the %zu bytes that are free\n",
                 chapter.id, host_machine()->free_bytes());
    return int(Exit::no_memory);
  }
}

}  // namespace gg
