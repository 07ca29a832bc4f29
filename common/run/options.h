// SPDX-License-Identifier: MIT
//
// The command line of a chapter: what --help prints.

#pragma once

#include <string>
#include <vector>

#include "common/harness.cuh"

namespace gg {

struct Options {
  enum class Device { automatic, gpu, emulator };
  Device device = Device::automatic;
  bool check = true, bench = true;  // --check and --bench leave only their half
  std::vector<std::string> sets;    // empty: the defaults of each half
  std::vector<int> m, n, k;         // --m, --n, --k: one problem
  int groups = 0;                   // --groups G --m M
  uint64_t seed = 0;
  uint64_t order_seed = 0;  // the emulator's order: of warps and of asynchronous effects
  bool order_skew = false;
  std::vector<std::string> peers;
  std::string csv, counts_csv, in_dir, out_dir;
  bool describe = false, help = false, print_schedule = false, tune = false;
  bool sustained = false;  // how rounds are timed: common/bench/timer.h
  Formats formats;
  bool other_d = false;  // D is not of the type that A and B give by default
  bool wide_offsets = false, shared_b = false;
  int blocks = 0;
  Tile tile;
  int tile_k = 0;
  std::vector<std::string> off;  // ideas, in the order in which the chapter lists them
  BLayout b_layout = BLayout::kn;
  char** arguments = nullptr;  // argv, to start again on the emulator

  bool one_problem() const { return !m.empty(); }
  std::string order() const;  // "0:fair"
};

// Throws gg::Error (bad input): an unknown option, a value that is no value, a combination that means
// nothing.
Options parse_options(int argc, char** argv, const Chapter& chapter, const std::vector<Formats>& formats);
std::string help_text(const Chapter& chapter, const std::vector<Formats>& formats);
std::string describe_text(const Chapter& chapter, const std::vector<Formats>& formats);

// What stands for a peer's name where --off has the chapter with all ideas timed beside the one without some.
constexpr const char* kAllIdeas = "all_ideas";

// The kernel column of results: a chapter's grouped_gemm with its tile, or a library's call, and what the
// reader asked for beyond the defaults, by which figures and tables tell rows apart.
std::string kernel_name(const Chapter& chapter, const Options& options, Tile tile, const std::string& peer);

constexpr int kMostGroups = 4096;

// Of these sets, those that the chapter lists.
std::vector<std::string> sets_of(const Chapter& chapter, const std::vector<const char*>& sets);
std::vector<std::string> default_check_sets(const Chapter& chapter);
std::vector<std::string> default_bench_sets(const Chapter& chapter);
std::vector<std::string> default_count_sets(const Chapter& chapter);

// The shapes a run works on. Refuses what the chapter does not support with the offending number; of a mixed
// set such problems are left out, each with a sentence.
std::vector<Shape> shapes_for(const Options& options, const Chapter& chapter,
                              const std::vector<std::string>& sets, std::vector<std::string>& left_out);
void refuse_unsupported(const Shape& shape, const Chapter& chapter, int tile_k = 0);

}  // namespace gg
