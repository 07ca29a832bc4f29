// SPDX-License-Identifier: MIT
//
// A stream and 64 numbers on a device like an H200, and the emulator if that is the machine.

#pragma once

#include <cuda_runtime.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <vector>

#include "common/emu/cudart/interface.h"

namespace runtime_test {

inline const GgEmuInterface* emulator() {
  const auto get = reinterpret_cast<decltype(&gg_emu_interface)>(dlsym(RTLD_DEFAULT, "gg_emu_interface"));
  return get ? get() : nullptr;
}

class Runtime : public testing::Test {
 protected:
  void SetUp() override {
    cudaDeviceProp p{};
    if (cudaGetDeviceProperties(&p, 0) != cudaSuccess || p.major != 9)
      GTEST_SKIP() << "no device like an H200";
    ASSERT_EQ(cudaMalloc(&values_, 64 * sizeof(int)), cudaSuccess);
    ASSERT_EQ(cudaMemset(values_, 0, 64 * sizeof(int)), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    cudaGetLastError();
  }
  void TearDown() override {
    cudaFree(values_);
    if (stream_) cudaStreamDestroy(stream_);
  }
  std::vector<int> read(int count = 64) {
    std::vector<int> host(size_t(count), -1);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(host.data(), values_, size_t(count) * sizeof(int), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return host;
  }
  cudaError_t launch(const void* kernel, dim3 grid, dim3 block, size_t shared = 0,
                     cudaStream_t stream = nullptr) {
    void* args[] = {&values_};
    return cudaLaunchKernel(kernel, grid, block, args, shared, stream);
  }

  int* values_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

}  // namespace runtime_test
