// SPDX-License-Identifier: MIT
//
// The kernel behind Machine::copy_late.

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace gg {

// Copies between buffers of the device, whose capability is 9.0 or more. A launch with
// programmatic dependent launch may begin before the copy is made, and finds it made
// behind its griddepcontrol.wait.
void launch_late_copy(void* to, const void* from, size_t bytes, cudaStream_t stream);

}  // namespace gg
