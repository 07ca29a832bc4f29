// SPDX-License-Identifier: MIT
//
// A chapter's description of itself: what chapters/CMakeLists.txt says of it, and in main.cu its
// needs, what it supports, what a reader can choose.

#pragma once

#include <cstdint>

#include "common/harness/problem/epilogue.h"
#include "common/harness/problem/problem.h"
#include "common/kernel/list.h"

namespace gg {

enum class Arch { sm_80, sm_90a, sm_100a };

struct Idea {  // one that --off switches off, so that a reader measures what it is worth
  const char* name;
  const char* help;
};

// An option of one chapter alone: --NAME takes one of a few numbers, Problem::number gives it to
// the launch, and the harness parses, lists, checks and times it like any other choice.
struct OwnNumber {
  const char* name;  // "tile-k"
  List<int> values;  // the legal ones; a plain check asks for all but the first
  const char* help;
  bool divides_k = false;  // K must be a multiple of it
};

struct Chapter {
  // The registry, chapters/CMakeLists.txt, says these; gg::run
  // (common/harness/harness.cuh) sets them.
  const char* id = "";
  Arch arch = Arch::sm_80;    // asked of the device before anything runs
  const char* title = "";     // the idea in a few words
  const char* part = "";      // of the course
  const char* previous = "";  // the chapter that this one changes an idea of; "": the first
  // main.cu says these.
  int k_multiple = 1;  // what K and N must be multiples of,
  int n_multiple = 1;
  int m_multiple = 1;                // and the rows of each group,
  bool pads_groups = false;          // groups of a set are rounded up to it; a reader's are refused
  const char* multiple_reason = "";  // and why: ends the sentence that refuses the rest
  Product product = Product::forward;
  int most_n = INT32_MAX;           // columns of D that its grid covers
  int most_m = INT32_MAX;           // rows of a group that its grid covers
  int64_t most_b_rows = INT64_MAX;  // rows of B [G,K,N] that its tensor map counts
  bool equal_groups = false;        // every group has the same number of rows
  List<const char*> sets{};         // common/harness/problem/shapes.h; no sizes here
  List<const char*> options{};      // of its own, by name, as --help lists them
  // Legal values of --tile, and --cluster; the first is the default.
  List<ClusterTileShape> tiles{};
  // Other types, offsets and layouts of B than the first have the first size alone.
  bool one_tile_for_others = false;
  // Without --tile the chapter chooses, and Problem::tile() is 0x0.
  bool chooses_tile = false;
  List<OwnNumber, 4> numbers{};
  List<Idea> ideas{};  // what --off takes
  // Legal values of --b-layout; the first is the default, none: kn.
  List<BLayout> b_layouts{};
  EpilogueChoices epilogue{};  // what it computes behind the product
  WorkspaceBytes workspace_bytes = nullptr;
  bool discrete_weights = false;  // --weights discrete
  bool dynamic_schedule = false;  // --schedule dynamic
  // Pointer and size arrays: groups have their own M, N and K.
  OwnSizes own_sizes = OwnSizes::never;
  // From 05a on no chapter does, and launches are replayed from a graph.
  bool reads_offsets_on_host = false;
  // sizes: [G,3], each group's M, N and K.
  void (*print_schedule)(const int* sizes, int groups, TileShape tile, int blocks) = nullptr;
};

}  // namespace gg
