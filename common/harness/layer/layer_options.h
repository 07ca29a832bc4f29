// SPDX-License-Identifier: MIT
//
// The command line of a chapter that is a layer.

#pragma once

#include <string>
#include <vector>

#include "common/harness/run/machine_options.h"
#include "common/kernel/layer.h"

namespace gg {

struct NamedLayer {
  const char* name;
  LayerSizes sizes;
};
// Layers of published models, as their configurations give them. The last one has an eighth of
// DeepSeek-V3's experts, as each of eight GPUs would, and on the average one of a token's eight.
constexpr NamedLayer kLayers[] = {
    {"mixtral", {.tokens = 8192, .experts = 8, .top_k = 2, .hidden = 4096, .inner = 14336}},
    {"qwen3", {.tokens = 8192, .experts = 128, .top_k = 8, .hidden = 2048, .inner = 768}},
    {"deepseek", {.tokens = 16384, .experts = 32, .top_k = 1, .hidden = 7168, .inner = 2048}},
};
// "48 tokens, 2 of 5 experts each, hidden 72, inner 96"
std::string text_of(const LayerSizes& sizes);

struct LayerOptions : MachineOptions {
  bool check = true, bench = true;  // --check and --bench leave only their half
  std::vector<NamedLayer> layers;
  int steps = 0;  // 0: as the machine can
  uint64_t seed = 1;
  bool help = false, describe = false;
  std::string csv, differences;
};

std::string layer_help(const char* id, const char* title);
// Throws gg::Error (bad input).
LayerOptions parse_layer_options(int argc, char** argv);

}  // namespace gg
