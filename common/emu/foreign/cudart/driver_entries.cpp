// SPDX-License-Identifier: MIT
//
// The driver's functions by name, for programs that look them up. CUDA Driver API,
// "Driver Entry Point Access".

#include "common/emu/cudart/entry_points.h"
#include "common/emu/cudart/hooks.h"
#include "common/emu/foreign/cudart/context.h"

using gg::emu::driver;
using gg::emu::driver_entry;
using gg::emu::DriverEntry;
using gg::emu::Runtime;

extern "C" {

// Two that no header declares, which programs that were built with an older one call, and one that
// is deprecated where it is declared.
CUresult cuCtxCreate_v2(CUcontext*, unsigned, CUdevice);
CUresult gg_emu_proc_address(const char*, void**, int, cuuint64_t) __asm__("cuGetProcAddress");
CUresult gg_emu_capability(int*, int*, CUdevice) __asm__("cuDeviceComputeCapability");

}  // extern "C"

namespace {

// By name; of one name the oldest first.
const DriverEntry kEntries[] = {
    driver_entry("cuCtxCreate", &cuCtxCreate_v2, 3020),
    {"cuCtxCreate", nullptr, 11040},
    driver_entry("cuCtxCreate", &cuCtxCreate_v4, 12050),
    driver_entry("cuCtxDestroy", &cuCtxDestroy, 4000),
    driver_entry("cuCtxGetApiVersion", &cuCtxGetApiVersion, 3020),
    driver_entry("cuCtxGetCacheConfig", &cuCtxGetCacheConfig, 3020),
    driver_entry("cuCtxGetCurrent", &cuCtxGetCurrent, 4000),
    driver_entry("cuCtxGetDevice", &cuCtxGetDevice, 2000),
    driver_entry("cuCtxGetDevice", &cuCtxGetDevice_v2, 13000),
    driver_entry("cuCtxGetFlags", &cuCtxGetFlags, 7000),
    driver_entry("cuCtxGetId", &cuCtxGetId, 12000),
    driver_entry("cuCtxGetLimit", &cuCtxGetLimit, 3010),
    driver_entry("cuCtxGetStreamPriorityRange", &cuCtxGetStreamPriorityRange, 5050),
    driver_entry("cuCtxPopCurrent", &cuCtxPopCurrent, 4000),
    driver_entry("cuCtxPushCurrent", &cuCtxPushCurrent, 4000),
    driver_entry("cuCtxResetPersistingL2Cache", &cuCtxResetPersistingL2Cache, 11000),
    driver_entry("cuCtxSetCacheConfig", &cuCtxSetCacheConfig, 3020),
    driver_entry("cuCtxSetCurrent", &cuCtxSetCurrent, 4000),
    driver_entry("cuCtxSetLimit", &cuCtxSetLimit, 3010),
    driver_entry("cuCtxSynchronize", &cuCtxSynchronize, 2000),
    driver_entry("cuCtxSynchronize", &cuCtxSynchronize_v2, 13000),
    driver_entry("cuDeviceCanAccessPeer", &cuDeviceCanAccessPeer, 4000),
    driver_entry("cuDeviceComputeCapability", &gg_emu_capability, 2000),
    driver_entry("cuDeviceGet", &cuDeviceGet, 2000),
    driver_entry("cuDeviceGetAttribute", &cuDeviceGetAttribute, 2000),
    driver_entry("cuDeviceGetCount", &cuDeviceGetCount, 2000),
    driver_entry("cuDeviceGetDefaultMemPool", &cuDeviceGetDefaultMemPool, 11020),
    driver_entry("cuDeviceGetName", &cuDeviceGetName, 2000),
    driver_entry("cuDeviceGetPCIBusId", &cuDeviceGetPCIBusId, 4010),
    driver_entry("cuDeviceGetUuid", &cuDeviceGetUuid, 9020),
    driver_entry("cuDevicePrimaryCtxGetState", &cuDevicePrimaryCtxGetState, 7000),
    driver_entry("cuDevicePrimaryCtxRelease", &cuDevicePrimaryCtxRelease, 7000),
    driver_entry("cuDevicePrimaryCtxReset", &cuDevicePrimaryCtxReset, 7000),
    driver_entry("cuDevicePrimaryCtxRetain", &cuDevicePrimaryCtxRetain, 7000),
    driver_entry("cuDevicePrimaryCtxSetFlags", &cuDevicePrimaryCtxSetFlags, 7000),
    driver_entry("cuDeviceTotalMem", &cuDeviceTotalMem, 3020),
    driver_entry("cuDriverGetVersion", &cuDriverGetVersion, 2020),
    driver_entry("cuEventCreate", &cuEventCreate, 2000),
    driver_entry("cuEventDestroy", &cuEventDestroy, 4000),
    driver_entry("cuEventElapsedTime", &cuEventElapsedTime, 2000),
    driver_entry("cuEventQuery", &cuEventQuery, 2000),
    driver_entry("cuEventRecord", &cuEventRecord, 2000),
    driver_entry("cuEventRecordWithFlags", &cuEventRecordWithFlags, 11010),
    driver_entry("cuEventSynchronize", &cuEventSynchronize, 2000),
    driver_entry("cuFuncGetAttribute", &cuFuncGetAttribute, 2020),
    driver_entry("cuFuncGetModule", &cuFuncGetModule, 11000),
    driver_entry("cuFuncGetName", &cuFuncGetName, 12030),
    driver_entry("cuFuncGetParamInfo", &cuFuncGetParamInfo, 12040),
    driver_entry("cuFuncIsLoaded", &cuFuncIsLoaded, 12040),
    driver_entry("cuFuncLoad", &cuFuncLoad, 12040),
    driver_entry("cuFuncSetAttribute", &cuFuncSetAttribute, 9000),
    driver_entry("cuFuncSetCacheConfig", &cuFuncSetCacheConfig, 3000),
    driver_entry("cuGetExportTable", &cuGetExportTable, 3000),
    driver_entry("cuGetErrorName", &cuGetErrorName, 6000),
    driver_entry("cuGetErrorString", &cuGetErrorString, 6000),
    driver_entry("cuGetProcAddress", &gg_emu_proc_address, 11030),
    driver_entry("cuGetProcAddress", &cuGetProcAddress, 12000),
    driver_entry("cuGraphDestroy", &cuGraphDestroy, 10000),
    driver_entry("cuGraphExecDestroy", &cuGraphExecDestroy, 10000),
    driver_entry("cuGraphGetNodes", &cuGraphGetNodes, 10000),
    driver_entry("cuGraphInstantiateWithFlags", &cuGraphInstantiateWithFlags, 11040),
    driver_entry("cuGraphLaunch", &cuGraphLaunch, 10000),
    driver_entry("cuGraphUpload", &cuGraphUpload, 11010),
    driver_entry("cuInit", &cuInit, 2000),
    driver_entry("cuKernelGetAttribute", &cuKernelGetAttribute, 12000),
    driver_entry("cuKernelGetFunction", &cuKernelGetFunction, 12000),
    driver_entry("cuKernelGetLibrary", &cuKernelGetLibrary, 12050),
    driver_entry("cuKernelGetName", &cuKernelGetName, 12030),
    driver_entry("cuKernelGetParamInfo", &cuKernelGetParamInfo, 12040),
    driver_entry("cuKernelSetAttribute", &cuKernelSetAttribute, 12000),
    driver_entry("cuKernelSetCacheConfig", &cuKernelSetCacheConfig, 12000),
    driver_entry("cuLaunchCooperativeKernel", &cuLaunchCooperativeKernel, 9000),
    driver_entry("cuLaunchHostFunc", &cuLaunchHostFunc, 10000),
    driver_entry("cuLaunchKernel", &cuLaunchKernel, 4000),
    driver_entry("cuLaunchKernelEx", &cuLaunchKernelEx, 11060),
    driver_entry("cuLibraryEnumerateKernels", &cuLibraryEnumerateKernels, 12040),
    driver_entry("cuLibraryGetGlobal", &cuLibraryGetGlobal, 12000),
    driver_entry("cuLibraryGetKernel", &cuLibraryGetKernel, 12000),
    driver_entry("cuLibraryGetKernelCount", &cuLibraryGetKernelCount, 12040),
    driver_entry("cuLibraryGetModule", &cuLibraryGetModule, 12000),
    driver_entry("cuLibraryLoadData", &cuLibraryLoadData, 12000),
    driver_entry("cuLibraryLoadFromFile", &cuLibraryLoadFromFile, 12000),
    driver_entry("cuLibraryUnload", &cuLibraryUnload, 12000),
    driver_entry("cuLinkAddData", &cuLinkAddData, 6050),
    driver_entry("cuLinkAddFile", &cuLinkAddFile, 6050),
    driver_entry("cuLinkComplete", &cuLinkComplete, 5050),
    driver_entry("cuLinkCreate", &cuLinkCreate, 6050),
    driver_entry("cuLinkDestroy", &cuLinkDestroy, 5050),
    driver_entry("cuMemAdvise", &cuMemAdvise, 12020),
    driver_entry("cuMemAlloc", &cuMemAlloc, 3020),
    driver_entry("cuMemAllocAsync", &cuMemAllocAsync, 11020),
    driver_entry("cuMemAllocHost", &cuMemAllocHost, 3020),
    driver_entry("cuMemAllocManaged", &cuMemAllocManaged, 6000),
    driver_entry("cuMemAllocPitch", &cuMemAllocPitch, 3020),
    driver_entry("cuMemFree", &cuMemFree, 3020),
    driver_entry("cuMemFreeAsync", &cuMemFreeAsync, 11020),
    driver_entry("cuMemFreeHost", &cuMemFreeHost, 2000),
    driver_entry("cuMemGetAddressRange", &cuMemGetAddressRange, 3020),
    driver_entry("cuMemGetInfo", &cuMemGetInfo, 3020),
    driver_entry("cuMemHostAlloc", &cuMemHostAlloc, 2020),
    driver_entry("cuMemHostGetDevicePointer", &cuMemHostGetDevicePointer, 3020),
    driver_entry("cuMemHostGetFlags", &cuMemHostGetFlags, 2030),
    driver_entry("cuMemHostRegister", &cuMemHostRegister, 4000),
    driver_entry("cuMemHostUnregister", &cuMemHostUnregister, 4000),
    driver_entry("cuMemPrefetchAsync", &cuMemPrefetchAsync, 12020),
    driver_entry("cuMemcpy", &cuMemcpy, 4000),
    driver_entry("cuMemcpy2D", &cuMemcpy2D, 3020),
    driver_entry("cuMemcpy2DAsync", &cuMemcpy2DAsync, 3020),
    driver_entry("cuMemcpy2DUnaligned", &cuMemcpy2DUnaligned, 3020),
    driver_entry("cuMemcpyAsync", &cuMemcpyAsync, 4000),
    driver_entry("cuMemcpyDtoD", &cuMemcpyDtoD, 3020),
    driver_entry("cuMemcpyDtoDAsync", &cuMemcpyDtoDAsync, 3020),
    driver_entry("cuMemcpyDtoH", &cuMemcpyDtoH, 3020),
    driver_entry("cuMemcpyDtoHAsync", &cuMemcpyDtoHAsync, 3020),
    driver_entry("cuMemcpyHtoD", &cuMemcpyHtoD, 3020),
    driver_entry("cuMemcpyHtoDAsync", &cuMemcpyHtoDAsync, 3020),
    driver_entry("cuMemsetD16", &cuMemsetD16, 3020),
    driver_entry("cuMemsetD16Async", &cuMemsetD16Async, 3020),
    driver_entry("cuMemsetD2D16", &cuMemsetD2D16, 3020),
    driver_entry("cuMemsetD2D16Async", &cuMemsetD2D16Async, 3020),
    driver_entry("cuMemsetD2D32", &cuMemsetD2D32, 3020),
    driver_entry("cuMemsetD2D32Async", &cuMemsetD2D32Async, 3020),
    driver_entry("cuMemsetD2D8", &cuMemsetD2D8, 3020),
    driver_entry("cuMemsetD2D8Async", &cuMemsetD2D8Async, 3020),
    driver_entry("cuMemsetD32", &cuMemsetD32, 3020),
    driver_entry("cuMemsetD32Async", &cuMemsetD32Async, 3020),
    driver_entry("cuMemsetD8", &cuMemsetD8, 3020),
    driver_entry("cuMemsetD8Async", &cuMemsetD8Async, 3020),
    driver_entry("cuModuleEnumerateFunctions", &cuModuleEnumerateFunctions, 12040),
    driver_entry("cuModuleGetFunction", &cuModuleGetFunction, 2000),
    driver_entry("cuModuleGetFunctionCount", &cuModuleGetFunctionCount, 12040),
    driver_entry("cuModuleGetGlobal", &cuModuleGetGlobal, 3020),
    driver_entry("cuModuleGetLoadingMode", &cuModuleGetLoadingMode, 11070),
    driver_entry("cuModuleLoad", &cuModuleLoad, 2000),
    driver_entry("cuModuleLoadData", &cuModuleLoadData, 2000),
    driver_entry("cuModuleLoadDataEx", &cuModuleLoadDataEx, 2010),
    driver_entry("cuModuleLoadFatBinary", &cuModuleLoadFatBinary, 2000),
    driver_entry("cuModuleUnload", &cuModuleUnload, 2000),
    driver_entry("cuOccupancyAvailableDynamicSMemPerBlock", &cuOccupancyAvailableDynamicSMemPerBlock, 10020),
    driver_entry("cuOccupancyMaxActiveBlocksPerMultiprocessor", &cuOccupancyMaxActiveBlocksPerMultiprocessor,
                 6050),
    driver_entry("cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
                 &cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000),
    driver_entry("cuOccupancyMaxActiveClusters", &cuOccupancyMaxActiveClusters, 11070),
    driver_entry("cuOccupancyMaxPotentialBlockSize", &cuOccupancyMaxPotentialBlockSize, 6050),
    driver_entry("cuOccupancyMaxPotentialBlockSizeWithFlags", &cuOccupancyMaxPotentialBlockSizeWithFlags,
                 7000),
    driver_entry("cuOccupancyMaxPotentialClusterSize", &cuOccupancyMaxPotentialClusterSize, 11070),
    driver_entry("cuPointerGetAttribute", &cuPointerGetAttribute, 4000),
    driver_entry("cuPointerGetAttributes", &cuPointerGetAttributes, 7000),
    driver_entry("cuStreamAddCallback", &cuStreamAddCallback, 5000),
    driver_entry("cuStreamBeginCapture", &cuStreamBeginCapture, 10010),
    driver_entry("cuStreamCreate", &cuStreamCreate, 2000),
    driver_entry("cuStreamCreateWithPriority", &cuStreamCreateWithPriority, 5050),
    driver_entry("cuStreamDestroy", &cuStreamDestroy, 4000),
    driver_entry("cuStreamEndCapture", &cuStreamEndCapture, 10000),
    driver_entry("cuStreamGetCtx", &cuStreamGetCtx, 9020),
    driver_entry("cuStreamGetDevice", &cuStreamGetDevice, 12080),
    driver_entry("cuStreamGetFlags", &cuStreamGetFlags, 5050),
    driver_entry("cuStreamGetId", &cuStreamGetId, 12000),
    driver_entry("cuStreamGetPriority", &cuStreamGetPriority, 5050),
    driver_entry("cuStreamIsCapturing", &cuStreamIsCapturing, 10000),
    driver_entry("cuStreamQuery", &cuStreamQuery, 2000),
    driver_entry("cuStreamSynchronize", &cuStreamSynchronize, 2000),
    driver_entry("cuStreamWaitEvent", &cuStreamWaitEvent, 3020),
    driver_entry("cuThreadExchangeStreamCaptureMode", &cuThreadExchangeStreamCaptureMode, 10010),
};

CUresult find_for_driver(const char* name, void** function, int version,
                         CUdriverProcAddressQueryResult* status) {
  return driver([&](Runtime&) {
    if (!name || !function || version < 0 || version > CUDA_VERSION) return CUDA_ERROR_INVALID_VALUE;
    const cudaDriverEntryPointQueryResult found =
        gg::emu::find_driver_entry(name, function, unsigned(version));
    if (status) *status = CUdriverProcAddressQueryResult(found);
    return CUDA_SUCCESS;  // the function is null where there is none
  });
}

}  // namespace

std::span<const DriverEntry> gg::emu::foreign_driver_entries() { return kEntries; }

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

}  // extern "C"
