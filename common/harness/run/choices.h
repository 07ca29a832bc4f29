// SPDX-License-Identifier: MIT
//
// The choices that a chapter gives a reader, in the words of its command line.

#pragma once

#include <string>
#include <vector>

#include "common/harness/problem/chapter.h"
#include "common/kernel/error.h"

namespace gg {

// The chapter's own options: those it lists and those that it gives values for.
std::vector<std::string> own_options(const Chapter& chapter);

std::string tile_name(const ClusterTileShape& tile);     // "128x64"
std::string cluster_name(const ClusterTileShape& tile);  // "2x1"
std::vector<std::string> tile_names(const Chapter& chapter);
// Empty where every tile is a block's own and there is nothing to choose.
std::vector<std::string> cluster_names(const Chapter& chapter);
// "256x256 with 2x1", for all of the chapter's tiles.
std::vector<std::string> tile_and_cluster_names(const Chapter& chapter);
std::vector<std::string> number_names(const OwnNumber& own);  // "64"
std::vector<std::string> idea_names(const Chapter& chapter);
std::vector<std::string> b_layout_names(const Chapter& chapter);
std::vector<std::string> activation_names(const Chapter& chapter);  // "swiglu"
std::vector<std::string> type_names(const List<Format>& types);     // "bf16"
// Returns the formats the chapter takes, with each D that its operator gives: as listed where it is
// a plain product.
std::vector<Formats> with_outputs(const Chapter& chapter, const std::vector<Formats>& formats);
std::vector<std::string> format_names(const std::vector<Formats>& formats);  // "bf16 -> f32"

}  // namespace gg
