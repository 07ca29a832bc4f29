// SPDX-License-Identifier: MIT

#include "common/kernel/tensor_map.h"

#include <string>
#include <vector>

#include "common/kernel/check.h"

namespace gg {

using Encode = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                            const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                            CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

// The driver's function: nothing links libcuda, so the runtime is asked for it.
static Encode encode_function() {
  constexpr unsigned kSince = 12000;  // CUDA 12.0
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  GG_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, kSince, cudaEnableDefault,
                                            &found));
  if (found != cudaDriverEntryPointSuccess || !function) {
    fail(Exit::device_error, "the driver has no cuTensorMapEncodeTiled: install one for CUDA 12 or later");
  }
  return reinterpret_cast<Encode>(function);
}

template <class T>
static std::string list_text(const PerDimension<T>& values) {
  std::string text;
  for (const T value : values) text += (text.empty() ? "" : " x ") + std::to_string(value);
  return text;
}

CUtensorMap make_tensor_map(const TensorBox& box) {
  static const Encode encode = encode_function();
  const size_t rank = size_t(box.dims.size());
  const std::vector<cuuint64_t> dims(box.dims.begin(), box.dims.end());
  std::vector<cuuint64_t> strides(box.stride_bytes.begin(), box.stride_bytes.end());
  const std::vector<cuuint32_t> sides(box.box.begin(), box.box.end());
  std::vector<cuuint32_t> element_strides(box.element_strides.begin(), box.element_strides.end());
  if (element_strides.empty()) element_strides.assign(rank, 1);
  if (rank < 1 || strides.size() != rank - 1 || sides.size() != rank || element_strides.size() != rank) {
    fail(Exit::device_error,
         "a tensor map of %zu dimensions wants as many box sides and element strides and one "
         "stride less, not %zu, %zu and %zu",
         rank, sides.size(), element_strides.size(), strides.size());
  }
  strides.push_back(0);  // the driver wants a pointer also where one dimension has no stride
  CUtensorMap map{};
  const CUresult result = encode(
      &map, box.type, cuuint32_t(rank), const_cast<void*>(box.data), dims.data(), strides.data(),
      sides.data(), element_strides.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, box.swizzle,
      CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
      box.nan_fill ? CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA : CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    fail(Exit::device_error,
         "cuTensorMapEncodeTiled refuses (error %d) a tensor of %s elements of type %d at %p, strides "
         "%s bytes, box %s, swizzle %d: address and strides must be multiples of 16 bytes, box sides "
         "1 to 256, a row of the box a multiple of 16 bytes and no longer than the swizzle",
         int(result), list_text(box.dims).c_str(), int(box.type), box.data,
         list_text(box.stride_bytes).c_str(), list_text(box.box).c_str(), int(box.swizzle));
  }
  return map;
}

CUtensorMap make_swizzled_map(const void* data, const PerDimension<int64_t>& dims,
                              const PerDimension<int>& box) {
  TensorBox swizzled;
  swizzled.data = data;
  swizzled.dims = dims;
  for (int i = 0; i + 1 < dims.size(); ++i) {
    // Bytes of an element, of a row, ..
    const int64_t inner = i == 0 ? 2 : swizzled.stride_bytes[i - 1];
    swizzled.stride_bytes.push_back(dims[i] * inner);
  }
  swizzled.box = box;
  swizzled.swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
  return make_tensor_map(swizzled);
}

}  // namespace gg
