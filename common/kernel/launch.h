// SPDX-License-Identifier: MIT
//
// How a kernel is launched that wants shared memory by the hundred kilobytes, clusters, or to begin
// while the kernel before it still runs. CUDA Runtime API, "Execution Control".

#pragma once

#include <cuda_runtime.h>

#include <utility>

#include "common/kernel/check.h"

namespace gg {

// Multiprocessors of the current device.
inline int multiprocessors() {
  int device = 0, count = 0;
  GG_CHECK(cudaGetDevice(&device));
  GG_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  return count;
}

// Bytes a second that the device's memory moves at most: two transfers in a cycle of its clock (in
// kilohertz), each as wide as its bus (in bits). CUDA Runtime API, "Device Management". It is that
// of the first call's device: the driver takes 0.6 ms to tell the clock, so it is asked only once.
inline double memory_bandwidth() {
  static const double bytes = [] {
    int device = 0, clock = 0, bus = 0;
    GG_CHECK(cudaGetDevice(&device));
    GG_CHECK(cudaDeviceGetAttribute(&clock, cudaDevAttrMemoryClockRate, device));
    GG_CHECK(cudaDeviceGetAttribute(&bus, cudaDevAttrGlobalMemoryBusWidth, device));
    return 2.0 * 1000 * clock * bus / 8;
  }();
  return bytes;
}

struct KernelLaunch {
  dim3 grid;
  int threads;       // of a block
  int shared_bytes;  // of a block, dynamic
  cudaStream_t stream;
  int cluster = 1;         // blocks of a cluster, side by side along x
  bool dependent = false;  // it may begin before the kernel before it has ended: griddepcontrol
};

// Launches the kernel with these arguments, which are converted to its parameters'
// types. Throws gg::Error.
template <class... Parameters, class... Arguments>
void launch_kernel(const KernelLaunch& how, void (*kernel)(Parameters...), Arguments&&... arguments) {
  GG_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, how.shared_bytes));
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = how.dependent;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim = {unsigned(how.cluster), 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = how.grid;
  config.blockDim = dim3(unsigned(how.threads));
  config.dynamicSmemBytes = size_t(how.shared_bytes);
  config.stream = how.stream;
  config.attrs = attributes;
  // A kernel with __cluster_dims__ wants none of another size.
  config.numAttrs = how.cluster > 1 ? 2 : 1;
  GG_CHECK(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...));
}

}  // namespace gg
