// SPDX-License-Identifier: MIT
//
// All a chapter's main.cu needs: it says what it supports, hands over one lambda that launches, and gg::run
// does the rest: options, memory, data, checks, timing, peers, tables and files. Contract: `--help` of any
// chapter.

#pragma once

#include <string>
#include <vector>

#include "common/problem/problem.h"

namespace gg {

enum class Arch { sm_80, sm_90a, sm_100a };

struct Idea {  // one that --off switches off, so that a reader measures what it is worth
  const char* name;
  const char* help;
};

struct Chapter {
  const char* id = "";
  Arch arch = Arch::sm_80;  // asked of the device before anything runs
  const char* title = "";   // the idea in five words
  int k_multiple = 1;       // what K and N must be multiples of,
  int n_multiple = 1;
  int m_multiple = 1;                    // and the rows of each group,
  const char* multiple_reason = "";      // and why: ends the sentence that refuses the rest
  bool equal_groups = false;             // every group has the same number of rows
  std::vector<const char*> sets{};       // common/problem/shapes.h; no sizes here
  const char* previous = "";             // for the table and the step plot
  std::vector<const char*> options{};    // of its own, by name, as --help lists them
  std::vector<Tile> tiles{};             // legal values of --tile; the first is the default
  bool chooses_tile = false;             // without --tile the chapter chooses, and Problem::tile() is 0x0
  std::vector<int> tile_ks{};            // legal values of --tile-k
  std::vector<Idea> ideas{};             // what --off takes
  std::vector<BLayout> b_layouts{};      // legal values of --b-layout; the first is the default, none: kn
  OwnSizes own_sizes = OwnSizes::never;  // pointer and size arrays: groups have their own M, N and K
  bool reads_offsets_on_host = false;  // from 05a on no chapter does, and launches are replayed from a graph
  void (*print_schedule)(const Shape& shape, Tile tile, int blocks) = nullptr;
};

// Element types of one instance of a chapter, as a tag the launch lambda is called with.
template <class A, class B, class D>
struct Operands {};
template <class T>
using Same = Operands<T, T, T>;

template <class T>
constexpr Format format_of();
template <>
constexpr Format format_of<float>() {
  return Format::f32;
}
template <>
constexpr Format format_of<f16>() {
  return Format::f16;
}
template <>
constexpr Format format_of<bf16>() {
  return Format::bf16;
}

template <class A, class B, class D>
constexpr Formats formats_of(Operands<A, B, D>) {
  return {format_of<A>(), format_of<B>(), format_of<D>()};
}

int run_chapter(int argc, char** argv, const Chapter& chapter, const std::vector<Formats>& formats,
                const Launch& launch);

// run<Same<bf16>, Same<f16>>(argc, argv, info, lambda): the lambda is called with the tag of the formats in
// use; the first tag is the default. Returns the exit code (check.h).
template <class... Tags, class Lambda>
int run(int argc, char** argv, const Chapter& chapter, Lambda lambda) {
  const Launch launch = [lambda](const Problem& problem, cudaStream_t stream) {
    ((problem.formats() == formats_of(Tags{}) ? lambda(Tags{}, problem, stream) : void()), ...);
  };
  return run_chapter(argc, argv, chapter, {formats_of(Tags{})...}, launch);
}

}  // namespace gg
