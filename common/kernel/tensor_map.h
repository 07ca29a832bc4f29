// SPDX-License-Identifier: MIT
//
// Tensor maps, made on the host: what TMA must know of a tensor and of the boxes it copies. CUDA
// Driver API, "Tensor Map Object Management".

#pragma once

#include <cuda.h>

#include <cstdint>

#include "common/kernel/list.h"

namespace gg {

constexpr int kMostDimensions = 5;  // of a tensor
template <class T>
using PerDimension = List<T, kMostDimensions>;

// Dimension 0, whose elements are neighbours in memory, is first: columns, then rows, matrices.
struct TensorBox {
  CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  const void* data = nullptr;          // in global memory, at a multiple of 16
  PerDimension<int64_t> dims;          // elements of the tensor
  PerDimension<int64_t> stride_bytes;  // of dimension 1 and up: multiples of 16
  // Elements, at most 256 along each dimension; a row is a multiple of 16 bytes.
  PerDimension<int> box;
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;  // a row of the box is at most this long
  bool nan_fill = false;                // elements outside the tensor load as NaN, not as 0
  PerDimension<int> element_strides{};  // empty: every element; 2: every other one of the box
};

// For a kernel's `const __grid_constant__ CUtensorMap` parameter. The device sees changes of the
// tensor's contents, not of the box: the map is a copy. Throws gg::Error with one sentence if
// the driver refuses.
CUtensorMap make_tensor_map(const TensorBox& box);

// The map of a tensor without gaps, of elements of 16 bits, whose boxes have rows of at most 128
// bytes and land swizzled by 128 bytes: as wgmma and tcgen05 read operands (chapter 06b).
CUtensorMap make_swizzled_map(const void* data, const PerDimension<int64_t>& dims,
                              const PerDimension<int>& box);

}  // namespace gg
