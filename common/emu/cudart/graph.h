// SPDX-License-Identifier: MIT
//
// Graphs made ready to run. CUDA Programming Guide, "CUDA Graphs".

#pragma once

#include <vector>

#include "common/emu/cudart/runtime.h"

namespace gg::emu {

// The graph's steps in an order that its edges allow, and its shape. cudaErrorInvalidValue if
// they go round.
cudaError_t instantiate(const CUgraph_st& graph, CUgraphExec_st* exec);
// Runs the steps that are enabled; ends at the first error.
cudaError_t run(Runtime& rt, const std::vector<CUgraphExec_st::Step>& steps);

}  // namespace gg::emu
