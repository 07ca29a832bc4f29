// SPDX-License-Identifier: MIT
//
// Errors of the CUDA runtime, and the hints that follow them.

#include "common/kernel/check.h"

#include <string>

#include "common/kernel/error.h"

namespace gg {

// The error that cudaFuncSetAttribute gives where a block cannot have so much shared memory has no
// text of its own for it.
static std::string shared_memory_hint() {
  int device = 0, most = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return "";
  if (cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) != cudaSuccess)
    return "";
  return format(
      "a block has at most %d bytes of shared memory on this device, static and dynamic: fewer stages or "
      "a smaller tile take less",
      most);
}

// Empty for errors that need no hint.
static std::string cuda_hint(cudaError_t error, const std::string& call) {
  if (error == cudaErrorInvalidValue &&
      call.find("cudaFuncAttributeMaxDynamicSharedMemorySize") != std::string::npos) {
    return shared_memory_hint();
  }
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
  const std::string hint = cuda_hint(error, call);
  fail(error == cudaErrorMemoryAllocation ? Exit::no_memory : Exit::device_error,
       "%s:%d: %s failed: %s (%s)%s%s", file, line, call, cudaGetErrorName(error), cudaGetErrorString(error),
       hint.empty() ? "" : "; ", hint.c_str());
}

}  // namespace gg
