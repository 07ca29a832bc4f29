// SPDX-License-Identifier: MIT
//
// A toy router.

#pragma once

#include <cstdint>
#include <vector>

#include "common/kernel/layer.h"

namespace gg {

// A router's answer, on the host: what LayerTensors calls the same.
struct Routes {
  std::vector<int32_t> offsets, token_of, row_of;
  std::vector<float> prob;
};

// Logits are random, and some experts more popular than others. Each token goes to the `top_k`
// experts with the largest logits; prob is the softmax of these. With `idle` nobody goes to
// expert 1; there are more experts than top_k then.
Routes routes_of(const LayerSizes& sizes, uint64_t seed, bool idle);

}  // namespace gg
