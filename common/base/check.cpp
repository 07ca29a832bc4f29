// SPDX-License-Identifier: MIT
//
// The hints that follow an error of the CUDA runtime.

#include "common/check.h"

namespace gg {

// What cudaFuncSetAttribute answers to more shared memory than a block can have: the error's own text names
// neither.
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

std::string cuda_hint(cudaError_t error, const std::string& call) {
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

}  // namespace gg
