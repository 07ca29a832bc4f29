// SPDX-License-Identifier: MIT
//
// Images that a program loads while it runs.

#pragma once

#include <string>

#include "common/emu/cudart/runtime.h"

namespace gg::emu {

// Loads an image that the program hands over: PTX text that ends with a 0, a fatbin, or the wrapper
// of one. All its kernels get handles. Where it fails the reason is in `log`:
// cudaErrorInvalidKernelImage for bytes that are none of these, cudaErrorNoKernelImageForDevice
// where no PTX fits the device, cudaErrorInvalidPtx.
cudaError_t load_image(Runtime& runtime, const void* image, Program** program, std::string* log);
// The program of a handle that load_image gave; null if it is none, or unloaded.
Program* loaded(const void* handle);
// Its handles and the memory of its variables go; counts and traces still name its kernels.
void unload(Runtime& runtime, Program& program);

}  // namespace gg::emu
