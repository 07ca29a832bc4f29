// SPDX-License-Identifier: MIT
//
// The driver's functions by name, for programs that look them up. CUDA Driver API, "Driver Entry
// Point Access"; CUDA Runtime API, the same.

#include <cstring>

#include "common/emu/cudart/context.h"

using gg::emu::api_beside_launches;
using gg::emu::driver;
using gg::emu::Runtime;

extern "C" {

// Two that no header declares, which programs that were built with an older one call, and one that
// is deprecated where it is declared.
CUresult cuCtxCreate_v2(CUcontext*, unsigned, CUdevice);
CUresult gg_emu_proc_address(const char*, void**, int, cuuint64_t) __asm__("cuGetProcAddress");
CUresult gg_emu_capability(int*, int*, CUdevice) __asm__("cuDeviceComputeCapability");

}  // extern "C"

namespace {

// A function from the CUDA version on in which its name began to mean it. Null: it is not here.
struct Entry {
  const char* name;
  void* function;
  unsigned since;
};
template <class F>
Entry entry(const char* name, F* function, unsigned since) {
  return {name, reinterpret_cast<void*>(function), since};
}

// By name; of one name the oldest first.
const Entry kEntries[] = {
    entry("cuCtxCreate", &cuCtxCreate_v2, 3020),
    {"cuCtxCreate", nullptr, 11040},
    entry("cuCtxCreate", &cuCtxCreate_v4, 12050),
    entry("cuCtxDestroy", &cuCtxDestroy, 4000),
    entry("cuCtxGetApiVersion", &cuCtxGetApiVersion, 3020),
    entry("cuCtxGetCacheConfig", &cuCtxGetCacheConfig, 3020),
    entry("cuCtxGetCurrent", &cuCtxGetCurrent, 4000),
    entry("cuCtxGetDevice", &cuCtxGetDevice, 2000),
    entry("cuCtxGetDevice", &cuCtxGetDevice_v2, 13000),
    entry("cuCtxGetFlags", &cuCtxGetFlags, 7000),
    entry("cuCtxGetId", &cuCtxGetId, 12000),
    entry("cuCtxGetLimit", &cuCtxGetLimit, 3010),
    entry("cuCtxGetStreamPriorityRange", &cuCtxGetStreamPriorityRange, 5050),
    entry("cuCtxPopCurrent", &cuCtxPopCurrent, 4000),
    entry("cuCtxPushCurrent", &cuCtxPushCurrent, 4000),
    entry("cuCtxResetPersistingL2Cache", &cuCtxResetPersistingL2Cache, 11000),
    entry("cuCtxSetCacheConfig", &cuCtxSetCacheConfig, 3020),
    entry("cuCtxSetCurrent", &cuCtxSetCurrent, 4000),
    entry("cuCtxSetLimit", &cuCtxSetLimit, 3010),
    entry("cuCtxSynchronize", &cuCtxSynchronize, 2000),
    entry("cuCtxSynchronize", &cuCtxSynchronize_v2, 13000),
    entry("cuDeviceCanAccessPeer", &cuDeviceCanAccessPeer, 4000),
    entry("cuDeviceComputeCapability", &gg_emu_capability, 2000),
    entry("cuDeviceGet", &cuDeviceGet, 2000),
    entry("cuDeviceGetAttribute", &cuDeviceGetAttribute, 2000),
    entry("cuDeviceGetCount", &cuDeviceGetCount, 2000),
    entry("cuDeviceGetDefaultMemPool", &cuDeviceGetDefaultMemPool, 11020),
    entry("cuDeviceGetName", &cuDeviceGetName, 2000),
    entry("cuDeviceGetPCIBusId", &cuDeviceGetPCIBusId, 4010),
    entry("cuDeviceGetUuid", &cuDeviceGetUuid, 9020),
    entry("cuDevicePrimaryCtxGetState", &cuDevicePrimaryCtxGetState, 7000),
    entry("cuDevicePrimaryCtxRelease", &cuDevicePrimaryCtxRelease, 7000),
    entry("cuDevicePrimaryCtxReset", &cuDevicePrimaryCtxReset, 7000),
    entry("cuDevicePrimaryCtxRetain", &cuDevicePrimaryCtxRetain, 7000),
    entry("cuDevicePrimaryCtxSetFlags", &cuDevicePrimaryCtxSetFlags, 7000),
    entry("cuDeviceTotalMem", &cuDeviceTotalMem, 3020),
    entry("cuDriverGetVersion", &cuDriverGetVersion, 2020),
    entry("cuEventCreate", &cuEventCreate, 2000),
    entry("cuEventDestroy", &cuEventDestroy, 4000),
    entry("cuEventElapsedTime", &cuEventElapsedTime, 2000),
    entry("cuEventQuery", &cuEventQuery, 2000),
    entry("cuEventRecord", &cuEventRecord, 2000),
    entry("cuEventRecordWithFlags", &cuEventRecordWithFlags, 11010),
    entry("cuEventSynchronize", &cuEventSynchronize, 2000),
    entry("cuFuncGetAttribute", &cuFuncGetAttribute, 2020),
    entry("cuFuncGetModule", &cuFuncGetModule, 11000),
    entry("cuFuncGetName", &cuFuncGetName, 12030),
    entry("cuFuncGetParamInfo", &cuFuncGetParamInfo, 12040),
    entry("cuFuncIsLoaded", &cuFuncIsLoaded, 12040),
    entry("cuFuncLoad", &cuFuncLoad, 12040),
    entry("cuFuncSetAttribute", &cuFuncSetAttribute, 9000),
    entry("cuFuncSetCacheConfig", &cuFuncSetCacheConfig, 3000),
    entry("cuGetExportTable", &cuGetExportTable, 3000),
    entry("cuGetErrorName", &cuGetErrorName, 6000),
    entry("cuGetErrorString", &cuGetErrorString, 6000),
    entry("cuGetProcAddress", &gg_emu_proc_address, 11030),
    entry("cuGetProcAddress", &cuGetProcAddress, 12000),
    entry("cuGraphDestroy", &cuGraphDestroy, 10000),
    entry("cuGraphExecDestroy", &cuGraphExecDestroy, 10000),
    entry("cuGraphGetNodes", &cuGraphGetNodes, 10000),
    entry("cuGraphInstantiateWithFlags", &cuGraphInstantiateWithFlags, 11040),
    entry("cuGraphLaunch", &cuGraphLaunch, 10000),
    entry("cuGraphUpload", &cuGraphUpload, 11010),
    entry("cuInit", &cuInit, 2000),
    entry("cuKernelGetAttribute", &cuKernelGetAttribute, 12000),
    entry("cuKernelGetFunction", &cuKernelGetFunction, 12000),
    entry("cuKernelGetLibrary", &cuKernelGetLibrary, 12050),
    entry("cuKernelGetName", &cuKernelGetName, 12030),
    entry("cuKernelGetParamInfo", &cuKernelGetParamInfo, 12040),
    entry("cuKernelSetAttribute", &cuKernelSetAttribute, 12000),
    entry("cuKernelSetCacheConfig", &cuKernelSetCacheConfig, 12000),
    entry("cuLaunchCooperativeKernel", &cuLaunchCooperativeKernel, 9000),
    entry("cuLaunchHostFunc", &cuLaunchHostFunc, 10000),
    entry("cuLaunchKernel", &cuLaunchKernel, 4000),
    entry("cuLaunchKernelEx", &cuLaunchKernelEx, 11060),
    entry("cuLibraryEnumerateKernels", &cuLibraryEnumerateKernels, 12040),
    entry("cuLibraryGetGlobal", &cuLibraryGetGlobal, 12000),
    entry("cuLibraryGetKernel", &cuLibraryGetKernel, 12000),
    entry("cuLibraryGetKernelCount", &cuLibraryGetKernelCount, 12040),
    entry("cuLibraryGetModule", &cuLibraryGetModule, 12000),
    entry("cuLibraryLoadData", &cuLibraryLoadData, 12000),
    entry("cuLibraryLoadFromFile", &cuLibraryLoadFromFile, 12000),
    entry("cuLibraryUnload", &cuLibraryUnload, 12000),
    entry("cuLinkAddData", &cuLinkAddData, 6050),
    entry("cuLinkAddFile", &cuLinkAddFile, 6050),
    entry("cuLinkComplete", &cuLinkComplete, 5050),
    entry("cuLinkCreate", &cuLinkCreate, 6050),
    entry("cuLinkDestroy", &cuLinkDestroy, 5050),
    entry("cuMemAdvise", &cuMemAdvise, 12020),
    entry("cuMemAlloc", &cuMemAlloc, 3020),
    entry("cuMemAllocAsync", &cuMemAllocAsync, 11020),
    entry("cuMemAllocHost", &cuMemAllocHost, 3020),
    entry("cuMemAllocManaged", &cuMemAllocManaged, 6000),
    entry("cuMemAllocPitch", &cuMemAllocPitch, 3020),
    entry("cuMemFree", &cuMemFree, 3020),
    entry("cuMemFreeAsync", &cuMemFreeAsync, 11020),
    entry("cuMemFreeHost", &cuMemFreeHost, 2000),
    entry("cuMemGetAddressRange", &cuMemGetAddressRange, 3020),
    entry("cuMemGetInfo", &cuMemGetInfo, 3020),
    entry("cuMemHostAlloc", &cuMemHostAlloc, 2020),
    entry("cuMemHostGetDevicePointer", &cuMemHostGetDevicePointer, 3020),
    entry("cuMemHostGetFlags", &cuMemHostGetFlags, 2030),
    entry("cuMemHostRegister", &cuMemHostRegister, 4000),
    entry("cuMemHostUnregister", &cuMemHostUnregister, 4000),
    entry("cuMemPrefetchAsync", &cuMemPrefetchAsync, 12020),
    entry("cuMemcpy", &cuMemcpy, 4000),
    entry("cuMemcpy2D", &cuMemcpy2D, 3020),
    entry("cuMemcpy2DAsync", &cuMemcpy2DAsync, 3020),
    entry("cuMemcpy2DUnaligned", &cuMemcpy2DUnaligned, 3020),
    entry("cuMemcpyAsync", &cuMemcpyAsync, 4000),
    entry("cuMemcpyDtoD", &cuMemcpyDtoD, 3020),
    entry("cuMemcpyDtoDAsync", &cuMemcpyDtoDAsync, 3020),
    entry("cuMemcpyDtoH", &cuMemcpyDtoH, 3020),
    entry("cuMemcpyDtoHAsync", &cuMemcpyDtoHAsync, 3020),
    entry("cuMemcpyHtoD", &cuMemcpyHtoD, 3020),
    entry("cuMemcpyHtoDAsync", &cuMemcpyHtoDAsync, 3020),
    entry("cuMemsetD16", &cuMemsetD16, 3020),
    entry("cuMemsetD16Async", &cuMemsetD16Async, 3020),
    entry("cuMemsetD2D16", &cuMemsetD2D16, 3020),
    entry("cuMemsetD2D16Async", &cuMemsetD2D16Async, 3020),
    entry("cuMemsetD2D32", &cuMemsetD2D32, 3020),
    entry("cuMemsetD2D32Async", &cuMemsetD2D32Async, 3020),
    entry("cuMemsetD2D8", &cuMemsetD2D8, 3020),
    entry("cuMemsetD2D8Async", &cuMemsetD2D8Async, 3020),
    entry("cuMemsetD32", &cuMemsetD32, 3020),
    entry("cuMemsetD32Async", &cuMemsetD32Async, 3020),
    entry("cuMemsetD8", &cuMemsetD8, 3020),
    entry("cuMemsetD8Async", &cuMemsetD8Async, 3020),
    entry("cuModuleEnumerateFunctions", &cuModuleEnumerateFunctions, 12040),
    entry("cuModuleGetFunction", &cuModuleGetFunction, 2000),
    entry("cuModuleGetFunctionCount", &cuModuleGetFunctionCount, 12040),
    entry("cuModuleGetGlobal", &cuModuleGetGlobal, 3020),
    entry("cuModuleGetLoadingMode", &cuModuleGetLoadingMode, 11070),
    entry("cuModuleLoad", &cuModuleLoad, 2000),
    entry("cuModuleLoadData", &cuModuleLoadData, 2000),
    entry("cuModuleLoadDataEx", &cuModuleLoadDataEx, 2010),
    entry("cuModuleLoadFatBinary", &cuModuleLoadFatBinary, 2000),
    entry("cuModuleUnload", &cuModuleUnload, 2000),
    entry("cuOccupancyAvailableDynamicSMemPerBlock", &cuOccupancyAvailableDynamicSMemPerBlock, 10020),
    entry("cuOccupancyMaxActiveBlocksPerMultiprocessor", &cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050),
    entry("cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
          &cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000),
    entry("cuOccupancyMaxActiveClusters", &cuOccupancyMaxActiveClusters, 11070),
    entry("cuOccupancyMaxPotentialBlockSize", &cuOccupancyMaxPotentialBlockSize, 6050),
    entry("cuOccupancyMaxPotentialBlockSizeWithFlags", &cuOccupancyMaxPotentialBlockSizeWithFlags, 7000),
    entry("cuOccupancyMaxPotentialClusterSize", &cuOccupancyMaxPotentialClusterSize, 11070),
    entry("cuPointerGetAttribute", &cuPointerGetAttribute, 4000),
    entry("cuPointerGetAttributes", &cuPointerGetAttributes, 7000),
    entry("cuStreamAddCallback", &cuStreamAddCallback, 5000),
    entry("cuStreamBeginCapture", &cuStreamBeginCapture, 10010),
    entry("cuStreamCreate", &cuStreamCreate, 2000),
    entry("cuStreamCreateWithPriority", &cuStreamCreateWithPriority, 5050),
    entry("cuStreamDestroy", &cuStreamDestroy, 4000),
    entry("cuStreamEndCapture", &cuStreamEndCapture, 10000),
    entry("cuStreamGetCtx", &cuStreamGetCtx, 9020),
    entry("cuStreamGetDevice", &cuStreamGetDevice, 12080),
    entry("cuStreamGetFlags", &cuStreamGetFlags, 5050),
    entry("cuStreamGetId", &cuStreamGetId, 12000),
    entry("cuStreamGetPriority", &cuStreamGetPriority, 5050),
    entry("cuStreamIsCapturing", &cuStreamIsCapturing, 10000),
    entry("cuStreamQuery", &cuStreamQuery, 2000),
    entry("cuStreamSynchronize", &cuStreamSynchronize, 2000),
    entry("cuStreamWaitEvent", &cuStreamWaitEvent, 3020),
    entry("cuTensorMapEncodeTiled", &cuTensorMapEncodeTiled, 12000),
    entry("cuTensorMapReplaceAddress", &cuTensorMapReplaceAddress, 12000),
    entry("cuThreadExchangeStreamCaptureMode", &cuThreadExchangeStreamCaptureMode, 10010),
};

// The function that a name means in a version of CUDA. An unknown name is said to be so on stderr.
cudaDriverEntryPointQueryResult find_entry(const char* name, void** function, unsigned version) {
  *function = nullptr;
  bool known = false, old_enough = false;
  for (const Entry& e : kEntries) {
    if (std::strcmp(name, e.name) != 0) continue;
    known = true;
    if (version < e.since) continue;
    old_enough = true;
    *function = e.function;
  }
  if (known && !old_enough) return cudaDriverEntryPointVersionNotSufficent;
  if (*function) return cudaDriverEntryPointSuccess;
  gg::emu::unsupported("the driver's " + std::string(name));
  return cudaDriverEntryPointSymbolNotFound;
}

CUresult find_for_driver(const char* name, void** function, int version,
                         CUdriverProcAddressQueryResult* status) {
  return driver([&](Runtime&) {
    if (!name || !function || version < 0 || version > CUDA_VERSION) return CUDA_ERROR_INVALID_VALUE;
    const cudaDriverEntryPointQueryResult found = find_entry(name, function, unsigned(version));
    if (status) *status = CUdriverProcAddressQueryResult(found);
    return CUDA_SUCCESS;  // the function is null where there is none
  });
}

}  // namespace

extern "C" {

CUresult cuGetProcAddress(const char* name, void** function, int version, cuuint64_t,
                          CUdriverProcAddressQueryResult* status) {
  return find_for_driver(name, function, version, status);
}
CUresult gg_emu_proc_address(const char* name, void** function, int version, cuuint64_t) {
  return find_for_driver(name, function, version, nullptr);
}

// Tables of undocumented functions: there are none. NVIDIA's libraries ask, and do without.
CUresult cuGetExportTable(const void** table, const CUuuid*) {
  if (!table) return CUDA_ERROR_INVALID_VALUE;
  *table = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned version,
                                             unsigned long long, cudaDriverEntryPointQueryResult* status) {
  return api_beside_launches([&](Runtime&) {
    constexpr unsigned kVersion = 13000;
    if (version > kVersion) {
      if (status) *status = cudaDriverEntryPointVersionNotSufficent;
      return cudaErrorInvalidValue;
    }
    if (!name || !function) return cudaErrorInvalidValue;
    const cudaDriverEntryPointQueryResult found = find_entry(name, function, version);
    if (status) *status = found;
    return cudaSuccess;
  });
}

// Deprecated, and declared so where it is: by another name here.
cudaError_t gg_emu_entry_point(const char* name, void** function, unsigned long long flags,
                               cudaDriverEntryPointQueryResult* status) __asm__("cudaGetDriverEntryPoint");
cudaError_t gg_emu_entry_point(const char* name, void** function, unsigned long long flags,
                               cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPointByVersion(name, function, 13000, flags, status);
}

}  // extern "C"
