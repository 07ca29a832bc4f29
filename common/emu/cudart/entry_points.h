// SPDX-License-Identifier: MIT
//
// The driver's functions by name.

#pragma once

#include <cuda_runtime_api.h>

namespace gg::emu {

// The function that a name means in a version of CUDA. An unknown name is said to be so on stderr.
cudaDriverEntryPointQueryResult find_driver_entry(const char* name, void** function, unsigned version);

}  // namespace gg::emu
