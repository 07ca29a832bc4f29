// SPDX-License-Identifier: MIT
//
// The few functions of the driver that programs look up through the runtime. CUDA Runtime API, "Driver Entry
// Point Access".

#include <cuda.h>

#include <cstring>

#include "common/emu/runtime/encode_map.h"
#include "common/emu/runtime/errors.h"
#include "common/emu/runtime/runtime.h"

using gg::emu::api_beside_launches;
using gg::emu::Runtime;

namespace {

// The driver's errors have the runtime's numbers, and other names.
struct Name {
  CUresult code;
  const char* name;
};
constexpr Name kNames[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
    {CUDA_ERROR_INVALID_PTX, "CUDA_ERROR_INVALID_PTX"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED"},
    {CUDA_ERROR_INVALID_CLUSTER_SIZE, "CUDA_ERROR_INVALID_CLUSTER_SIZE"},
    {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN"},
};

struct Entry {
  const char* name;
  void* function;
  unsigned since;
};
template <class F>
constexpr Entry entry(const char* name, F* function, unsigned since) {
  return {name, reinterpret_cast<void*>(function), since};
}

cudaError_t find_entry(const char* name, void** function, unsigned version,
                       cudaDriverEntryPointQueryResult* status) {
  static const Entry entries[] = {
      entry("cuInit", &cuInit, 2000),
      entry("cuDriverGetVersion", &cuDriverGetVersion, 2020),
      entry("cuDeviceGet", &cuDeviceGet, 2000),
      entry("cuDeviceGetCount", &cuDeviceGetCount, 2000),
      entry("cuDeviceGetAttribute", &cuDeviceGetAttribute, 2000),
      entry("cuGetErrorName", &cuGetErrorName, 6000),
      entry("cuGetErrorString", &cuGetErrorString, 6000),
      entry("cuMemsetD32Async", &cuMemsetD32Async, 3020),
      entry("cuTensorMapEncodeTiled", &cuTensorMapEncodeTiled, 12000),
      entry("cuTensorMapReplaceAddress", &cuTensorMapReplaceAddress, 12000),
  };
  if (!name || !function) return cudaErrorInvalidValue;
  *function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  for (const Entry& e : entries) {
    if (std::strcmp(name, e.name) != 0) continue;
    found = version < e.since ? cudaDriverEntryPointVersionNotSufficent : cudaDriverEntryPointSuccess;
    if (found == cudaDriverEntryPointSuccess) *function = e.function;
  }
  if (status) *status = found;
  if (found == cudaDriverEntryPointSymbolNotFound) gg::emu::unsupported("the driver's " + std::string(name));
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned version,
                                             unsigned long long, cudaDriverEntryPointQueryResult* status) {
  return api_beside_launches([&](Runtime&) {
    constexpr unsigned kVersion = 13000;
    if (version <= kVersion) return find_entry(name, function, version, status);
    if (status) *status = cudaDriverEntryPointVersionNotSufficent;
    return cudaErrorInvalidValue;
  });
}

// Deprecated, and declared so where it is: by another name here.
cudaError_t gg_emu_entry_point(const char* name, void** function, unsigned long long flags,
                               cudaDriverEntryPointQueryResult* status) __asm__("cudaGetDriverEntryPoint");
cudaError_t gg_emu_entry_point(const char* name, void** function, unsigned long long flags,
                               cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPointByVersion(name, function, 13000, flags, status);
}

CUresult cuInit(unsigned flags) { return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int* version) { return CUresult(cudaDriverGetVersion(version)); }
CUresult cuDeviceGetCount(int* count) { return CUresult(cudaGetDeviceCount(count)); }
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  *device = ordinal;
  return ordinal == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return CUresult(cudaDeviceGetAttribute(value, cudaDeviceAttr(attribute), device));
}
CUresult cuGetErrorName(CUresult error, const char** name) {
  *name = nullptr;
  for (const Name& each : kNames) {
    if (each.code == error) *name = each.name;
  }
  return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = gg::emu::error_text(error);
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                const cuuint64_t* dims, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                CUtensorMapFloatOOBfill fill) {
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  api_beside_launches([&](Runtime& rt) {
    gg::emu::TensorMap made;
    std::string why = "the map is null";
    if (map) {
      result = gg::emu::encode_tiled(
          {uint32_t(type), rank, address, dims, strides, box, element_strides, uint32_t(interleave),
           uint32_t(swizzle), uint32_t(promotion), uint32_t(fill)},
          rt.device().capability(), &made, &why);
    }
    if (result == CUDA_SUCCESS) {
      gg::emu::encode_tensor_map(made, reinterpret_cast<uint8_t*>(map));
    } else {
      gg::emu::refuse(cudaErrorInvalidValue, "cuTensorMapEncodeTiled refuses: " + why);
    }
    return cudaSuccess;  // the driver's errors are not the runtime's last one
  });
  return result;
}

CUresult cuTensorMapReplaceAddress(CUtensorMap* map, void* address) {
  if (!map || reinterpret_cast<uint64_t>(address) % 16) return CUDA_ERROR_INVALID_VALUE;
  gg::emu::TensorMap decoded = gg::emu::decode_tensor_map(reinterpret_cast<uint8_t*>(map));
  if (decoded.unknown) return CUDA_ERROR_INVALID_VALUE;
  decoded.address = reinterpret_cast<uint64_t>(address);
  gg::emu::encode_tensor_map(decoded, reinterpret_cast<uint8_t*>(map));
  return CUDA_SUCCESS;
}

}  // extern "C"
