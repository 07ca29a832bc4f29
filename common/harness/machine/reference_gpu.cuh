// SPDX-License-Identifier: MIT
//
// The reference on the GPU, for sets too large for the CPU: see reference_gpu.cu.

#pragma once

#include "common/harness/machine/machine.h"

namespace gg {

// Judges every element of every group. `groups` is on the host; blocks until done.
Comparison compare_on_gpu(const Matrices& matrices, const std::vector<Group>& groups, const Limit& limit,
                          cudaStream_t stream);

}  // namespace gg
