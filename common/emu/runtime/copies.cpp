// SPDX-License-Identifier: MIT
//
// Copies and fills: what CUDA refuses, then bytes.

#include "common/emu/runtime/copies.h"

#include <cstring>

namespace gg::emu {
namespace {

bool is_host(const Runtime& rt, const void* pointer) {
  return !is_device(rt, pointer) || rt.visible(address_of(pointer));
}

std::string range_text(const void* pointer, size_t bytes) {
  return std::to_string(bytes) + " bytes at " + hex(address_of(pointer));
}

// Where bytes really lie: a device range, all of it in one allocation, or host memory as it is. Null:
// neither.
uint8_t* resolve(Runtime& rt, const void* pointer, size_t bytes) {
  if (!is_device(rt, pointer)) return static_cast<uint8_t*>(const_cast<void*>(pointer));
  uint8_t* const real = rt.memory.host(address_of(pointer), bytes);
  if (!real)
    refuse(cudaErrorInvalidValue, range_text(pointer, bytes) + " are not inside one live allocation");
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

// Bytes from the first row to the end of the last; false if there are more than can be.
bool extent(size_t pitch, size_t width, size_t height, size_t slice, size_t depth, size_t* bytes) {
  size_t slices = 0;
  return !__builtin_mul_overflow(pitch, height - 1, bytes) && !__builtin_add_overflow(*bytes, width, bytes) &&
         !__builtin_mul_overflow(slice, depth - 1, &slices) && !__builtin_add_overflow(*bytes, slices, bytes);
}

bool is_empty(const Copy& c) { return c.width == 0 || c.height == 0 || c.depth == 0; }
bool is_empty(const Fill& f) { return f.width == 0 || f.height == 0 || f.depth == 0; }

// Both ends of a copy; false if one of them is not there.
bool ends(Runtime& rt, const Copy& c, uint8_t** to, const uint8_t** from) {
  size_t to_bytes = 0, from_bytes = 0;
  if (!extent(c.to_pitch, c.width, c.height, c.to_slice, c.depth, &to_bytes)) return false;
  if (!extent(c.from_pitch, c.width, c.height, c.from_slice, c.depth, &from_bytes)) return false;
  *to = resolve(rt, c.to, to_bytes);
  *from = resolve(rt, c.from, from_bytes);
  return *to && *from;
}

}  // namespace

cudaError_t check(Runtime& rt, const Copy& c) {
  uint8_t* to = nullptr;
  const uint8_t* from = nullptr;
  if (is_empty(c)) return cudaSuccess;
  if (unsigned(c.kind) > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  if (c.to_pitch < c.width || c.from_pitch < c.width) return cudaErrorInvalidPitchValue;
  if (!c.to || !c.from || !kind_fits(rt, c.to, c.from, c.kind)) return cudaErrorInvalidValue;
  return ends(rt, c, &to, &from) ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t run(Runtime& rt, const Copy& c) {
  uint8_t* to = nullptr;
  const uint8_t* from = nullptr;
  if (is_empty(c)) return cudaSuccess;
  if (!ends(rt, c, &to, &from)) return cudaErrorInvalidValue;
  for (size_t z = 0; z < c.depth; ++z) {
    for (size_t row = 0; row < c.height; ++row) {
      const size_t to_row = z * c.to_slice + row * c.to_pitch,
                   from_row = z * c.from_slice + row * c.from_pitch;
      std::memmove(to + to_row, from + from_row, c.width);
      rt.memory.was_copied(address_of(c.to) + to_row, address_of(c.from) + from_row, c.width, to + to_row,
                           rt.settings.run.order.seed);
    }
  }
  return cudaSuccess;
}

cudaError_t copy(Runtime& rt, const Copy& c, cudaStream_t stream) {
  if (is_empty(c)) return cudaSuccess;
  if (const cudaError_t error = check(rt, c)) return error;  // a capture refuses it too
  return rt.streams.submit(stream, cudaGraphNodeTypeMemcpy, [&rt, c] { return run(rt, c); });
}

cudaError_t check(Runtime& rt, const Fill& f) {
  size_t row = 0, whole = 0;
  if (is_empty(f)) return cudaSuccess;
  if (f.element != 1 && f.element != 2 && f.element != 4) return cudaErrorInvalidValue;
  if (__builtin_mul_overflow(f.width, f.element, &row)) return cudaErrorInvalidValue;
  if (!f.to || !is_device(rt, f.to) || address_of(f.to) % f.element) return cudaErrorInvalidValue;
  if (f.pitch < row || f.pitch % f.element) return cudaErrorInvalidValue;
  return extent(f.pitch, row, f.height, f.slice, f.depth, &whole) ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t run(Runtime& rt, const Fill& f) {
  size_t whole = 0;
  if (is_empty(f)) return cudaSuccess;
  extent(f.pitch, f.width * f.element, f.height, f.slice, f.depth, &whole);
  uint8_t* const bytes = resolve(rt, f.to, whole);
  if (!bytes) return cudaErrorInvalidValue;
  for (size_t z = 0; z < f.depth; ++z) {
    for (size_t row = 0; row < f.height; ++row) {
      uint8_t* const at = bytes + z * f.slice + row * f.pitch;
      rt.memory.was_filled(address_of(f.to) + z * f.slice + row * f.pitch, f.width * f.element);
      if (f.element == 1) {
        std::memset(at, int(f.value), f.width);
        continue;
      }
      for (size_t i = 0; i < f.width; ++i) std::memcpy(at + i * f.element, &f.value, f.element);
    }
  }
  return cudaSuccess;
}

cudaError_t fill(Runtime& rt, const Fill& f, cudaStream_t stream) {
  if (is_empty(f)) return cudaSuccess;
  if (const cudaError_t error = check(rt, f)) return error;
  return rt.streams.submit(stream, cudaGraphNodeTypeMemset, [&rt, f] { return run(rt, f); });
}

}  // namespace gg::emu
