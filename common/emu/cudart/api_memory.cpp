// SPDX-License-Identifier: MIT
//
// Memory, copies and symbols. CUDA Runtime API, "Memory Management", "Stream Ordered Memory
// Allocator", "Unified Addressing". Device memory cannot be touched by the host; pinned and managed
// memory lie at one address for both.

#include <climits>

#include "common/emu/cudart/copies.h"

using gg::emu::address_of;
using gg::emu::api;
using gg::emu::copy;
using gg::emu::fill;
using gg::emu::is_device;
using gg::emu::Runtime;

namespace {

constexpr size_t kPitch = 512;

// Copies between one symbol and memory: the whole range must be inside the symbol.
cudaError_t copy_symbol(Runtime& rt, const void* symbol, size_t offset, const void* memory, size_t bytes,
                        bool to_symbol, cudaMemcpyKind kind, cudaStream_t stream) {
  uint64_t address = 0;
  size_t size = 0;
  if (const cudaError_t error = rt.programs.variable(rt, symbol, &address, &size)) return error;
  if (kind == cudaMemcpyHostToHost || kind == (to_symbol ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice)) {
    return gg::emu::refuse(cudaErrorInvalidMemcpyDirection,
                           "a copy of " + std::to_string(bytes) + " bytes " + (to_symbol ? "to" : "from") +
                               " a symbol, which is device memory, by " + gg::emu::kind_name(kind));
  }
  if (offset > size || bytes > size - offset) {
    return gg::emu::refuse(cudaErrorInvalidValue, std::to_string(bytes) + " bytes from byte " +
                                                      std::to_string(offset) +
                                                      " are not inside a symbol of " + std::to_string(size));
  }
  void* const at = reinterpret_cast<void*>(address + offset);
  void* const other = const_cast<void*>(memory);
  return copy(rt, {to_symbol ? at : other, bytes, to_symbol ? other : at, bytes, bytes, 1, kind}, stream);
}

cudaError_t allocate_visible(Runtime& rt, void** pointer, size_t bytes, cudaMemoryType type, unsigned flags) {
  if (!pointer) return cudaErrorInvalidValue;
  if (const cudaError_t error = rt.streams.may_call()) return error;
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  *pointer = reinterpret_cast<void*>(rt.allocate_visible(bytes, type, flags));
  return *pointer ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t release(Runtime& rt, void* pointer, bool pinned) {
  if (!pointer || rt.is_of_graph(address_of(pointer))) return cudaSuccess;
  const gg::emu::HostVisible* visible = rt.visible(address_of(pointer));
  if (pinned != (visible && visible->type == cudaMemoryTypeHost)) return cudaErrorInvalidValue;
  return rt.release(address_of(pointer)) ? cudaSuccess : cudaErrorInvalidValue;
}

// Memory of a graph: allocated with the allocation's capture, freed with the last graph of it.
cudaError_t allocate_captured(Runtime& rt, void** pointer, size_t bytes, cudaStream_t stream) {
  const std::shared_ptr<void> owner = rt.allocate_for_graph(bytes);
  if (!owner) return cudaErrorMemoryAllocation;
  *pointer = owner.get();
  rt.streams.stream(stream)->capture->allocations.insert(*pointer);
  return rt.streams.submit(stream, cudaGraphNodeTypeMemAlloc, [&rt, owner] {
    rt.memory.forget(address_of(owner.get()));
    return cudaSuccess;
  });
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  return api([&](Runtime& rt) {
    if (!pointer) return cudaErrorInvalidValue;
    if (const cudaError_t error = rt.streams.may_call()) return error;
    *pointer = nullptr;
    if (bytes == 0) return cudaSuccess;
    *pointer = reinterpret_cast<void*>(rt.allocate(bytes));
    return *pointer ? cudaSuccess : cudaErrorMemoryAllocation;
  });
}

cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  if (!pitch || width > SIZE_MAX / 2 || (height && (width + kPitch) > SIZE_MAX / height)) {
    return api([](Runtime&) { return cudaErrorInvalidValue; });
  }
  *pitch = (width + kPitch - 1) / kPitch * kPitch;
  return cudaMalloc(pointer, *pitch * height);
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  return api([&](Runtime& rt) {
    return allocate_visible(rt, pointer, bytes, cudaMemoryTypeHost, flags | cudaHostAllocMapped);
  });
}
cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  return cudaHostAlloc(pointer, bytes, cudaHostAllocDefault);
}

// Host and kernels see the same bytes at once: they never run at the same time.
cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned flags) {
  return api([&](Runtime& rt) {
    if (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost) return cudaErrorInvalidValue;
    return allocate_visible(rt, pointer, bytes, cudaMemoryTypeManaged, flags);
  });
}

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
  return api([&](Runtime& rt) {
    CUstream_st* const target = rt.streams.stream(stream);
    if (!pointer) return cudaErrorInvalidValue;
    if (!target) return cudaErrorInvalidResourceHandle;
    *pointer = nullptr;
    if (target->capture) return bytes ? allocate_captured(rt, pointer, bytes, stream) : cudaErrorInvalidValue;
    if (const cudaError_t error = rt.streams.may_call()) return error;
    if (bytes == 0) return cudaSuccess;
    *pointer = reinterpret_cast<void*>(rt.allocate(bytes));
    return *pointer ? cudaSuccess : cudaErrorMemoryAllocation;
  });
}

cudaError_t cudaFree(void* pointer) {
  return api([&](Runtime& rt) {
    if (const cudaError_t error = rt.streams.may_call()) return error;
    return release(rt, pointer, false);
  });
}
cudaError_t cudaFreeHost(void* pointer) {
  return api([&](Runtime& rt) {
    if (const cudaError_t error = rt.streams.may_call()) return error;
    return release(rt, pointer, true);
  });
}
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  return api([&](Runtime& rt) {
    CUstream_st* const target = rt.streams.stream(stream);
    if (!target) return cudaErrorInvalidResourceHandle;
    if (!pointer) return cudaSuccess;
    // Only what the same capture allocated, and that lives as long as its graph.
    if (target->capture) {
      if (!target->capture->allocations.erase(pointer)) return cudaErrorInvalidValue;
      return rt.streams.submit(stream, cudaGraphNodeTypeMemFree, [] { return cudaSuccess; });
    }
    return release(rt, pointer, false);
  });
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return api([&](Runtime& rt) {
    if (!free || !total) return cudaErrorInvalidValue;
    *free = rt.memory_free();
    *total = rt.memory_total();
    return cudaSuccess;
  });
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return api([&](Runtime& rt) { return copy(rt, {to, bytes, from, bytes, bytes, 1, kind}, nullptr); });
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return api([&](Runtime& rt) { return copy(rt, {to, bytes, from, bytes, bytes, 1, kind}, stream); });
}
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                         size_t height, cudaMemcpyKind kind) {
  return api([&](Runtime& rt) {
    return copy(rt, {to, to_pitch, from, from_pitch, width, height, kind}, nullptr);
  });
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return api([&](Runtime& rt) {
    return copy(rt, {to, to_pitch, from, from_pitch, width, height, kind}, stream);
  });
}

cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  return api([&](Runtime& rt) { return fill(rt, {to, bytes, unsigned(value), bytes}, nullptr); });
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return api([&](Runtime& rt) { return fill(rt, {to, bytes, unsigned(value), bytes}, stream); });
}
cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  return api([&](Runtime& rt) { return fill(rt, {to, pitch, unsigned(value), width, height}, nullptr); });
}
cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  return api([&](Runtime& rt) { return fill(rt, {to, pitch, unsigned(value), width, height}, stream); });
}

cudaError_t cudaGetSymbolAddress(void** pointer, const void* symbol) {
  return api([&](Runtime& rt) {
    uint64_t address = 0;
    size_t bytes = 0;
    if (!pointer) return cudaErrorInvalidValue;
    const cudaError_t error = rt.programs.variable(rt, symbol, &address, &bytes);
    if (error == cudaSuccess) *pointer = reinterpret_cast<void*>(address);
    return error;
  });
}
cudaError_t cudaGetSymbolSize(size_t* bytes, const void* symbol) {
  return api([&](Runtime& rt) {
    uint64_t address = 0;
    return bytes ? rt.programs.variable(rt, symbol, &address, bytes) : cudaErrorInvalidValue;
  });
}
cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t bytes, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream) {
  return api([&](Runtime& rt) { return copy_symbol(rt, symbol, offset, from, bytes, true, kind, stream); });
}
cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t bytes, size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream) {
  return api([&](Runtime& rt) { return copy_symbol(rt, symbol, offset, to, bytes, false, kind, stream); });
}
cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset,
                               cudaMemcpyKind kind) {
  return cudaMemcpyToSymbolAsync(symbol, from, bytes, offset, kind, nullptr);
}
cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset,
                                 cudaMemcpyKind kind) {
  return cudaMemcpyFromSymbolAsync(to, symbol, bytes, offset, kind, nullptr);
}

// Advice about where managed memory should be: it is in one place.
cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, cudaMemLocation, unsigned, cudaStream_t) {
  return api([&](Runtime& rt) {
    return rt.visible(address_of(pointer)) && rt.memory.host(address_of(pointer), bytes)
               ? cudaSuccess
               : cudaErrorInvalidValue;
  });
}
cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, cudaMemoryAdvise, cudaMemLocation) {
  return api([&](Runtime& rt) {
    return rt.visible(address_of(pointer)) && rt.memory.host(address_of(pointer), bytes)
               ? cudaSuccess
               : cudaErrorInvalidValue;
  });
}

}  // extern "C"
