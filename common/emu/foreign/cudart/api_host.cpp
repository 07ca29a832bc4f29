// SPDX-License-Identifier: MIT
//
// Memory of the host as kernels see it, and what an address is. CUDA Runtime API, "Memory
// Management", "Unified Addressing".

#include "common/emu/cudart/copies.h"
#include "common/emu/foreign/cudart/registered.h"

using gg::emu::address_of;
using gg::emu::api;
using gg::emu::is_device;
using gg::emu::Runtime;

extern "C" {

cudaError_t cudaHostRegister(void* host, size_t bytes, unsigned flags) {
  return api([&](Runtime& rt) {
    constexpr unsigned kKnown = cudaHostRegisterPortable | cudaHostRegisterMapped | cudaHostRegisterReadOnly;
    if (flags & cudaHostRegisterIoMemory) return gg::emu::unsupported("memory of another device, registered");
    if (!host || !bytes || flags & ~kKnown) return cudaErrorInvalidValue;
    if (const cudaError_t error = rt.streams.may_call()) return error;
    if (is_device(rt, host))
      return rt.visible(address_of(host)) ? cudaErrorHostMemoryAlreadyRegistered : cudaErrorInvalidValue;
    return gg::emu::registered_memory().add(host, bytes, flags | cudaHostRegisterMapped);
  });
}
cudaError_t cudaHostUnregister(void* host) {
  return api([&](Runtime& rt) {
    if (!host) return cudaErrorInvalidValue;
    if (const cudaError_t error = rt.streams.may_call()) return error;
    return gg::emu::registered_memory().remove(rt.memory, host);
  });
}
cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned flags) {
  return api([&](Runtime& rt) {
    uint64_t address = address_of(host);
    if (!device || !host || flags) return cudaErrorInvalidValue;
    if (!rt.visible(address)) {
      const cudaError_t error = gg::emu::registered_memory().device_address(rt.memory, host, &address);
      if (error != cudaSuccess) return error;
    }
    *device = reinterpret_cast<void*>(address);
    return cudaSuccess;
  });
}
cudaError_t cudaHostGetFlags(unsigned* flags, void* host) {
  return api([&](Runtime& rt) {
    uint64_t begin = 0;
    const gg::emu::HostVisible* const visible = rt.visible(address_of(host));
    const gg::emu::Registered* const registered = gg::emu::registered_memory().find(host, &begin);
    if (!flags || (!registered && (!visible || visible->type != cudaMemoryTypeHost)))
      return cudaErrorInvalidValue;
    *flags = registered ? registered->flags : visible->flags;
    return cudaSuccess;
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  return api([&](Runtime& rt) {
    uint64_t begin = 0, address = 0;
    if (!attributes) return cudaErrorInvalidValue;
    *attributes = {};
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->device = cudaInvalidDeviceId;
    attributes->hostPointer = const_cast<void*>(pointer);
    if (gg::emu::registered_memory().find(pointer, &begin)) {
      attributes->type = cudaMemoryTypeHost;
      attributes->device = 0;
      if (gg::emu::registered_memory().device_address(rt.memory, pointer, &address) == cudaSuccess)
        attributes->devicePointer = reinterpret_cast<void*>(address);
      return cudaSuccess;
    }
    if (!is_device(rt, pointer) || !rt.memory.host(address_of(pointer), 1)) return cudaSuccess;
    const gg::emu::HostVisible* visible = rt.visible(address_of(pointer));
    attributes->type = visible ? visible->type : cudaMemoryTypeDevice;
    attributes->device = 0;
    attributes->devicePointer = const_cast<void*>(pointer);
    if (!visible) attributes->hostPointer = nullptr;
    return cudaSuccess;
  });
}

}  // extern "C"
