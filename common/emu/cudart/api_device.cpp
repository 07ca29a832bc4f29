// SPDX-License-Identifier: MIT
//
// The device, versions and errors. CUDA Runtime API, "Device Management", "Error Handling",
// "Version Management". There is one device, number 0.

#include <cstdio>
#include <cstring>
#include <map>

#include "common/emu/cudart/errors.h"
#include "common/emu/cudart/runtime.h"

using gg::emu::api;
using gg::emu::api_beside_launches;
using gg::emu::Runtime;

namespace {

constexpr int kVersion = 13000;
constexpr char kBus[] = "0000:00:00.0";

// Limits that programs set before they print much, recurse or allocate. The heap's is kept to, and
// nothing here runs out of the others.
std::map<int, size_t>& limits() {
  static auto* values = new std::map<int, size_t>{{cudaLimitStackSize, 1024},
                                                  {cudaLimitPrintfFifoSize, 7 << 20},
                                                  {cudaLimitMallocHeapSize, 8 << 20},
                                                  {cudaLimitMaxL2FetchGranularity, 64},
                                                  {cudaLimitPersistingL2CacheSize, 0}};
  return *values;
}

template <class Value>
cudaError_t give(Value* into, Value value) {
  return api_beside_launches([&](Runtime&) {
    if (!into) return cudaErrorInvalidValue;
    *into = value;
    return cudaSuccess;
  });
}

cudaError_t ask_device(int device) {
  return api_beside_launches([&](Runtime&) { return device == 0 ? cudaSuccess : cudaErrorInvalidDevice; });
}
cudaError_t taken() {
  return api([](Runtime&) { return cudaSuccess; });
}

}  // namespace

extern "C" {

cudaError_t cudaDriverGetVersion(int* version) { return give(version, kVersion); }
cudaError_t cudaRuntimeGetVersion(int* version) { return give(version, kVersion); }
cudaError_t cudaGetDeviceCount(int* count) { return give(count, 1); }
cudaError_t cudaGetDevice(int* device) { return give(device, 0); }
cudaError_t cudaSetDevice(int device) {
  return api_beside_launches([device](Runtime&) {
    if (device != 0) return cudaErrorInvalidDevice;
    gg::emu::want_context();
    return cudaSuccess;
  });
}
cudaError_t cudaInitDevice(int device, unsigned, unsigned) { return cudaSetDevice(device); }
cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp*) { return give(device, 0); }
cudaError_t cudaSetValidDevices(int*, int) { return taken(); }
cudaError_t cudaSetDeviceFlags(unsigned) { return taken(); }  // how to wait: nothing waits
cudaError_t cudaGetDeviceFlags(unsigned* flags) { return give(flags, unsigned(cudaDeviceMapHost)); }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return api_beside_launches([&](Runtime& rt) {
    if (!properties) return cudaErrorInvalidValue;
    if (device != 0) return cudaErrorInvalidDevice;
    *properties = gg::emu::device_properties(rt.device(), rt.memory_total());
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return api_beside_launches([&](Runtime& rt) {
    if (!value) return cudaErrorInvalidValue;
    if (device != 0) return cudaErrorInvalidDevice;
    if (gg::emu::device_attribute(rt.device(), attribute, value)) return cudaSuccess;
    return gg::emu::refuse(cudaErrorInvalidValue, gg::emu::no_such_attribute(attribute));
  });
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
  return api([&](Runtime&) {
    if (!text || size < 1) return cudaErrorInvalidValue;
    if (device != 0) return cudaErrorInvalidDevice;
    std::snprintf(text, size_t(size), "%s", kBus);
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* text) {
  return text && std::strcmp(text, kBus) == 0 ? give(device, 0) : ask_device(-1);
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return device == 0 && peer == 0 ? give(can, 0) : ask_device(-1);
}

cudaError_t cudaDeviceSynchronize() {
  return api([](Runtime& rt) { return rt.streams.may_wait_for_all(); });
}
// Everything that is left goes with the program.
cudaError_t cudaDeviceReset() { return cudaDeviceSynchronize(); }
cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  return api([&](Runtime&) {
    const auto found = limits().find(limit);
    if (!value) return cudaErrorInvalidValue;
    if (found == limits().end()) return cudaErrorUnsupportedLimit;
    *value = found->second;
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  return api([&](Runtime& rt) {
    const auto found = limits().find(limit);
    if (found == limits().end()) return cudaErrorInvalidValue;  // as NVIDIA's runtime 13.0 does
    if (limit == cudaLimitMallocHeapSize) {
      if (rt.memory.heap.is_open()) return cudaErrorInvalidValue;  // kernels use it
      rt.memory.heap.set_limit(value);
    }
    found->second = value;
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) { return give(config, cudaFuncCachePreferNone); }
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return taken(); }
cudaError_t cudaCtxResetPersistingL2Cache() { return taken(); }
cudaError_t cudaProfilerStart() { return taken(); }
cudaError_t cudaProfilerStop() { return taken(); }

cudaError_t cudaGetLastError() {
  const cudaError_t error = gg::emu::last_error();
  gg::emu::last_error() = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError() { return gg::emu::last_error(); }
const char* cudaGetErrorName(cudaError_t error) {
  const char* name = gg::emu::error_name(error);
  return name ? name : "unrecognized error code";
}
const char* cudaGetErrorString(cudaError_t error) {
  const char* text = gg::emu::error_text(error);
  return text ? text : "unrecognized error code";
}

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}

}  // extern "C"
