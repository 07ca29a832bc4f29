// SPDX-License-Identifier: MIT
//
// Launches: what CUDA refuses is refused here with the same error and the reason on stderr, what
// is left runs.

#pragma once

#include <cuda_runtime_api.h>

#include "common/emu/cudart/runtime.h"

namespace gg::emu {

struct LaunchRequest {
  dim3 grid, block;
  size_t dynamic_shared = 0;
  cudaStream_t stream = nullptr;
  dim3 cluster = {0, 0, 0};      // of the launch's attribute; zeros: none
  bool prefers_cluster = false;  // of another size
  bool dependent = false;        // may begin before the kernel before it has ended
  bool cooperative = false;      // all its blocks must fit on the device at once
};

// The kernel of a host function or of a handle, ready to launch.
cudaError_t find_kernel(Runtime& runtime, const void* function, CUkern_st** kernel);
// Why no attribute lets a block of the kernel have so much dynamic shared memory on the device; ""
// if one does.
std::string shared_excess(const Device& device, const CUkern_st& kernel, int64_t dynamic);
// Dynamic shared memory that a kernel may be launched with.
int dynamic_shared_limit(const CUkern_st& kernel);

// One attribute of a launch, into the request. Hints about speed are taken; what changes what
// happens is done or refused.
cudaError_t take_attribute(Runtime& runtime, const cudaLaunchAttribute& attribute, LaunchRequest* request);
// Makes a launch of a request and of the kernel's arguments, or says why it is refused.
cudaError_t prepare(Runtime& runtime, const void* function, const LaunchRequest& request, void** arguments,
                    Launch* launch);
// Runs a launch that was prepared, in the request's stream.
Work work_of(Runtime& runtime, const Launch& launch, const LaunchRequest& request);

cudaError_t launch(Runtime& runtime, const void* function, const LaunchRequest& request, void** arguments);
cudaError_t launch(Runtime& runtime, const void* function, const cudaLaunchConfig_t& config,
                   void** arguments);

// Threads that a block of the kernel may have at most, by its launch bounds or the device.
int largest_block(const CUkern_st& kernel);
// Blocks of so many threads that fit on a multiprocessor at once.
int resident_blocks(Runtime& runtime, const CUkern_st& kernel, int threads, size_t dynamic_shared);

}  // namespace gg::emu
