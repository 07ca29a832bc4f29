// SPDX-License-Identifier: MIT
//
// The choices of a chapter as words.

#include "common/run/choices.h"

namespace gg {

std::vector<std::string> own_options(const Chapter& chapter) {
  std::vector<std::string> names(chapter.options.begin(), chapter.options.end());
  if (!chapter.tile_ks.empty()) names.push_back("tile-k");
  if (!chapter.ideas.empty()) names.push_back("off");
  if (chapter.b_layouts.size() > 1) names.push_back("b-layout");
  return names;
}

std::vector<std::string> tile_names(const Chapter& chapter) {
  std::vector<std::string> names;
  for (const Tile& tile : chapter.tiles) names.push_back(format("%dx%d", tile.m, tile.n));
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
