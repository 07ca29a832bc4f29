// SPDX-License-Identifier: MIT
//
// The choices of a chapter as words.

#include "common/run/choices.h"

#include <algorithm>

namespace gg {

std::vector<std::string> own_options(const Chapter& chapter) {
  std::vector<std::string> names(chapter.options.begin(), chapter.options.end());
  if (!cluster_names(chapter).empty()) names.push_back("cluster");
  if (!chapter.tile_ks.empty()) names.push_back("tile-k");
  if (!chapter.ideas.empty()) names.push_back("off");
  if (chapter.b_layouts.size() > 1) names.push_back("b-layout");
  return names;
}

std::string tile_name(const ClusterTile& tile) { return format("%dx%d", tile.m, tile.n); }
std::string cluster_name(const ClusterTile& tile) { return format("%dx1", tile.cluster); }

static std::vector<std::string> each_once(const Chapter& chapter,
                                          std::string (*name)(const ClusterTile& tile)) {
  std::vector<std::string> names;
  for (const ClusterTile& tile : chapter.tiles) {
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
  for (const ClusterTile& tile : chapter.tiles)
    names.push_back(tile_name(tile) + " with " + cluster_name(tile));
  return names;
}

std::vector<std::string> tile_k_names(const Chapter& chapter) {
  std::vector<std::string> names;
  for (int tile_k : chapter.tile_ks) names.push_back(std::to_string(tile_k));
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

std::vector<std::string> format_names(const std::vector<Formats>& formats) {
  std::vector<std::string> names;
  for (const Formats& each : formats) names.push_back(each.name() + " -> " + format_info(each.d).name);
  return names;
}

}  // namespace gg
