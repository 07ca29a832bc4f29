// SPDX-License-Identifier: MIT
//
// All a chapter's main.cu needs: it says what it supports, hands over one lambda that launches, and gg::run
// does the rest: options, memory, data, checks, timing, peers, tables and files. Contract: `--help` of any
// chapter.

#pragma once

#include <vector>

#include "common/problem/chapter.h"

namespace gg {

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
