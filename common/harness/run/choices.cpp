// SPDX-License-Identifier: MIT
//
// The choices of a chapter as words.

#include "common/harness/run/choices.h"

#include <algorithm>

namespace gg {

std::vector<std::string> own_options(const Chapter& chapter) {
  std::vector<std::string> names(chapter.options.begin(), chapter.options.end());
  if (!cluster_names(chapter).empty()) names.push_back("cluster");
  for (const OwnNumber& own : chapter.numbers) names.push_back(own.name);
  if (!chapter.ideas.empty()) names.push_back("off");
  if (chapter.b_layouts.size() > 1) names.push_back("b-layout");
  const EpilogueChoices& e = chapter.epilogue;
  const std::pair<const char*, bool> of_epilogue[] = {
      {"c-dtype", e.c_types.size() > 1},       {"bias", !e.bias_types.empty()},
      {"bias-dtype", e.bias_types.size() > 1}, {"norm-const", e.sfd_row},
      {"discrete-col-sfd", e.sfd_col},         {"weights", chapter.discrete_weights},
      {"act", e.activations.size() > 1},       {"transform", e.butterfly},
      {"schedule", chapter.dynamic_schedule}};
  for (const auto& [name, offered] : of_epilogue) {
    if (offered) names.push_back(name);
  }
  return names;
}

std::string tile_name(const ClusterTileShape& tile) { return format("%dx%d", tile.m, tile.n); }
std::string cluster_name(const ClusterTileShape& tile) { return format("%dx1", tile.cluster); }

static std::vector<std::string> each_once(const Chapter& chapter,
                                          std::string (*name)(const ClusterTileShape& tile)) {
  std::vector<std::string> names;
  for (const ClusterTileShape& tile : chapter.tiles) {
    if (std::find(names.begin(), names.end(), name(tile)) == names.end()) names.push_back(name(tile));
  }
  return names;
}

std::vector<std::string> tile_names(const Chapter& chapter) { return each_once(chapter, tile_name); }

std::vector<std::string> cluster_names(const Chapter& chapter) {
  std::vector<std::string> names = each_once(chapter, cluster_name);
  return names == std::vector<std::string>{"1x1"} ? std::vector<std::string>() : names;
}

std::vector<std::string> tile_and_cluster_names(const Chapter& chapter) {
  std::vector<std::string> names;
  for (const ClusterTileShape& tile : chapter.tiles)
    names.push_back(tile_name(tile) + " with " + cluster_name(tile));
  return names;
}

std::vector<std::string> number_names(const OwnNumber& own) {
  std::vector<std::string> names;
  for (const int value : own.values) names.push_back(std::to_string(value));
  return names;
}

std::vector<std::string> idea_names(const Chapter& chapter) {
  std::vector<std::string> names;
  for (const Idea& idea : chapter.ideas) names.push_back(idea.name);
  return names;
}

std::vector<std::string> b_layout_names(const Chapter& chapter) {
  std::vector<std::string> names;
  for (BLayout layout : chapter.b_layouts) names.push_back(layout_name(layout));
  return names;
}

std::vector<std::string> activation_names(const Chapter& chapter) {
  std::vector<std::string> names;
  for (const Activation each : chapter.epilogue.activations) names.push_back(activation_name(each));
  return names;
}

std::vector<std::string> type_names(const List<Format>& types) {
  std::vector<std::string> names;
  for (const Format type : types) names.push_back(format_info(type).name);
  return names;
}

// Spec of the operators: f32 only behind FP4 in blocks of 32, FP8 only behind FP8, and neither
// behind a GLU.
static bool gives(const EpilogueChoices& epilogue, const Formats& in, Format d) {
  if (d == Format::f16 || d == Format::bf16) return true;
  if (epilogue.op != Operator::quant || !in.has_scales()) return epilogue.op == Operator::quant;
  const bool fp8 = format_info(in.a).bits == 8;
  if (d == Format::f32) return !fp8 && in.scaling().block == 32;
  return fp8 && (d == Format::e4m3 || d == Format::e5m2);
}

std::vector<Formats> with_outputs(const Chapter& chapter, const std::vector<Formats>& formats) {
  if (chapter.epilogue.op == Operator::gemm) return formats;
  std::vector<Formats> all;
  for (Formats each : formats) {
    for (const Format d : chapter.epilogue.d_types) {
      each.d = d;
      if (gives(chapter.epilogue, each, d)) all.push_back(each);
    }
  }
  return all;
}

std::vector<std::string> format_names(const std::vector<Formats>& formats) {
  std::vector<std::string> names;
  for (const Formats& each : formats)
    names.push_back(format("%s -> %s", each.name(), format_info(each.d).name));
  return names;
}

}  // namespace gg
