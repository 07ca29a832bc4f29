// SPDX-License-Identifier: MIT
// The code that the host sides of the peers in Triton share, triton_launch.cpp and
// triton_wgrad.cpp: loading and launching a kernel, and tensor maps.
#pragma once

#include <cuda.h>

#include "support.h"

namespace triton {

// A kernel of the library, loaded when it is first wanted and kept.
inline cudaKernel_t loaded(const unsigned char* code, const char* name, int shared_bytes) {
  static std::map<const unsigned char*, cudaKernel_t> kernels;
  if (const auto found = kernels.find(code); found != kernels.end()) return found->second;
  cudaLibrary_t library;
  cudaKernel_t kernel;
  peers::check(cudaLibraryLoadData(&library, code, nullptr, nullptr, 0, nullptr, nullptr, 0),
               "cudaLibraryLoadData");
  peers::check(cudaLibraryGetKernel(&kernel, library, name), "cudaLibraryGetKernel");
  peers::check(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                    cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes),
               "cudaFuncSetAttribute");
  return kernels.emplace(code, kernel).first->second;
}

// How many blocks of a kernel the device runs at the same time; throws where it is none.
inline int64_t blocks_at_once(cudaKernel_t kernel, int threads, int shared_bytes) {
  int device = 0, multiprocessors = 0, blocks_of_each = 0;
  peers::check(cudaGetDevice(&device), "cudaGetDevice");
  peers::check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device),
               "cudaDeviceGetAttribute");
  peers::check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                   &blocks_of_each, reinterpret_cast<const void*>(kernel), threads, size_t(shared_bytes)),
               "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  if (blocks_of_each == 0) throw std::runtime_error("an SM has no room for a block");
  return int64_t(multiprocessors) * blocks_of_each;
}

struct Launch {
  int blocks, threads, shared_bytes;
  bool dependent;  // programmatic dependent launch
};

inline void launch(cudaStream_t stream, cudaKernel_t kernel, const Launch& launch, void** arguments,
                   const std::string& name) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = unsigned(launch.blocks);
  config.blockDim = unsigned(launch.threads);
  config.dynamicSmemBytes = size_t(launch.shared_bytes);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = launch.dependent ? 1 : 0;
  peers::check(cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernel), arguments), name.c_str());
}

// A type that a map's elements may have.
struct ElementType {
  CUtensorMapDataType name;
  cuuint32_t bytes;
};
constexpr ElementType kBf16 = {CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2};
constexpr ElementType kF32 = {CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4};

// A box's rows have 128 or 64 bytes, and so has the swizzle. The map is filled where it lies: one
// returned by value may be on the stack, where GCC 12 was seen to align it to 16 bytes only.
inline void encode(CUtensorMap& map, ElementType type, const void* data, std::vector<cuuint64_t> dims,
                   std::vector<cuuint64_t> stride_bytes, std::vector<cuuint32_t> box) {
  constexpr unsigned kSince = 12000;  // CUDA 12.0
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  peers::check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, kSince,
                                                cudaEnableDefault, &found),
               "cuTensorMapEncodeTiled");
  if (!function) throw std::runtime_error("the driver has no cuTensorMapEncodeTiled");
  const std::vector<cuuint32_t> element_strides(dims.size(), 1);
  const CUresult result = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function)(
      &map, type.name, cuuint32_t(dims.size()), const_cast<void*>(data), dims.data(), stride_bytes.data(),
      box.data(), element_strides.data(), CU_TENSOR_MAP_INTERLEAVE_NONE,
      box[0] * type.bytes == 128 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B,
      CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    throw std::runtime_error("cuTensorMapEncodeTiled refuses a map, error " + std::to_string(result));
}

}  // namespace triton
