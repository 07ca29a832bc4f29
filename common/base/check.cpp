// SPDX-License-Identifier: MIT
//
// Errors of the CUDA runtime, and the hints that follow them.

#include "common/check.h"

namespace gg {

// Empty for errors that need no hint.
static const char* cuda_hint(cudaError_t error) {
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

void fail_cuda(cudaError_t error, const char* call, const char* file, int line) {
  const char* hint = cuda_hint(error);
  fail(error == cudaErrorMemoryAllocation ? Exit::no_memory : Exit::device_error,
       "%s:%d: %s failed: %s (%s)%s%s", file, line, call, cudaGetErrorName(error), cudaGetErrorString(error),
       *hint ? "; " : "", hint);
}

}  // namespace gg
