// SPDX-License-Identifier: MIT
//
// All a chapter's main.cu needs: it says what it supports, hands over one lambda that launches, and
// gg::run does the rest: options, memory, data, checks, timing, peers, tables and files. Contract:
// `--help` of any chapter.

#pragma once

#include <type_traits>

#include "common/harness/problem/chapter.h"
#include "common/kernel/layer.h"

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

template <>
constexpr Format format_of<e4m3>() {
  return Format::e4m3;
}
template <>
constexpr Format format_of<e5m2>() {
  return Format::e5m2;
}
template <>
constexpr Format format_of<e2m1>() {
  return Format::e2m1;
}
template <>
constexpr Format format_of<ue8m0>() {
  return Format::ue8m0;
}
template <>
constexpr Format format_of<ue4m3>() {
  return Format::ue4m3;
}

template <>
constexpr Format format_of<void>() {  // where a launch knows its type only when run
  return Format::bf16;
}

template <class A, class B, class D>
constexpr Formats formats_of(Operands<A, B, D>) {
  return {format_of<A>(), format_of<B>(), format_of<D>()};
}

// A and B of `Element` with a `Scale` for each BLOCK of them along K (Problem::scaled), D of
// `D`. Such a chapter takes B as [G,N,K] (b_layouts = {BLayout::nk}) and reads
// offsets().ends(). Chapters with an epilogue may leave D out, also of Operands: its type is a
// value there, Problem::formats().d.
template <class Element, int BLOCK, class Scale, class D = void>
struct BlockScaled {};

template <class Element, int BLOCK, class Scale, class D>
constexpr Formats formats_of(BlockScaled<Element, BLOCK, Scale, D>) {
  constexpr BlockFormat kFormat = block_format(format_of<Element>(), BLOCK, format_of<Scale>());
  static_assert(kFormat != BlockFormat::none, "no such block-scaled format: common/kernel/block_scales.h");
  return {format_of<Element>(), format_of<Element>(), format_of<D>(), kFormat};
}

// Does a launch on these formats get this tag? Types that the tag leaves open do not decide.
template <class Tag>
constexpr bool is_for(Tag tag, const Formats& formats) {
  Formats wanted = formats_of(tag);
  wanted.c = formats.c;
  return wanted == formats;
}
template <class Element, int BLOCK, class Scale>
constexpr bool is_for(BlockScaled<Element, BLOCK, Scale, void> tag, const Formats& formats) {
  return formats_of(tag).scaled == formats.scaled;
}

template <class A, class B>
constexpr bool is_for(Operands<A, B, void> tag, const Formats& formats) {
  const Formats wanted = formats_of(tag);
  return wanted.a == formats.a && wanted.b == formats.b && !formats.has_scales();
}

int run_chapter(int argc, char** argv, const Chapter& chapter, const List<Formats>& formats,
                void (*launch)(const Problem& problem, cudaStream_t stream));

// run<Same<bf16>, Same<f16>>(argc, argv, info, lambda): the lambda, which captures nothing,
// is called with the tag of the formats in use; the first tag is the default. Returns the
// exit code (check.h).
template <class... Tags, class Lambda>
int run(int argc, char** argv, Chapter chapter, Lambda) {
  static_assert(std::is_empty_v<Lambda>, "the launch captures nothing: it is called anew for each problem");
#ifdef GG_CHAPTER_ID  // a chapter of the registry; a test's chapter is not
  chapter.id = GG_CHAPTER_ID;
  chapter.arch = Arch::GG_CHAPTER_ARCH;
  chapter.title = GG_CHAPTER_TITLE;
  chapter.part = GG_CHAPTER_PART;
  chapter.previous = GG_CHAPTER_AFTER;
#endif
  return run_chapter(
      argc, argv, chapter, {formats_of(Tags{})...}, [](const Problem& problem, cudaStream_t stream) {
        ((is_for(Tags{}, problem.formats()) ? Lambda{}(Tags{}, problem, stream) : void()), ...);
      });
}

int run_layer_chapter(int argc, char** argv, const Chapter& chapter, const LayerProgram& program);

#ifdef GG_CHAPTER_ID
// The same for a chapter that is a layer's training step.
inline int run_layer(int argc, char** argv, const LayerProgram& program) {
  const Chapter chapter = {.id = GG_CHAPTER_ID, .arch = Arch::GG_CHAPTER_ARCH, .title = GG_CHAPTER_TITLE};
  return run_layer_chapter(argc, argv, chapter, program);
}
#endif

}  // namespace gg
