// SPDX-License-Identifier: MIT
//
// A reader's request, whatever the sizes: types, tile, layout, weights, tile scheduler, epilogue.

#pragma once

#include <map>
#include <string>

#include "common/base/block_scales.h"
#include "common/base/formats.h"
#include "common/problem/epilogue.h"
#include "common/types.cuh"

namespace gg {

struct Formats {  // formats of a problem, known when run
  Format a = Format::bf16, b = Format::bf16, d = Format::bf16;
  BlockFormat scaled = BlockFormat::none;  // of A and B
  Format c = Format::bf16;                 // where an epilogue stores C
  bool operator==(const Formats&) const = default;
  GG_HD bool has_scales() const { return scaled != BlockFormat::none; }
  GG_HD BlockScaling scaling() const { return block_scaling(scaled); }
  std::string name() const;  // "bf16", or "bf16,f16" where A and B differ, or "mxfp8"
};

enum class BLayout { kn, nk };  // [G,K,N], N contiguous, or [G,N,K], K contiguous
const char* layout_name(BLayout layout);

enum class Weights {
  dense,    // B and its scales are one tensor each
  discrete  // each expert's are tensors of their own, given by address
};
enum class Scheduler {
  fixed,   // tiles by block index
  dynamic  // tiles by a counter in global memory
};

struct Request {
  Formats formats{};
  bool wide_offsets = false;  // int64_t offsets
  ClusterTileShape tile{};
  int tile_k = 0;  // 0: the chapter chooses
  int blocks = 0;  // of a persistent kernel; 0: the chapter chooses
  BLayout b_layout = BLayout::kn;
  Weights weights = Weights::dense;
  Scheduler scheduler = Scheduler::fixed;
  Epilogue epilogue{};
  std::map<std::string, bool> ideas_off{};  // every idea that can be switched off: is it?
};

// Throws gg::Error (bad input) for what excludes each other.
void require_consistent(const Request& request);

}  // namespace gg
