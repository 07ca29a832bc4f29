// SPDX-License-Identifier: MIT
//
// Tensor maps, the one part of the driver's interface that kernels of the runtime need too. CUDA
// Driver API, "Tensor Map Object Management".

#include <cuda.h>

#include "common/emu/core/units/tensor_map_use.h"
#include "common/emu/cudart/driver_call.h"
#include "common/emu/cudart/encode_map.h"

using gg::emu::driver;
using gg::emu::Runtime;

namespace {

// cuda.h wants a tensor map at a multiple of 64. A driver (13.0, on an H100) takes it at any
// address, and so do we; but nobody promises it.
void tell_of_alignment(const char* function, const CUtensorMap* map) {
  const uint64_t off = reinterpret_cast<uint64_t>(map) % gg::emu::kTensorMapAlignment;
  if (off == 0) return;
  gg::emu::tell(
      std::string(function) + ": the CUtensorMap lies " + std::to_string(off) +
      " bytes past a multiple of 64, and cuda.h wants it aligned to 64 bytes. Drivers were seen to take "
      "it, so it is taken here too; declare it as a CUtensorMap or with alignas(64)");
}

}  // namespace

extern "C" {

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                const cuuint64_t* dims, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                CUtensorMapFloatOOBfill fill) {
  return driver([&](Runtime& rt) {
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    gg::emu::TensorMap made;
    std::string why = "the map is null";
    if (map) {
      tell_of_alignment("cuTensorMapEncodeTiled", map);
      result = gg::emu::encode_tiled(
          {uint32_t(type), rank, address, dims, strides, box, element_strides, uint32_t(interleave),
           uint32_t(swizzle), uint32_t(promotion), uint32_t(fill)},
          rt.device().capability(), &made, &why);
    }
    if (result == CUDA_SUCCESS) {
      gg::emu::encode_tensor_map(made, reinterpret_cast<uint8_t*>(map));
    } else {
      gg::emu::refuse(cudaErrorInvalidValue, "cuTensorMapEncodeTiled refuses: " + why);
    }
    return result;
  });
}

CUresult cuTensorMapReplaceAddress(CUtensorMap* map, void* address) {
  return driver([&](Runtime&) {
    if (!map || reinterpret_cast<uint64_t>(address) % 16) return CUDA_ERROR_INVALID_VALUE;
    tell_of_alignment("cuTensorMapReplaceAddress", map);
    gg::emu::TensorMap decoded = gg::emu::decode_tensor_map(reinterpret_cast<uint8_t*>(map));
    if (decoded.unknown) return CUDA_ERROR_INVALID_VALUE;
    decoded.address = reinterpret_cast<uint64_t>(address);
    gg::emu::encode_tensor_map(decoded, reinterpret_cast<uint8_t*>(map));
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
