// SPDX-License-Identifier: MIT
//
// Times of each launch of a step, and of several in a row.

#pragma once

#include <string>
#include <vector>

#include "common/harness/layer/layer_data.h"
#include "common/harness/layer/layer_options.h"
#include "common/harness/run/device.h"

namespace gg {

extern const std::vector<std::string> kLayerColumns;  // of --csv

// Checks each launch of a layer on a GPU, then times it and prints both. Of the options it takes
// the seed and --csv. Returns false, and times nothing, where a check failed.
bool time_layer(const LayerProgram& program, const NamedLayer& named, const LayerOptions& options,
                const Device& device, Machine& machine);
// On the emulator, in place of times: multiply-adds and bytes that the kernels asked for.
void count_layer(const Layer& layer);

}  // namespace gg
