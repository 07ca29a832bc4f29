// SPDX-License-Identifier: MIT
//
// cuTensorMapEncodeTiled: which arguments a driver takes, and the map it makes of them.

#pragma once

#include <cuda.h>

#include <string>

#include "common/emu/core/units/tensor_map_format.h"

namespace gg::emu {

// The numbers are those of cuda.h's enumerations, or whatever a caller took for one.
struct TiledArguments {
  uint32_t type, rank;
  const void* address;
  const cuuint64_t *dims, *strides;
  const cuuint32_t *box, *element_strides;
  uint32_t interleave, swizzle, promotion, fill;
};

// For a device of this compute capability. CUDA_SUCCESS, or CUDA_ERROR_INVALID_VALUE for what a
// driver refuses; CUDA_ERROR_NOT_SUPPORTED for what it takes and we do not know how to write down.
// `why` says it.
CUresult encode_tiled(const TiledArguments& arguments, int capability, TensorMap* map, std::string* why);

}  // namespace gg::emu
