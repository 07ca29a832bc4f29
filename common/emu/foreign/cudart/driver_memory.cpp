// SPDX-License-Identifier: MIT
//
// Memory, for the driver's interface. CUDA Driver API, "Memory Management", "Unified Addressing".

#include <cstring>
#include <vector>

#include "common/emu/cudart/copies.h"
#include "common/emu/foreign/cudart/context.h"

using gg::emu::as_runtime;
using gg::emu::Copy;
using gg::emu::in_context;
using gg::emu::Runtime;

namespace {

void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }
void** into(CUdeviceptr* address) { return reinterpret_cast<void**>(address); }

CUresult copy(const void* to, const void* from, size_t bytes, cudaMemcpyKind kind, CUstream stream) {
  return in_context([&](Runtime& rt) {
    rt.finish_held();
    const Copy whole{const_cast<void*>(to), bytes, from, bytes, bytes, 1, kind};
    return CUresult(gg::emu::copy(rt, whole, stream));
  });
}
CUresult fill(const gg::emu::Fill& fill, CUstream stream) {
  return in_context([&](Runtime& rt) {
    rt.finish_held();
    return CUresult(gg::emu::fill(rt, fill, stream));
  });
}

// One end of a copy in two dimensions: where its first byte is.
CUresult end_of(CUmemorytype type, const void* host, CUdeviceptr device, size_t x, size_t y, size_t pitch,
                char** first) {
  switch (type) {
    case CU_MEMORYTYPE_HOST:
      *first = static_cast<char*>(const_cast<void*>(host)) + y * pitch + x;
      return CUDA_SUCCESS;
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED:
      *first = static_cast<char*>(pointer(device)) + y * pitch + x;
      return CUDA_SUCCESS;
    case CU_MEMORYTYPE_ARRAY:
      return CUresult(gg::emu::unsupported("a copy from or to an array"));
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

// A pitch of 0 stands for rows without a gap.
CUresult copy_rows(const CUDA_MEMCPY2D* c, CUstream stream) {
  return in_context([&](Runtime& rt) {
    char *to = nullptr, *from = nullptr;
    if (!c) return CUDA_ERROR_INVALID_VALUE;
    const size_t to_pitch = c->dstPitch ? c->dstPitch : c->dstXInBytes + c->WidthInBytes;
    const size_t from_pitch = c->srcPitch ? c->srcPitch : c->srcXInBytes + c->WidthInBytes;
    CUresult result =
        end_of(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstXInBytes, c->dstY, to_pitch, &to);
    if (result == CUDA_SUCCESS) {
      result = end_of(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcXInBytes, c->srcY, from_pitch, &from);
    }
    if (result != CUDA_SUCCESS) return result;
    rt.finish_held();
    const cudaError_t error = gg::emu::copy(
        rt, {to, to_pitch, from, from_pitch, c->WidthInBytes, c->Height, cudaMemcpyDefault}, stream);
    return error == cudaErrorInvalidPitchValue ? CUDA_ERROR_INVALID_VALUE : CUresult(error);
  });
}

CUresult attribute_of(Runtime& rt, void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  const gg::emu::Allocation* const found = rt.memory.below(address);
  const bool mapped = found && !found->freed && found->holds(address, 1);
  const gg::emu::HostVisible* const visible = rt.visible(address);
  const auto give = [data](const auto& value) {
    std::memcpy(data, &value, sizeof value);
    return CUDA_SUCCESS;
  };
  if (attribute == CU_POINTER_ATTRIBUTE_MAPPED) return give(int(mapped));
  if (!mapped) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: {
      CUcontext context = nullptr;
      cuCtxGetCurrent(&context);
      return give(context);
    }
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return give(visible && visible->type == cudaMemoryTypeHost ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return give(address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return visible ? give(address) : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return give(int(visible && visible->type == cudaMemoryTypeManaged));
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return give(int(0));
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return give(found->begin);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return give(size_t(found->bytes));
    default:
      return CUresult(gg::emu::unsupported("attribute " + std::to_string(int(attribute)) + " of a pointer"));
  }
}

}  // namespace

extern "C" {

CUresult cuMemGetInfo(size_t* free, size_t* total) {
  return as_runtime([&] { return cudaMemGetInfo(free, total); });
}
CUresult cuMemAlloc(CUdeviceptr* address, size_t bytes) {
  return as_runtime([&] { return bytes ? cudaMalloc(into(address), bytes) : cudaErrorInvalidValue; });
}
CUresult cuMemAllocPitch(CUdeviceptr* address, size_t* pitch, size_t width, size_t height, unsigned element) {
  if (element != 4 && element != 8 && element != 16) return CUDA_ERROR_INVALID_VALUE;
  return as_runtime([&] {
    return width && height ? cudaMallocPitch(into(address), pitch, width, height) : cudaErrorInvalidValue;
  });
}
CUresult cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned flags) {
  return as_runtime(
      [&] { return bytes ? cudaMallocManaged(into(address), bytes, flags) : cudaErrorInvalidValue; });
}
CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
  return as_runtime(
      [&] { return bytes ? cudaMallocAsync(into(address), bytes, stream) : cudaErrorInvalidValue; });
}
CUresult cuMemFree(CUdeviceptr address) {
  return as_runtime([&] { return cudaFree(pointer(address)); });
}
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  return as_runtime([&] { return cudaFreeAsync(pointer(address), stream); });
}
CUresult cuMemAllocHost(void** memory, size_t bytes) {
  return as_runtime([&] { return bytes ? cudaMallocHost(memory, bytes) : cudaErrorInvalidValue; });
}
CUresult cuMemHostAlloc(void** memory, size_t bytes, unsigned flags) {
  return as_runtime([&] { return bytes ? cudaHostAlloc(memory, bytes, flags) : cudaErrorInvalidValue; });
}
CUresult cuMemFreeHost(void* memory) {
  return as_runtime([&] { return memory ? cudaFreeHost(memory) : cudaErrorInvalidValue; });
}
CUresult cuMemHostGetDevicePointer(CUdeviceptr* address, void* host, unsigned flags) {
  return as_runtime([&] { return cudaHostGetDevicePointer(into(address), host, flags); });
}
CUresult cuMemHostGetFlags(unsigned* flags, void* host) {
  return as_runtime([&] { return cudaHostGetFlags(flags, host); });
}
CUresult cuMemHostRegister(void* host, size_t bytes, unsigned flags) {
  return as_runtime([&] { return cudaHostRegister(host, bytes, flags); });
}
CUresult cuMemHostUnregister(void* host) {
  return as_runtime([&] { return cudaHostUnregister(host); });
}
CUresult cuMemGetAddressRange(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  return in_context([&](Runtime& rt) {
    const gg::emu::Allocation* const found = rt.memory.below(address);
    if (!found || found->freed || !found->holds(address, 1)) return CUDA_ERROR_NOT_FOUND;
    if (base) *base = found->begin;
    if (bytes) *bytes = size_t(found->bytes);
    return CUDA_SUCCESS;
  });
}
CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUmemLocation, unsigned flags,
                            CUstream stream) {
  return as_runtime([&] { return cudaMemPrefetchAsync(pointer(address), bytes, {}, flags, stream); });
}
CUresult cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUmemLocation) {
  return as_runtime(
      [&] { return cudaMemAdvise(pointer(address), bytes, cudaMemoryAdvise(advice), cudaMemLocation{}); });
}
CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  return in_context([&](Runtime& rt) {
    return data ? attribute_of(rt, data, attribute, address) : CUDA_ERROR_INVALID_VALUE;
  });
}
// An attribute that the address has not is 0.
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr address) {
  return in_context([&](Runtime& rt) {
    if (!attributes || !data) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; ++i) {
      const CUresult result = attribute_of(rt, data[i], attributes[i], address);
      if (result == CUDA_ERROR_NOT_SUPPORTED) return result;
      if (result == CUDA_SUCCESS) continue;
      const bool wide = attributes[i] == CU_POINTER_ATTRIBUTE_CONTEXT ||
                        attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_POINTER ||
                        attributes[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER ||
                        attributes[i] == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR ||
                        attributes[i] == CU_POINTER_ATTRIBUTE_RANGE_SIZE;
      std::memset(data[i], 0, wide ? 8 : 4);
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy(pointer(to), pointer(from), bytes, cudaMemcpyDefault, nullptr);
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy(pointer(to), pointer(from), bytes, cudaMemcpyDefault, stream);
}
CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t bytes) {
  return copy(pointer(to), from, bytes, cudaMemcpyHostToDevice, nullptr);
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return copy(pointer(to), from, bytes, cudaMemcpyHostToDevice, stream);
}
CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, size_t bytes) {
  return copy(to, pointer(from), bytes, cudaMemcpyDeviceToHost, nullptr);
}
CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy(to, pointer(from), bytes, cudaMemcpyDeviceToHost, stream);
}
CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy(pointer(to), pointer(from), bytes, cudaMemcpyDeviceToDevice, nullptr);
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy(pointer(to), pointer(from), bytes, cudaMemcpyDeviceToDevice, stream);
}
CUresult cuMemcpy2D(const CUDA_MEMCPY2D* rows) { return copy_rows(rows, nullptr); }
CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D* rows) { return copy_rows(rows, nullptr); }
CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D* rows, CUstream stream) { return copy_rows(rows, stream); }

CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, size_t count) {
  return fill({pointer(to), count, value, count}, nullptr);
}
CUresult cuMemsetD16(CUdeviceptr to, unsigned short value, size_t count) {
  return fill({pointer(to), 2 * count, value, count, 1, 2}, nullptr);
}
CUresult cuMemsetD32(CUdeviceptr to, unsigned value, size_t count) {
  return fill({pointer(to), 4 * count, value, count, 1, 4}, nullptr);
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  return fill({pointer(to), count, value, count}, stream);
}
CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  return fill({pointer(to), 2 * count, value, count, 1, 2}, stream);
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
  return fill({pointer(to), 4 * count, value, count, 1, 4}, stream);
}
CUresult cuMemsetD2D8(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height) {
  return fill({pointer(to), pitch, value, width, height}, nullptr);
}
CUresult cuMemsetD2D16(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height) {
  return fill({pointer(to), pitch, value, width, height, 2}, nullptr);
}
CUresult cuMemsetD2D32(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height) {
  return fill({pointer(to), pitch, value, width, height, 4}, nullptr);
}
CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height,
                           CUstream stream) {
  return fill({pointer(to), pitch, value, width, height}, stream);
}
CUresult cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height,
                            CUstream stream) {
  return fill({pointer(to), pitch, value, width, height, 2}, stream);
}
CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height,
                            CUstream stream) {
  return fill({pointer(to), pitch, value, width, height, 4}, stream);
}

}  // extern "C"
