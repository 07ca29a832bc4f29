// SPDX-License-Identifier: MIT
// For the peers of DeepGEMM's bf16 kernels for Hopper: its header, and what its host code does
// before a launch and for it. These kernels are compiled ahead, with constants that DeepGEMM's
// heuristic chooses for 132 multiprocessors.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cute/arch/copy_sm90_desc.hpp>
#include <deep_gemm/impls/sm90_bf16_gemm.cuh>

#include "common/harness/bench/peer_library.h"
#include "support.h"

#ifndef DEEPGEMM_VERSION  // deep_gemm/__init__.py has it
#define DEEPGEMM_VERSION "of unknown version"
#endif

namespace peers {

using Element = cutlass::bfloat16_t;
constexpr int kProcessors = 132, kBlockK = 64, kTmaThreads = 128;

constexpr int align(int value, int step) { return (value + step - 1) / step * step; }
constexpr int math_threads(int block_m) { return block_m <= 64 ? 128 : 256; }

// Stages of the ring, and the bytes of shared memory with them. other_bytes: what a kind of product
// adds to D's tile and to the barriers.
struct Pipeline {
  int stages, smem_bytes;
};
constexpr Pipeline pipeline(int block_m, int block_n, int d_element_bytes, int other_bytes) {
  constexpr int kMaxStages = 16, kMostBytes = 232448;
  const int stage_bytes = (block_m + block_n) * kBlockK * int(sizeof(Element));
  const int fixed_bytes = align(block_m * block_n * d_element_bytes, 1024) + kMaxStages * 2 * 8 + other_bytes;
  const int stages = std::min((kMostBytes - fixed_bytes) / stage_bytes, kMaxStages);
  return {stages, fixed_bytes + stages * stage_bytes};
}

// A kernel, and how it is launched.
struct Code {
  const void* function;
  int cluster, threads, smem_bytes;
};

inline void allow_smem(const Code& code) {
  check(cudaFuncSetAttribute(code.function, cudaFuncAttributeMaxDynamicSharedMemorySize, code.smem_bytes),
        "cudaFuncSetAttribute");
}

inline void launch(const Code& code, void** arguments, bool dependent_launch, cudaStream_t stream,
                   const std::string& name) {
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {unsigned(code.cluster), 1, 1};
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = kProcessors;
  config.blockDim = unsigned(code.threads);
  config.dynamicSmemBytes = size_t(code.smem_bytes);
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = dependent_launch ? 2 : 1;
  check(cudaLaunchKernelExC(&config, code.function, arguments), name.c_str());
}

// A matrix in memory, row after row.
struct Matrix {
  CUtensorMapDataType type;
  int element_bytes;
  const void* memory;
  int64_t rows;
  int columns;
};

// Its tensor map, for boxes of this size. swizzle_bytes: 0 for no swizzle.
inline CUtensorMap tensor_map(const Matrix& matrix, int box_rows, int box_columns, int swizzle_bytes) {
  static const auto encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found;
    check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault,
                                           &found),
          "cuTensorMapEncodeTiled");
    if (!function) throw std::runtime_error("the driver has no cuTensorMapEncodeTiled");
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  }();
  const cuuint64_t sizes[] = {cuuint64_t(matrix.columns), cuuint64_t(matrix.rows)};
  const cuuint64_t strides[] = {cuuint64_t(matrix.columns) * cuuint64_t(matrix.element_bytes)};
  const cuuint32_t box[] = {cuuint32_t(box_columns), cuuint32_t(box_rows)};
  const cuuint32_t steps[] = {1, 1};
  const CUtensorMapSwizzle swizzle = swizzle_bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                                     : swizzle_bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                     : swizzle_bytes == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                                                           : CU_TENSOR_MAP_SWIZZLE_NONE;
  CUtensorMap map;
  const CUresult result = encode(&map, matrix.type, 2, const_cast<void*>(matrix.memory), sizes, strides, box,
                                 steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                                 CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    throw std::runtime_error("cuTensorMapEncodeTiled: error " + std::to_string(int(result)));
  }
  return map;
}

// The map of a matrix of bf16, whose boxes are as wide as the swizzle.
inline CUtensorMap tensor_map(const void* memory, int64_t rows, int columns, int box_rows,
                              int swizzle_bytes) {
  constexpr int kBytes = sizeof(Element);
  return tensor_map({CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, kBytes, memory, rows, columns}, box_rows,
                    swizzle_bytes / kBytes, swizzle_bytes);
}

// Memory for the groups' rows with gaps between them, which are zeros.
inline Device<Element> zeroed_rows(int64_t rows, int columns) {
  Device<Element> memory = device_array<Element>(size_t(rows * columns));
  check(cudaMemset(memory.get(), 0, size_t(rows * columns) * sizeof(Element)), "cudaMemset");
  check(cudaDeviceSynchronize(), "cudaMemset");  // other streams do not wait for it
  return memory;
}

// Copies each group's rows from where they begin in one matrix to where they begin in another. The
// one without gaps says how many they are.
inline void copy_rows(Element* to, const std::vector<int64_t>& to_rows, const Element* from,
                      const std::vector<int64_t>& from_rows, int columns, cudaStream_t stream) {
  for (size_t g = 0; g + 1 < to_rows.size(); ++g) {
    const int64_t rows = std::min(to_rows[g + 1] - to_rows[g], from_rows[g + 1] - from_rows[g]);
    if (rows == 0) continue;
    check(cudaMemcpyAsync(to + to_rows[g] * columns, from + from_rows[g] * columns,
                          size_t(rows * columns) * sizeof(Element), cudaMemcpyDeviceToDevice, stream),
          "cudaMemcpyAsync");
  }
}

// Throws where DeepGEMM's kernels do not run.
inline void check_device_and_format(const GgPeerProblem& p) {
  if (std::string(p.format) != "bf16") throw std::runtime_error(std::string(p.format) + ": takes bf16 only");
  int device = 0, processors = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
        "cudaDeviceGetAttribute");
  if (processors != kProcessors) {
    throw std::runtime_error(std::to_string(processors) + " multiprocessors: compiled for " +
                             std::to_string(kProcessors));
  }
}

}  // namespace peers
