// SPDX-License-Identifier: MIT
//
// A chapter as a library that --peer loads, so that another chapter's rounds time it: at one clock,
// where two programs would each have their own. CMake names its main.cu, of which all is compiled
// but for the last step: what gg::run would hand to the command line is kept here.

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

// The rest of this library is hidden, for all chapters have one namespace.
#pragma GCC visibility push(default)
#include "common/harness/bench/peer_library.h"
#pragma GCC visibility pop
#include "plots/measure/peers/support.h"

#define run_chapter keep_chapter
#define main describe_chapter
#include GG_CHAPTER_SOURCE
#undef main

#include "common/harness/base/text.h"
#include "common/harness/problem/limits.h"

namespace {

struct Kept {
  gg::Chapter chapter;
  std::vector<gg::Formats> formats;
  void (*launch)(const gg::Problem& problem, cudaStream_t stream) = nullptr;
};
Kept kept;

const Kept& chapter_of_this_library() {
  if (!kept.launch) describe_chapter(0, nullptr);
  return kept;
}

// One problem, with what its gg::Problem points to.
struct State {
  gg::Request request;
  std::vector<int32_t> host_offsets;
  gg::Problem problem;
};

template <class List, class Value>
bool listed(const List& list, const Value& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// Throws gg::Error where the chapter does not take this problem.
gg::Request request_for(const GgPeerProblem& p, const gg::Shape& shape, const Kept& here) {
  const gg::Chapter& chapter = here.chapter;
  gg::Request request;
  const gg::Format format = p.format == std::string("f16") ? gg::Format::f16 : gg::Format::bf16;
  request.formats = {format, format, format};
  GG_REQUIRE(listed(here.formats, request.formats), "%s has no kernel for %s -> %s", chapter.id, p.format,
             p.format);
  GG_REQUIRE(chapter.own_sizes != gg::OwnSizes::always, "%s takes groups of their own sizes alone",
             chapter.id);
  request.b_layout = p.b_is_kn ? gg::BLayout::kn : gg::BLayout::nk;
  const bool takes_layout =
      chapter.b_layouts.empty() ? p.b_is_kn : listed(chapter.b_layouts, request.b_layout);
  GG_REQUIRE(takes_layout, "%s takes no B of layout %s", chapter.id, gg::layout_name(request.b_layout));
  if (!chapter.chooses_tile && !chapter.tiles.empty()) request.tile = chapter.tiles[0];
  for (const gg::Idea& idea : chapter.ideas) request.ideas_off.by_name[idea.name] = false;
  gg::refuse_unsupported(shape, chapter, gg::steps_of(chapter, request));
  return request;
}

State* prepared(const GgPeerProblem& p) {
  const Kept& here = chapter_of_this_library();
  auto state = std::make_unique<State>();
  state->host_offsets.assign(p.host_offsets, p.host_offsets + p.groups + 1);
  std::vector<int> rows;
  for (int g = 0; g < p.groups; ++g)
    rows.push_back(state->host_offsets[size_t(g) + 1] - state->host_offsets[size_t(g)]);
  const gg::Shape shape{rows, {p.n}, {p.k}, "own"};
  state->request = request_for(p, shape, here);
  const bool equal = shape.m_total() == int64_t(shape.m_max()) * p.groups;
  gg::ProblemParts parts;
  parts.a = p.a;
  parts.b = p.b;
  parts.d = p.d;
  parts.offsets = {p.offsets, false};
  if (here.chapter.reads_offsets_on_host) parts.host_offsets = state->host_offsets.data();
  parts.groups = p.groups;
  parts.n = p.n;
  parts.k = p.k;
  parts.rows_each = equal ? shape.m_max() : 0;
  parts.b_group_stride = int64_t(p.n) * p.k;
  parts.rows = parts.m_total = shape.m_total();
  parts.formats = state->request.formats;
  parts.b_layout = state->request.b_layout;
  parts.tile = state->request.tile;
  parts.request = &state->request;
  parts.ideas_off = &state->request.ideas_off;
  state->problem = gg::Problem(parts);
  return state.release();
}

}  // namespace

// This stands in place of gg::run_chapter.
int gg::keep_chapter(int, char**, const Chapter& chapter, const List<Formats>& formats,
                     void (*launch)(const Problem& problem, cudaStream_t stream)) {
  kept = {chapter, {formats.begin(), formats.end()}, launch};
  return 0;
}

const char* gg_peer_version() { return "this course"; }

const char* gg_peer_prepare(const GgPeerProblem* problem, void** state) {
  return peers::sentence_of([&] { *state = prepared(*problem); });
}
const char* gg_peer_launch(void* state, cudaStream_t stream) {
  return peers::sentence_of([&] { kept.launch(static_cast<State*>(state)->problem, stream); });
}
void gg_peer_release(void* state) { delete static_cast<State*>(state); }
