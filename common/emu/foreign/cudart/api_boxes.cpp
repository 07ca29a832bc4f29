// SPDX-License-Identifier: MIT
//
// Memory in three dimensions: without arrays, which there are none of. CUDA Runtime
// API, "Memory Management".

#include "common/emu/foreign/cudart/graph_nodes.h"

using gg::emu::api;
using gg::emu::Runtime;

namespace {

cudaError_t copy(const cudaMemcpy3DParms* params, cudaStream_t stream) {
  return api([&](Runtime& rt) {
    gg::emu::Copy copy{};
    if (!params) return cudaErrorInvalidValue;
    if (const cudaError_t error = gg::emu::copy_of(*params, &copy)) return error;
    return gg::emu::copy(rt, copy, stream);
  });
}
cudaError_t fill(cudaPitchedPtr to, int value, cudaExtent extent, cudaStream_t stream) {
  return api([&](Runtime& rt) {
    const gg::emu::Fill fill{to.ptr,        to.pitch, unsigned(value), extent.width,
                             extent.height, 1,        extent.depth,    to.pitch * to.ysize};
    return gg::emu::fill(rt, fill, stream);
  });
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc3D(cudaPitchedPtr* memory, cudaExtent extent) {
  size_t rows = 0;
  if (!memory || __builtin_mul_overflow(extent.height, extent.depth, &rows))
    return api([](Runtime&) { return cudaErrorInvalidValue; });
  *memory = {nullptr, 0, extent.width, extent.height};
  return cudaMallocPitch(&memory->ptr, &memory->pitch, extent.width, rows);
}
cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* params) { return copy(params, nullptr); }
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* params, cudaStream_t stream) {
  return copy(params, stream);
}
cudaError_t cudaMemset3D(cudaPitchedPtr to, int value, cudaExtent extent) {
  return fill(to, value, extent, nullptr);
}
cudaError_t cudaMemset3DAsync(cudaPitchedPtr to, int value, cudaExtent extent, cudaStream_t stream) {
  return fill(to, value, extent, stream);
}

// Both devices are the one there is.
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                                cudaStream_t stream) {
  if (to_device || from_device) return api([](Runtime&) { return cudaErrorInvalidDevice; });
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}
cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t bytes) {
  return cudaMemcpyPeerAsync(to, to_device, from, from_device, bytes, nullptr);
}

}  // extern "C"
