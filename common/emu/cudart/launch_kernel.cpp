// SPDX-License-Identifier: MIT
//
// The checks of a launch. CUDA Programming Guide, "Compute Capabilities", "Thread Block Clusters";
// PTX ISA 9.0, "Performance-Tuning Directives", "Cluster Dimension Directives".

#include "common/emu/cudart/launch_kernel.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <fstream>

#include "common/emu/core/report/count_report.h"
#include "common/emu/cudart/hooks.h"

namespace gg::emu {
namespace {

std::string text(const dim3& d) {
  return std::to_string(d.x) + " x " + std::to_string(d.y) + " x " + std::to_string(d.z);
}
uint64_t count(const dim3& d) { return uint64_t(d.x) * d.y * d.z; }
bool is_zero(const dim3& d) { return d.x == 0 && d.y == 0 && d.z == 0; }
dim3 dims(const int (&d)[3]) { return {unsigned(d[0]), unsigned(d[1]), unsigned(d[2])}; }

// All threads or blocks of the three directions, or why they are too many.
std::string size_problem(const LaunchRequest& r) {
  const dim3 &g = r.grid, &b = r.block;
  if (count(g) == 0 || count(b) == 0)
    return "a grid of " + text(g) + " blocks of " + text(b) + " threads has nothing in it";
  if (g.x > unsigned(INT_MAX) || g.y > 65535 || g.z > 65535) {
    return "a grid of " + text(g) + " blocks, at most 2147483647 x 65535 x 65535 fit";
  }
  if (b.x > 1024 || b.y > 1024 || b.z > 64 || count(b) > kThreadsPerBlock) {
    return "a block of " + text(b) + " threads, at most 1024 in all and 64 in z fit";
  }
  return "";
}

std::string thread_problem(const Function& f, const LaunchRequest& r) {
  const dim3 most = dims(f.max_threads), wanted = dims(f.required_threads);
  if (wanted.x && (r.block.x != wanted.x || r.block.y != wanted.y || r.block.z != wanted.z)) {
    return "a block of " + text(r.block) + " threads, the kernel wants exactly " + text(wanted);
  }
  if (most.x && count(r.block) > count(most)) {
    return "a block of " + std::to_string(count(r.block)) + " threads, the kernel's launch bounds allow " +
           std::to_string(count(most));
  }
  return "";
}

std::string shared_problem(const Device& device, const CUkern_st& kernel, size_t dynamic) {
  const std::string too_much = shared_excess(device, kernel, int64_t(std::min<size_t>(dynamic, INT64_MAX)));
  if (!too_much.empty()) return too_much;
  const int limit = dynamic_shared_limit(kernel), fixed = int(kernel.code->shared_bytes);
  if (limit >= 0 && dynamic <= size_t(limit)) return "";
  const std::string bytes = std::to_string(dynamic) + " bytes of dynamic shared memory";
  if (kernel.max_dynamic_shared >= 0) {
    return bytes + ", cudaFuncSetAttribute allowed this kernel " + std::to_string(kernel.max_dynamic_shared);
  }
  return bytes + " beside " + std::to_string(fixed) + " static ones, more than " +
         std::to_string(kSharedPerBlock) +
         " in all want cudaFuncAttributeMaxDynamicSharedMemorySize, here up to " +
         std::to_string(device.shared_per_block_optin - fixed);
}

// The cluster's shape into `cluster`, or why there can be none such.
std::string cluster_problem(const CUkern_st& kernel, const LaunchRequest& r, dim3* cluster) {
  const Function& f = *kernel.function;
  const dim3 wanted = dims(f.required_cluster);
  *cluster = !is_zero(r.cluster) ? r.cluster : wanted.x ? wanted : dim3{1, 1, 1};
  const std::string shape = "a cluster of " + text(*cluster) + " blocks";
  if (is_zero(r.cluster) && f.explicit_cluster && !wanted.x)
    return "the kernel wants a cluster and the launch names none";
  if (wanted.x && (cluster->x != wanted.x || cluster->y != wanted.y || cluster->z != wanted.z)) {
    return shape + ", the kernel wants exactly " + text(wanted);
  }
  if (count(*cluster) == 0) return shape + " has nothing in it";
  const uint64_t most = kernel.larger_cluster ? kLargestCluster : kPortableCluster;
  if (count(*cluster) > most) {
    return shape + ", at most " + std::to_string(most) + " are allowed" +
           (kernel.larger_cluster ? "" : " without cudaFuncAttributeNonPortableClusterSizeAllowed");
  }
  if (r.grid.x % cluster->x || r.grid.y % cluster->y || r.grid.z % cluster->z) {
    return "a grid of " + text(r.grid) + " blocks is not made of whole clusters of " + text(*cluster);
  }
  return "";
}

cudaError_t check(Runtime& runtime, const CUkern_st& kernel, const LaunchRequest& r, dim3* cluster) {
  const std::string start = "the launch of " + kernel_title(kernel.name) + " is refused: ";
  // NVIDIA documents cudaErrorInvalidConfiguration for some of these. Its runtime 13.0 gives this
  // code for all.
  for (const std::string& problem : {size_problem(r), thread_problem(*kernel.function, r),
                                     shared_problem(runtime.device(), kernel, r.dynamic_shared)}) {
    if (!problem.empty()) return refuse(cudaErrorInvalidValue, start + problem);
  }
  const uint64_t registers = uint64_t(kernel.registers) * ((count(r.block) + kLanes - 1) / kLanes) * kLanes;
  if (registers > uint64_t(kRegistersPerMultiprocessor)) {
    return refuse(cudaErrorLaunchOutOfResources,
                  start + std::to_string(count(r.block)) + " threads of " + std::to_string(kernel.registers) +
                      " registers, a multiprocessor has " + std::to_string(kRegistersPerMultiprocessor));
  }
  const std::string problem = cluster_problem(kernel, r, cluster);
  if (!problem.empty()) return refuse(cudaErrorInvalidClusterSize, start + problem);
  if (count(*cluster) > 1 && !runtime.device().clusters) {
    return refuse(cudaErrorNotSupported, start + runtime.device().name + " has no clusters");
  }
  const int64_t fit = int64_t(resident_blocks(runtime, kernel, int(count(r.block)), r.dynamic_shared)) *
                      runtime.device().multiprocessors;
  if (r.cooperative && count(r.grid) > uint64_t(fit)) {
    return refuse(cudaErrorCooperativeLaunchTooLarge, start + std::to_string(count(r.grid)) +
                                                          " blocks of a cooperative launch, " +
                                                          std::to_string(fit) + " fit on the device at once");
  }
  return cudaSuccess;
}

}  // namespace

cudaError_t take_attribute(Runtime& runtime, const cudaLaunchAttribute& attribute, LaunchRequest* request) {
  const cudaLaunchAttributeValue& value = attribute.val;
  switch (attribute.id) {
    case cudaLaunchAttributeIgnore:
    case cudaLaunchAttributeAccessPolicyWindow:
    case cudaLaunchAttributeClusterSchedulingPolicyPreference:
    case cudaLaunchAttributePriority:
    case cudaLaunchAttributeMemSyncDomainMap:
    case cudaLaunchAttributeMemSyncDomain:
    case cudaLaunchAttributePreferredSharedMemoryCarveout:
    case cudaLaunchAttributeNvlinkUtilCentricScheduling:
      return cudaSuccess;
    case cudaLaunchAttributeProgrammaticStreamSerialization:
      request->dependent = value.programmaticStreamSerializationAllowed != 0;
      return cudaSuccess;
    case cudaLaunchAttributeClusterDimension:
      request->cluster = {value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
      return cudaSuccess;
    // Instead of one that must be named too, and is always taken.
    case cudaLaunchAttributePreferredClusterDimension:
      request->prefers_cluster = true;
      return cudaSuccess;
    case cudaLaunchAttributeCooperative:
      request->cooperative = value.cooperative != 0;
      return cudaSuccess;
    case cudaLaunchAttributeProgrammaticEvent:
    case cudaLaunchAttributeLaunchCompletionEvent: {
      CUevent_st* event = runtime.streams.event(attribute.id == cudaLaunchAttributeProgrammaticEvent
                                                    ? value.programmaticEvent.event
                                                    : value.launchCompletionEvent.event);
      CUstream_st* stream = runtime.streams.stream(request->stream);
      return event && stream ? runtime.streams.record(event, stream, false) : cudaErrorInvalidResourceHandle;
    }
    case cudaLaunchAttributeDeviceUpdatableKernelNode:
      return unsupported("a kernel node that the device updates");
    default:
      return cudaErrorInvalidValue;
  }
}

cudaError_t find_kernel(Runtime& runtime, const void* function, CUkern_st** kernel) {
  if (!function) return cudaErrorInvalidDeviceFunction;
  *kernel = runtime.programs.kernel(function);
  if (!*kernel) return cudaErrorInvalidResourceHandle;
  return runtime.programs.ready(runtime, **kernel);
}

std::string shared_excess(const Device& device, const CUkern_st& kernel, int64_t dynamic) {
  if (dynamic <= device.shared_per_block_optin - kernel.code->shared_bytes) return "";
  return std::to_string(dynamic) + " bytes of dynamic shared memory beside " +
         std::to_string(kernel.code->shared_bytes) + " static ones, a block of " + device.name +
         " has at most " + std::to_string(device.shared_per_block_optin) +
         " in all (cudaDevAttrMaxSharedMemoryPerBlockOptin)";
}

int dynamic_shared_limit(const CUkern_st& kernel) {
  return kernel.max_dynamic_shared >= 0 ? kernel.max_dynamic_shared
                                        : kSharedPerBlock - int(kernel.code->shared_bytes);
}

cudaError_t prepare(Runtime& runtime, const void* function, const LaunchRequest& request, void** arguments,
                    Launch* launch) {
  CUkern_st* kernel = nullptr;
  dim3 cluster;
  if (const cudaError_t error = find_kernel(runtime, function, &kernel)) return error;
  if (const cudaError_t error = check(runtime, *kernel, request, &cluster)) return error;
  if (!arguments && !kernel->function->params.empty()) return cudaErrorInvalidValue;
  launch->code = kernel->code.get();
  const dim3 shapes[3] = {request.grid, request.block, cluster};
  int(*const into[3])[3] = {&launch->grid, &launch->block, &launch->cluster};
  for (int i = 0; i < 3; ++i) {
    (*into[i])[0] = int(shapes[i].x);
    (*into[i])[1] = int(shapes[i].y);
    (*into[i])[2] = int(shapes[i].z);
  }
  launch->dynamic_shared = int64_t(request.dynamic_shared);
  launch->registers = kernel->registers;
  launch->cooperative = request.cooperative;
  launch->params.assign(size_t(kernel->function->param_bytes), 0);
  for (size_t i = 0; i < kernel->function->params.size(); ++i) {
    const Variable& param = kernel->function->params[i];
    std::memcpy(launch->params.data() + param.offset, arguments[i], size_t(param.bytes));
  }
  return cudaSuccess;
}

Work work_of(Runtime& runtime, const Launch& launch, const LaunchRequest& request) {
  CUstream_st* const stream = runtime.streams.stream(request.stream);
  return [&runtime, launch, stream, dependent = request.dependent] {
    if (!runtime.settings.launches.empty())
      std::ofstream(runtime.settings.launches, std::ios::app) << launch.code->function->name << '\n';
    runtime.run(launch, stream, dependent);
    return cudaSuccess;
  };
}

cudaError_t launch(Runtime& runtime, const void* function, const LaunchRequest& request, void** arguments) {
  Launch launch;
  CUstream_st* const stream = runtime.streams.stream(request.stream);
  const cudaError_t error = prepare(runtime, function, request, arguments, &launch);
  if (error != cudaSuccess) {
    if (stream && stream->capture) stream->capture->invalid = true;
    return error;
  }
  std::shared_ptr<const NodeParams> params;
  if (stream && stream->capture) params = params_of(function, request, launch);
  return runtime.streams.submit(request.stream, cudaGraphNodeTypeKernel, work_of(runtime, launch, request),
                                std::move(params));
}

cudaError_t launch(Runtime& runtime, const void* function, const cudaLaunchConfig_t& config,
                   void** arguments) {
  LaunchRequest request{config.gridDim, config.blockDim, config.dynamicSmemBytes, config.stream, {0, 0, 0}};
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    if (const cudaError_t error = take_attribute(runtime, config.attrs[i], &request)) return error;
  }
  if (request.prefers_cluster && is_zero(request.cluster)) return cudaErrorInvalidClusterSize;
  return launch(runtime, function, request, arguments);
}

int largest_block(const CUkern_st& kernel) {
  const Function& f = *kernel.function;
  const int bound = f.required_threads[0] ? 0 : f.max_threads[0] * f.max_threads[1] * f.max_threads[2];
  return bound ? bound : kThreadsPerBlock;
}

// By threads, blocks, shared memory, and registers where the program holds machine code for the
// device. CUDA C++ Best Practices Guide, "Calculating Occupancy".
int resident_blocks(Runtime& runtime, const CUkern_st& kernel, int threads, size_t dynamic_shared) {
  constexpr int kSharedUnit = 128, kRegisterUnit = 256, kWarpUnit = 4;
  const Device& device = runtime.device();
  if (threads > kThreadsPerBlock) return 0;
  const int64_t limit = std::max(kernel.max_dynamic_shared, kSharedPerBlock - int(kernel.code->shared_bytes));
  if (int64_t(dynamic_shared) > limit) return 0;
  const int warps = (threads + kLanes - 1) / kLanes;
  const int64_t shared = kernel.code->shared_bytes + int64_t(dynamic_shared) + kReservedShared;
  const int64_t by_shared =
      device.shared_per_multiprocessor / ((shared + kSharedUnit - 1) / kSharedUnit * kSharedUnit);
  const int64_t by_threads = kThreadsPerMultiprocessor / (warps * kLanes);
  int64_t by_registers = kBlocksPerMultiprocessor;
  if (kernel.registers > 0) {
    const int per_warp = (kernel.registers * kLanes + kRegisterUnit - 1) / kRegisterUnit * kRegisterUnit;
    by_registers = kRegistersPerMultiprocessor / per_warp / kWarpUnit * kWarpUnit / warps;
  }
  return int(std::min<int64_t>({kBlocksPerMultiprocessor, by_threads, by_shared, by_registers}));
}

}  // namespace gg::emu
