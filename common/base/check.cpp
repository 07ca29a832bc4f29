// SPDX-License-Identifier: MIT
//
// The hints that follow an error of the CUDA runtime.

#include "common/check.h"

namespace gg {

const char* cuda_hint(cudaError_t error) {
  switch (error) {
    case cudaErrorNoKernelImageForDevice:
      return "the program holds no code for this GPU";
    case cudaErrorInvalidConfiguration:
      return "grid, block or shared memory exceed what the device allows";
    case cudaErrorIllegalAddress:
      return "a kernel touched memory outside its buffers: compute-sanitizer names the line";
    case cudaErrorMisalignedAddress:
      return "a vector access is not aligned to its size";
    case cudaErrorLaunchOutOfResources:
      return "too many registers or too much shared memory per block";
    case cudaErrorLaunchFailure:
      return "a kernel failed: compute-sanitizer names the line";
    case cudaErrorMemoryAllocation:
      return "use a smaller problem";
    default:
      return "";
  }
}

}  // namespace gg
