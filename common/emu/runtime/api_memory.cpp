// SPDX-License-Identifier: MIT
//
// Memory, copies and symbols. CUDA Runtime API, "Memory Management", "Stream Ordered Memory Allocator",
// "Unified Addressing". Device memory cannot be touched by the host; pinned and managed memory lie at one
// address for both.

#include <cuda.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "common/emu/runtime/runtime.h"

using gg::emu::api;
using gg::emu::Runtime;
using gg::emu::Work;

namespace {

constexpr size_t kPitch = 512;

uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }
bool is_device(const Runtime& rt, const void* pointer) { return rt.memory.reserved(address_of(pointer)); }
bool is_host(const Runtime& rt, const void* pointer) {
  return !is_device(rt, pointer) || rt.visible(address_of(pointer));
}

std::string range_text(const void* pointer, size_t bytes) {
  return std::to_string(bytes) + " bytes at " + gg::emu::hex(address_of(pointer));
}

// Where bytes really lie: a device range, all of it in one allocation, or host memory as it is. Null:
// neither.
uint8_t* resolve(Runtime& rt, const void* pointer, size_t bytes) {
  if (!is_device(rt, pointer)) return static_cast<uint8_t*>(const_cast<void*>(pointer));
  uint8_t* const real = rt.memory.host(address_of(pointer), bytes);
  if (!real)
    gg::emu::refuse(cudaErrorInvalidValue,
                    range_text(pointer, bytes) + " are not inside one live allocation");
  return real;
}

bool kind_fits(const Runtime& rt, const void* to, const void* from, cudaMemcpyKind kind) {
  const bool to_device = is_device(rt, to), from_device = is_device(rt, from);
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return to_device && is_host(rt, from);
    case cudaMemcpyDeviceToHost:
      return is_host(rt, to) && from_device;
    case cudaMemcpyDeviceToDevice:
      return to_device && from_device;
    default:
      return true;  // the driver looks at the addresses alone
  }
}

// Bytes from the first of `height` rows to the end of the last; false if there are more than can be.
bool extent(size_t pitch, size_t width, size_t height, size_t* bytes) {
  return !__builtin_mul_overflow(pitch, height - 1, bytes) && !__builtin_add_overflow(*bytes, width, bytes);
}

struct Copy2D {
  void* to;
  size_t to_pitch;
  const void* from;
  size_t from_pitch, width, height;
  cudaMemcpyKind kind;
};

cudaError_t run_copy(Runtime& rt, const Copy2D& c, bool check_only) {
  size_t to_bytes = 0, from_bytes = 0;
  if (!extent(c.to_pitch, c.width, c.height, &to_bytes)) return cudaErrorInvalidValue;
  if (!extent(c.from_pitch, c.width, c.height, &from_bytes)) return cudaErrorInvalidValue;
  uint8_t* const to = resolve(rt, c.to, to_bytes);
  const uint8_t* const from = resolve(rt, c.from, from_bytes);
  if (!to || !from) return cudaErrorInvalidValue;
  for (size_t row = 0; row < c.height && !check_only; ++row) {
    std::memmove(to + row * c.to_pitch, from + row * c.from_pitch, c.width);
  }
  return cudaSuccess;
}

cudaError_t copy(Runtime& rt, const Copy2D& c, cudaStream_t stream) {
  if (c.width == 0 || c.height == 0) return cudaSuccess;
  if (unsigned(c.kind) > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  if (c.to_pitch < c.width || c.from_pitch < c.width) return cudaErrorInvalidPitchValue;
  if (!c.to || !c.from || !kind_fits(rt, c.to, c.from, c.kind)) return cudaErrorInvalidValue;
  if (const cudaError_t error = run_copy(rt, c, true)) return error;  // a capture refuses it too
  return rt.streams.submit(stream, cudaGraphNodeTypeMemcpy, [&rt, c] { return run_copy(rt, c, false); });
}

cudaError_t fill(Runtime& rt, void* to, size_t pitch, int value, size_t width, size_t height,
                 cudaStream_t stream) {
  size_t whole = 0;
  if (width == 0 || height == 0) return cudaSuccess;
  if (!to || !is_device(rt, to) || pitch < width || !extent(pitch, width, height, &whole))
    return cudaErrorInvalidValue;
  const auto run = [&rt, to, pitch, value, width, height, whole] {
    uint8_t* const bytes = resolve(rt, to, whole);
    if (!bytes) return cudaErrorInvalidValue;
    for (size_t row = 0; row < height; ++row) std::memset(bytes + row * pitch, value, width);
    return cudaSuccess;
  };
  return rt.streams.submit(stream, cudaGraphNodeTypeMemset, run);
}

// Copies between one symbol and memory: the whole range must be inside the symbol.
cudaError_t copy_symbol(Runtime& rt, const void* symbol, size_t offset, const void* memory, size_t bytes,
                        bool to_symbol, cudaMemcpyKind kind, cudaStream_t stream) {
  uint64_t address = 0;
  size_t size = 0;
  if (const cudaError_t error = rt.programs.variable(rt, symbol, &address, &size)) return error;
  if (kind == cudaMemcpyHostToHost || kind == (to_symbol ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice)) {
    return cudaErrorInvalidMemcpyDirection;
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
  if (!pointer) return cudaSuccess;
  const gg::emu::HostVisible* visible = rt.visible(address_of(pointer));
  if (pinned != (visible && visible->type == cudaMemoryTypeHost)) return cudaErrorInvalidValue;
  return rt.release(address_of(pointer)) ? cudaSuccess : cudaErrorInvalidValue;
}

// Memory of a graph: allocated when the allocation is captured, freed with the last graph that knows it.
cudaError_t allocate_captured(Runtime& rt, void** pointer, size_t bytes, cudaStream_t stream) {
  const uint64_t address = rt.allocate(bytes);
  if (!address) return cudaErrorMemoryAllocation;
  *pointer = reinterpret_cast<void*>(address);
  const std::shared_ptr<void> owner(*pointer, [&rt](void* p) { rt.release(address_of(p)); });
  rt.streams.stream(stream)->capture->allocations.insert(*pointer);
  return rt.streams.submit(stream, cudaGraphNodeTypeMemAlloc, [owner] { return cudaSuccess; });
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
    if (target->capture) {  // only what the same capture allocated, and that lives as long as its graph
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
  return api([&](Runtime& rt) { return fill(rt, to, bytes, value, bytes, 1, nullptr); });
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return api([&](Runtime& rt) { return fill(rt, to, bytes, value, bytes, 1, stream); });
}
cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  return api([&](Runtime& rt) { return fill(rt, to, pitch, value, width, height, nullptr); });
}
cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  return api([&](Runtime& rt) { return fill(rt, to, pitch, value, width, height, stream); });
}

// The driver's: `count` words. CUDA Driver API, "Memory Management".
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
  CUresult result = CUDA_SUCCESS;
  api([&](Runtime& rt) {
    void* const begin = reinterpret_cast<void*>(to);
    if (to % sizeof value || !is_device(rt, begin) || count > SIZE_MAX / sizeof value) {
      result = CUDA_ERROR_INVALID_VALUE;
      return cudaSuccess;  // the driver's errors are not the runtime's last one
    }
    const auto run = [&rt, begin, value, count] {
      uint8_t* const bytes = resolve(rt, begin, count * sizeof value);
      if (!bytes) return cudaErrorInvalidValue;
      std::fill_n(reinterpret_cast<unsigned*>(bytes), count, value);
      return cudaSuccess;
    };
    if (count) result = CUresult(rt.streams.submit(stream, cudaGraphNodeTypeMemset, run));
    return cudaSuccess;
  });
  return result;
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

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  return api([&](Runtime& rt) {
    if (!attributes) return cudaErrorInvalidValue;
    *attributes = {};
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->device = cudaInvalidDeviceId;
    attributes->hostPointer = const_cast<void*>(pointer);
    if (!is_device(rt, pointer) || !rt.memory.host(address_of(pointer), 1)) return cudaSuccess;
    const gg::emu::HostVisible* visible = rt.visible(address_of(pointer));
    attributes->type = visible ? visible->type : cudaMemoryTypeDevice;
    attributes->device = 0;
    attributes->devicePointer = const_cast<void*>(pointer);
    if (!visible) attributes->hostPointer = nullptr;
    return cudaSuccess;
  });
}
cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  return api([&](Runtime& rt) {
    if (!device || !rt.visible(address_of(host))) return cudaErrorInvalidValue;
    *device = host;
    return cudaSuccess;
  });
}
cudaError_t cudaHostGetFlags(unsigned* flags, void* host) {
  return api([&](Runtime& rt) {
    const gg::emu::HostVisible* visible = rt.visible(address_of(host));
    if (!flags || !visible || visible->type != cudaMemoryTypeHost) return cudaErrorInvalidValue;
    *flags = visible->flags;
    return cudaSuccess;
  });
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
