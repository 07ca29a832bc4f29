// SPDX-License-Identifier: MIT
//
// Copies and fills: what CUDA refuses, then bytes.

#include "common/emu/cudart/copies.h"

#include <algorithm>
#include <cstring>

namespace gg::emu {
namespace {

std::string range_text(const void* pointer, size_t bytes) {
  return std::to_string(bytes) + " bytes at " + hex(address_of(pointer));
}

// Where bytes really lie: a device range, all of it in one allocation, or host memory as it
// is. Null: neither.
uint8_t* resolve(Runtime& rt, const void* pointer, size_t bytes) {
  if (!is_device(rt, pointer)) return static_cast<uint8_t*>(const_cast<void*>(pointer));
  uint8_t* const real = rt.memory.host(address_of(pointer), bytes);
  if (!real)
    refuse(cudaErrorInvalidValue, range_text(pointer, bytes) + " are not inside one live allocation");
  return real;
}

// The sentence on a copy whose direction takes something for device memory that is none; "" if
// nothing. The driver looks at nothing else: an H100's copies between two places on the device
// whichever of these directions is named.
std::string direction_problem(const Runtime& rt, const Copy& c) {
  const bool to = c.kind == cudaMemcpyHostToDevice || c.kind == cudaMemcpyDeviceToDevice;
  const bool from = c.kind == cudaMemcpyDeviceToHost || c.kind == cudaMemcpyDeviceToDevice;
  const bool bad_to = to && !is_device(rt, c.to), bad_from = from && !is_device(rt, c.from);
  if (!bad_to && !bad_from) return "";
  return std::string(kind_name(c.kind)) + (bad_to ? " writes" : " reads") + " device memory, and " +
         hex(address_of(bad_to ? c.to : c.from)) + " is none; cudaMemcpyDefault goes by the addresses";
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

const char* kind_name(cudaMemcpyKind kind) {
  constexpr const char* kNames[] = {"cudaMemcpyHostToHost", "cudaMemcpyHostToDevice",
                                    "cudaMemcpyDeviceToHost", "cudaMemcpyDeviceToDevice",
                                    "cudaMemcpyDefault"};
  return kNames[kind];
}

cudaError_t check(Runtime& rt, const Copy& c) {
  uint8_t* to = nullptr;
  const uint8_t* from = nullptr;
  if (is_empty(c)) return cudaSuccess;
  const std::string bytes = "a copy of " + std::to_string(c.width) + " bytes ";
  if (unsigned(c.kind) > cudaMemcpyDefault) {
    return refuse(cudaErrorInvalidMemcpyDirection,
                  bytes + "in direction " + std::to_string(int(c.kind)) + ", cudaMemcpyKind has 0 to 4");
  }
  if (c.to_pitch < c.width || c.from_pitch < c.width) {
    return refuse(cudaErrorInvalidPitchValue, bytes + "in each row, whose pitch is " +
                                                  std::to_string(std::min(c.to_pitch, c.from_pitch)) +
                                                  " bytes");
  }
  if (!c.to || !c.from)
    return refuse(cudaErrorInvalidValue, bytes + (c.to ? "from" : "to") + " a null pointer");
  const std::string problem = direction_problem(rt, c);
  if (!problem.empty()) return refuse(cudaErrorInvalidValue, problem);
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
  if (!f.to) return refuse(cudaErrorInvalidValue, "a fill of a null pointer");
  if (!is_device(rt, f.to)) {
    return refuse(cudaErrorInvalidValue,
                  "a fill of " + hex(address_of(f.to)) + ", which is no device memory");
  }
  if (address_of(f.to) % f.element) return cudaErrorInvalidValue;
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
