// SPDX-License-Identifier: MIT
//
// Copies and fills of memory, checked when they are asked for and done when their stream
// comes to them. The functions of the runtime, those of the driver and the nodes of graphs
// are made of these.

#pragma once

#include <cuda_runtime_api.h>

#include "common/emu/cudart/runtime.h"

namespace gg::emu {

inline uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }
// Device memory, which kernels can reach: pinned and managed memory too.
inline bool is_device(const Runtime& rt, const void* pointer) {
  return rt.memory.reserved(address_of(pointer));
}

// A box of `depth` slices of `height` rows of `width` bytes. A pitch is the bytes from a row to the
// next, a slice those from a slice to the next.
struct Copy {
  void* to;
  size_t to_pitch;
  const void* from;
  size_t from_pitch, width, height;
  cudaMemcpyKind kind = cudaMemcpyDefault;
  size_t depth = 1, to_slice = 0, from_slice = 0;
};

// A box of elements of 1, 2 or 4 bytes, `width` in a row.
struct Fill {
  void* to;
  size_t pitch;
  unsigned value;
  size_t width, height = 1, element = 1, depth = 1, slice = 0;
};

// "cudaMemcpyHostToDevice"
const char* kind_name(cudaMemcpyKind kind);

// Why it is refused, when it is asked for: cudaErrorInvalidValue, cudaErrorInvalidPitchValue,
// cudaErrorInvalidMemcpyDirection, with a sentence. Nothing to copy or to fill is allowed.
cudaError_t check(Runtime& rt, const Copy& copy);
cudaError_t check(Runtime& rt, const Fill& fill);
// Does it. The memory may have been freed since it was checked: cudaErrorInvalidValue.
cudaError_t run(Runtime& rt, const Copy& copy);
cudaError_t run(Runtime& rt, const Fill& fill);

// Checks it and submits it to a stream.
cudaError_t copy(Runtime& rt, const Copy& copy, cudaStream_t stream);
cudaError_t fill(Runtime& rt, const Fill& fill, cudaStream_t stream);

}  // namespace gg::emu
