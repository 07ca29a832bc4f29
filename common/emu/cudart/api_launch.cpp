// SPDX-License-Identifier: MIT
//
// Registration, which nvcc's host code calls before main, and launches. CUDA Runtime API,
// "Execution Control", "Occupancy". The functions with underscores are not documented;
// crt/host_runtime.h declares them.

#include <algorithm>
#include <vector>

#include "common/emu/core/report/count_report.h"
#include "common/emu/cudart/launch_kernel.h"

using gg::emu::api;
using gg::emu::api_beside_launches;
using gg::emu::Program;
using gg::emu::Runtime;

namespace {

struct Configuration {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
};
// Configurations of <<<>>>, until the kernel's host function takes them.
thread_local std::vector<Configuration> configurations;

// As api(), but the driver is not initialised: nvcc's code calls this before main.
template <class Body>
void at_start(Body body) {
  gg::emu::run_locked(
      [](void* context) {
        (*static_cast<Body*>(context))(Runtime::get());
        return cudaSuccess;
      },
      &body, true);
}

Program* program_of(void** handle) { return reinterpret_cast<Program*>(handle); }

// Why a kernel's attribute cannot have a value; "" if it can.
std::string attribute_problem(Runtime& rt, const CUkern_st& kernel, int attribute, int value) {
  switch (attribute) {
    case cudaFuncAttributeMaxDynamicSharedMemorySize:
      if (value < 0) return std::to_string(value) + " is no number of bytes";
      return gg::emu::shared_excess(rt.device(), kernel, value);
    case cudaFuncAttributePreferredSharedMemoryCarveout:
      if (value >= -1 && value <= 100) return "";
      return "a carveout of " + std::to_string(value) + ", it is -1 or a percentage from 0 to 100";
    case cudaFuncAttributeNonPortableClusterSizeAllowed:
    case cudaFuncAttributeClusterSchedulingPolicyPreference:
      return "";
    default:
      return std::to_string(attribute) + " is no attribute that can be set";
  }
}

cudaError_t set_attribute(Runtime& rt, CUkern_st& kernel, int attribute, int value) {
  if (attribute == cudaFuncAttributeRequiredClusterWidth ||
      attribute == cudaFuncAttributeRequiredClusterHeight ||
      attribute == cudaFuncAttributeRequiredClusterDepth) {
    return gg::emu::unsupported("cudaFuncSetAttribute of the cluster a kernel requires");
  }
  const std::string problem = attribute_problem(rt, kernel, attribute, value);
  if (!problem.empty()) {
    return gg::emu::refuse(cudaErrorInvalidValue, "an attribute of " + gg::emu::kernel_title(kernel.name) +
                                                      " is refused: " + problem);
  }
  if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) kernel.max_dynamic_shared = value;
  if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) kernel.carveout = value;
  if (attribute == cudaFuncAttributeNonPortableClusterSizeAllowed) kernel.larger_cluster = value != 0;
  return cudaSuccess;
}

}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  Program* program = nullptr;
  at_start([&](Runtime& rt) { program = rt.programs.add(wrapper); });
  return reinterpret_cast<void**>(program);
}
void __cudaRegisterFatBinaryEnd(void**) {}
// The program is ending and what it registered may still be asked for: the report of
// counts names kernels.
void __cudaUnregisterFatBinary(void**) {}

void __cudaRegisterFunction(void** handle, const char* host, char*, const char* name, int, uint3*, uint3*,
                            dim3*, dim3*, int*) {
  at_start([&](Runtime& rt) { rt.programs.add_kernel(program_of(handle), host, name); });
}

void __cudaRegisterVar(void** handle, char* host, char*, const char* name, int, size_t bytes, int, int) {
  at_start([&](Runtime& rt) {
    rt.programs.add_variable(program_of(handle), host, {program_of(handle), name, bytes, nullptr});
  });
}

void __cudaRegisterManagedVar(void** handle, void** host, char*, const char* name, int, size_t bytes, int,
                              int) {
  at_start([&](Runtime& rt) {
    rt.programs.add_variable(program_of(handle), host, {program_of(handle), name, bytes, host});
  });
}

// Called before the host first touches a managed variable.
char __cudaInitModule(void** handle) {
  return api([&](Runtime& rt) { return rt.programs.load(rt, *program_of(handle)); }) == cudaSuccess;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, CUstream_st* stream) {
  configurations.push_back({grid, block, shared, stream});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  if (configurations.empty()) return gg::emu::last_error() = cudaErrorMissingConfiguration;
  const Configuration c = configurations.back();
  configurations.pop_back();
  *grid = c.grid;
  *block = c.block;
  *shared = c.shared;
  *static_cast<cudaStream_t*>(stream) = c.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  return api_beside_launches([&](Runtime& rt) {
    *kernel = rt.programs.kernel(function);
    return *kernel ? cudaSuccess : cudaErrorInvalidDeviceFunction;
  });
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                               cudaStream_t stream) {
  return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared,
                             cudaStream_t stream) {
  return api_beside_launches([&](Runtime& rt) {
    return gg::emu::launch(rt, function, {grid, block, shared, stream, {0, 0, 0}}, arguments);
  });
}

cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                                        size_t shared, cudaStream_t stream) {
  return api_beside_launches([&](Runtime& rt) {
    const gg::emu::LaunchRequest request = {
        .grid = grid, .block = block, .dynamic_shared = shared, .stream = stream, .cooperative = true};
    return gg::emu::launch(rt, function, request, arguments);
  });
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** arguments) {
  return api_beside_launches([&](Runtime& rt) {
    return config ? gg::emu::launch(rt, function, *config, arguments) : cudaErrorInvalidValue;
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return api([&](Runtime& rt) {
    if (!function) return cudaErrorInvalidValue;
    return rt.streams.submit(stream, cudaGraphNodeTypeHost, [function, data] {
      gg::emu::Unlocked unlocked;
      function(data);
      return cudaSuccess;
    });
  });
}

cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  return __cudaGetKernel(kernel, function);
}

cudaError_t cudaFuncGetName(const char** name, const void* function) {
  return api_beside_launches([&](Runtime& rt) {
    CUkern_st* const kernel = rt.programs.kernel(function);
    if (!name || !kernel) return cudaErrorInvalidValue;
    *name = kernel->name.c_str();
    return cudaSuccess;
  });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  return api_beside_launches([&](Runtime& rt) {
    CUkern_st* kernel = nullptr;
    if (!attributes) return cudaErrorInvalidValue;
    if (const cudaError_t error = gg::emu::find_kernel(rt, function, &kernel)) return error;
    const gg::emu::Function& f = *kernel->function;
    *attributes = {};
    attributes->sharedSizeBytes = size_t(kernel->code->shared_bytes);
    attributes->localSizeBytes = size_t(kernel->code->local_bytes);
    attributes->maxThreadsPerBlock = gg::emu::largest_block(*kernel);
    attributes->ptxVersion = kernel->program->ptx_arch;
    attributes->binaryVersion = rt.device().capability();
    attributes->maxDynamicSharedSizeBytes = gg::emu::dynamic_shared_limit(*kernel);
    attributes->preferredShmemCarveout = kernel->carveout;
    attributes->clusterDimMustBeSet =
        f.required_cluster[0] * f.required_cluster[1] * f.required_cluster[2] > 1;
    attributes->requiredClusterWidth = f.required_cluster[0];
    attributes->requiredClusterHeight = f.required_cluster[1];
    attributes->requiredClusterDepth = f.required_cluster[2];
    attributes->nonPortableClusterSizeAllowed = kernel->larger_cluster;
    attributes->numRegs = kernel->registers;  // 0 if the program has no machine code for the device
    return cudaSuccess;
  });
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  return api_beside_launches([&](Runtime& rt) {
    CUkern_st* kernel = nullptr;
    if (const cudaError_t error = gg::emu::find_kernel(rt, function, &kernel)) return error;
    return set_attribute(rt, *kernel, attribute, value);
  });
}

// Preferences between L1 and shared memory make no difference here.
cudaError_t cudaFuncSetCacheConfig(const void* function, cudaFuncCache) {
  return api_beside_launches([&](Runtime& rt) {
    return rt.programs.kernel(function) ? cudaSuccess : cudaErrorInvalidDeviceFunction;
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function,
                                                                   int threads, size_t shared, unsigned) {
  return api_beside_launches([&](Runtime& rt) {
    CUkern_st* kernel = nullptr;
    if (!blocks || threads < 1) return cudaErrorInvalidValue;
    if (const cudaError_t error = gg::emu::find_kernel(rt, function, &kernel)) return error;
    *blocks = gg::emu::resident_blocks(rt, *kernel, threads, shared);
    return cudaSuccess;
  });
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int threads,
                                                          size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, shared, 0);
}

// The most dynamic shared memory with which so many blocks of so many threads fit on an SM.
cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* function, int blocks,
                                                      int threads) {
  return api_beside_launches([&](Runtime& rt) {
    CUkern_st* kernel = nullptr;
    if (!bytes || blocks < 1 || threads < 1) return cudaErrorInvalidValue;
    if (const cudaError_t error = gg::emu::find_kernel(rt, function, &kernel)) return error;
    const int64_t each = rt.device().shared_per_multiprocessor / blocks / 128 * 128 -
                         gg::emu::kReservedShared - kernel->code->shared_bytes;
    const int64_t most =
        std::max(kernel->max_dynamic_shared, gg::emu::kSharedPerBlock - int(kernel->code->shared_bytes));
    if (gg::emu::resident_blocks(rt, *kernel, threads, 0) < blocks) return cudaErrorInvalidValue;
    *bytes = size_t(std::clamp<int64_t>(each, 0, most));
    return cudaSuccess;
  });
}

// As if every multiprocessor could be in a cluster with every other, so never too few: on hardware,
// groups of them can.
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* function,
                                           const cudaLaunchConfig_t* config) {
  return api_beside_launches([&](Runtime& rt) {
    CUkern_st* kernel = nullptr;
    if (!clusters || !config) return cudaErrorInvalidValue;
    if (const cudaError_t error = gg::emu::find_kernel(rt, function, &kernel)) return error;
    int size = std::max(1, kernel->function->required_cluster[0] * kernel->function->required_cluster[1] *
                               kernel->function->required_cluster[2]);
    for (unsigned i = 0; i < config->numAttrs; ++i) {
      const auto& shape = config->attrs[i].val.clusterDim;
      if (config->attrs[i].id == cudaLaunchAttributeClusterDimension) size = int(shape.x * shape.y * shape.z);
    }
    if (size < 1 || size > (kernel->larger_cluster ? gg::emu::kLargestCluster : gg::emu::kPortableCluster)) {
      return cudaErrorInvalidClusterSize;
    }
    const int threads = int(config->blockDim.x * config->blockDim.y * config->blockDim.z);
    if (threads < 1) return cudaErrorInvalidValue;
    *clusters = gg::emu::resident_blocks(rt, *kernel, threads, config->dynamicSmemBytes) *
                rt.device().multiprocessors / size;
    return cudaSuccess;
  });
}

cudaError_t cudaOccupancyMaxPotentialClusterSize(int* size, const void* function,
                                                 const cudaLaunchConfig_t* config) {
  return api_beside_launches([&](Runtime& rt) {
    CUkern_st* kernel = nullptr;
    if (!size || !config) return cudaErrorInvalidValue;
    if (const cudaError_t error = gg::emu::find_kernel(rt, function, &kernel)) return error;
    *size = !rt.device().clusters    ? 1
            : kernel->larger_cluster ? gg::emu::kLargestCluster
                                     : gg::emu::kPortableCluster;
    return cudaSuccess;
  });
}

}  // extern "C"
