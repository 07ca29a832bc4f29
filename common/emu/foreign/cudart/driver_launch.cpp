// SPDX-License-Identifier: MIT
//
// Launches and attributes of kernels, for the driver's interface. CUDA Driver API,
// "Execution Control", "Occupancy".

#include <cstring>
#include <utility>
#include <vector>

#include "common/emu/cudart/launch_kernel.h"
#include "common/emu/foreign/cudart/context.h"

using gg::emu::as_runtime;
using gg::emu::in_context;
using gg::emu::Runtime;

namespace {

static_assert(sizeof(CUlaunchAttribute) == sizeof(cudaLaunchAttribute) &&
              sizeof(cudaLaunchAttribute::val) == sizeof(CUlaunchAttribute::value));

// A launch's configuration as the runtime has it.
struct Configuration {
  std::vector<cudaLaunchAttribute> attributes;
  cudaLaunchConfig_t config{};

  explicit Configuration(const CUlaunchConfig& from) : attributes(from.numAttrs) {
    if (from.numAttrs) {
      std::memcpy(static_cast<void*>(attributes.data()), from.attrs,
                  from.numAttrs * sizeof(cudaLaunchAttribute));
    }
    config.gridDim = {from.gridDimX, from.gridDimY, from.gridDimZ};
    config.blockDim = {from.blockDimX, from.blockDimY, from.blockDimZ};
    config.dynamicSmemBytes = from.sharedMemBytes;
    config.stream = from.hStream;
    config.attrs = attributes.data();
    config.numAttrs = from.numAttrs;
  }
};

// The arguments one by one, out of a buffer that has them all as the kernel's parameters lie.
// False: the list that describes it is none, or the buffer too short.
bool take_buffer(const CUkern_st& kernel, void** extra, std::vector<void*>* arguments) {
  char* buffer = nullptr;
  size_t bytes = 0;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      buffer = static_cast<char*>(extra[1]);
    } else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      std::memcpy(&bytes, extra[1], sizeof bytes);
    } else {
      return false;
    }
  }
  if (bytes < size_t(kernel.function->param_bytes) || (!buffer && bytes)) return false;
  for (const gg::emu::Variable& param : kernel.function->params) arguments->push_back(buffer + param.offset);
  return true;
}

CUresult launch(CUfunction function, const CUlaunchConfig& config, void** arguments, void** extra) {
  return in_context([&](Runtime& rt) {
    CUkern_st* kernel = nullptr;
    std::vector<void*> from_buffer;
    if (!rt.programs.kernel(function)) return CUDA_ERROR_INVALID_HANDLE;
    if (arguments && extra) return CUDA_ERROR_INVALID_VALUE;
    if (const cudaError_t error = gg::emu::find_kernel(rt, function, &kernel)) return CUresult(error);
    if (extra) {
      if (!take_buffer(*kernel, extra, &from_buffer)) return CUDA_ERROR_INVALID_VALUE;
      arguments = from_buffer.data();
    }
    return CUresult(gg::emu::launch(rt, function, Configuration(config).config, arguments));
  });
}

// A function's attribute as the runtime tells it; false if it has none such.
bool attribute_of(const cudaFuncAttributes& all, CUfunction_attribute attribute, int* value) {
  const std::pair<CUfunction_attribute, int> values[] = {
      {CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, all.maxThreadsPerBlock},
      {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, int(all.sharedSizeBytes)},
      {CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, int(all.constSizeBytes)},
      {CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, int(all.localSizeBytes)},
      {CU_FUNC_ATTRIBUTE_NUM_REGS, all.numRegs},
      {CU_FUNC_ATTRIBUTE_PTX_VERSION, all.ptxVersion},
      {CU_FUNC_ATTRIBUTE_BINARY_VERSION, all.binaryVersion},
      {CU_FUNC_ATTRIBUTE_CACHE_MODE_CA, all.cacheModeCA},
      {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, all.maxDynamicSharedSizeBytes},
      {CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, all.preferredShmemCarveout},
      {CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, all.clusterDimMustBeSet},
      {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, all.requiredClusterWidth},
      {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, all.requiredClusterHeight},
      {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, all.requiredClusterDepth},
      {CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, all.nonPortableClusterSizeAllowed},
      {CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, all.clusterSchedulingPolicyPreference},
  };
  for (const auto& [name, of_function] : values) {
    if (name != attribute) continue;
    *value = of_function;
    return true;
  }
  return false;
}

CUresult get_attribute(int* value, CUfunction_attribute attribute, const void* function) {
  return as_runtime([&] {
    cudaFuncAttributes all;
    if (!value) return cudaErrorInvalidValue;
    if (const cudaError_t error = cudaFuncGetAttributes(&all, function)) return error;
    return attribute_of(all, attribute, value) ? cudaSuccess : cudaErrorInvalidValue;
  });
}

// The runtime has the same numbers for what can be set.
CUresult set_attribute(const void* function, CUfunction_attribute attribute, int value) {
  return as_runtime([&] { return cudaFuncSetAttribute(function, cudaFuncAttribute(attribute), value); });
}

}  // namespace

extern "C" {

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                        CUstream stream, void** arguments, void** extra) {
  return launch(function, {grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, nullptr, 0},
                arguments, extra);
}
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** arguments, void** extra) {
  return config ? launch(function, *config, arguments, extra) : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                   CUstream stream, void** arguments) {
  CUlaunchAttribute cooperative{};
  cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  cooperative.value.cooperative = 1;
  return launch(function,
                {grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, &cooperative, 1},
                arguments, nullptr);
}
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  return as_runtime([&] { return cudaLaunchHostFunc(stream, function, data); });
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  return get_attribute(value, attribute, function);
}
CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device) {
  return device == 0 ? get_attribute(value, attribute, kernel) : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  return set_attribute(function, attribute, value);
}
CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device) {
  return device == 0 ? set_attribute(kernel, attribute, value) : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config) {
  return as_runtime([&] { return cudaFuncSetCacheConfig(function, cudaFuncCache(config)); });
}
CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice) {
  return as_runtime([&] { return cudaFuncSetCacheConfig(kernel, cudaFuncCache(config)); });
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int threads,
                                                     size_t shared) {
  return as_runtime(
      [&] { return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared); });
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function, int threads,
                                                              size_t shared, unsigned) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared);
}
CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction function, int blocks,
                                                 int threads) {
  return as_runtime(
      [&] { return cudaOccupancyAvailableDynamicSMemPerBlock(bytes, function, blocks, threads); });
}
CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction function, const CUlaunchConfig* config) {
  if (!config) return CUDA_ERROR_INVALID_VALUE;
  const Configuration converted(*config);
  return as_runtime([&] { return cudaOccupancyMaxActiveClusters(clusters, function, &converted.config); });
}
CUresult cuOccupancyMaxPotentialClusterSize(int* size, CUfunction function, const CUlaunchConfig* config) {
  if (!config) return CUDA_ERROR_INVALID_VALUE;
  const Configuration converted(*config);
  return as_runtime([&] { return cudaOccupancyMaxPotentialClusterSize(size, function, &converted.config); });
}

// The block size with the most threads on a multiprocessor; of several the largest.
CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, CUfunction function,
                                                   CUoccupancyB2DSize shared_of, size_t shared, int limit,
                                                   unsigned) {
  return in_context([&](Runtime& rt) {
    CUkern_st* kernel = nullptr;
    if (!grid || !block || !rt.programs.kernel(function)) return CUDA_ERROR_INVALID_VALUE;
    if (const cudaError_t error = gg::emu::find_kernel(rt, function, &kernel)) return CUresult(error);
    int most = gg::emu::largest_block(*kernel);
    if (limit > 0) most = limit < most ? limit : most;
    int best = 0, best_blocks = 0, best_threads = 0;
    for (int threads = (most + 31) / 32 * 32; threads > 0; threads -= 32) {
      const int size = threads < most ? threads : most;
      const int blocks = gg::emu::resident_blocks(rt, *kernel, size, shared_of ? shared_of(size) : shared);
      if (blocks * size <= best_threads) continue;
      best = size;
      best_blocks = blocks;
      best_threads = blocks * size;
    }
    *block = best;
    *grid = best_blocks * rt.device().multiprocessors;
    return CUDA_SUCCESS;
  });
}
CUresult cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction function,
                                          CUoccupancyB2DSize shared_of, size_t shared, int limit) {
  return cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, function, shared_of, shared, limit, 0);
}

}  // extern "C"
