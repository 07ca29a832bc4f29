// SPDX-License-Identifier: MIT
//
// A file with a large shared variable, a table of device functions and a class with virtual
// functions: none of them concerns a kernel that does not use it. The same tests run with NVIDIA's
// runtime and with the emulator's.

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <exception>
#include <vector>

#include "common/harness/machine/emulator.h"
#include "common/harness/run/device.h"

namespace {

__device__ int twice(int x) { return 2 * x; }
__device__ int thrice(int x) { return 3 * x; }
using Function = int (*)(int);
__device__ Function table[2] = {twice, thrice};

struct Base {
  __device__ virtual int of(int x) const { return x; }
};
struct Derived : Base {
  __device__ int of(int x) const override { return x + 1; }
};

constexpr int kLarge = 44000;
__shared__ int large[kLarge / 4];
__shared__ int small[32];

__global__ void uses_nothing(int* out) { out[threadIdx.x] = int(threadIdx.x); }
__device__ __noinline__ void fill(int value) { large[threadIdx.x] = value; }
__global__ void uses_large(int* out) {
  fill(int(threadIdx.x));
  __syncthreads();
  out[threadIdx.x] = large[31 - threadIdx.x];
}
__global__ void uses_small(int* out) {
  extern __shared__ int more[];
  small[threadIdx.x] = 1;
  more[threadIdx.x + 11000] = 2;
  __syncthreads();
  out[threadIdx.x] = small[31 - threadIdx.x] + more[11031 - threadIdx.x];
}
__global__ void calls(int* out, int which) {
  Base base;
  Derived derived;
  const Base* object = which ? &derived : &base;
  out[threadIdx.x] = table[which](object->of(int(threadIdx.x)));
}

size_t static_shared(const void* kernel) {
  cudaFuncAttributes attributes = {};
  EXPECT_EQ(cudaFuncGetAttributes(&attributes, kernel), cudaSuccess);
  return attributes.sharedSizeBytes;
}

class Unused : public testing::Test {
 protected:
  void SetUp() override {
    try {
      gg::choose_device(gg::emulator() ? gg::Options::Device::emulator : gg::Options::Device::gpu, {});
    } catch (const std::exception& error) {
      GTEST_SKIP() << error.what();
    }
    ASSERT_EQ(cudaMalloc(&out_, 32 * sizeof(int)), cudaSuccess);
  }
  void TearDown() override { cudaFree(out_); }
  std::vector<int> result() {
    std::vector<int> values(32);
    EXPECT_EQ(cudaMemcpy(values.data(), out_, 32 * sizeof(int), cudaMemcpyDeviceToHost), cudaSuccess);
    return values;
  }
  int* out_ = nullptr;
};

TEST_F(Unused, SharedVariablesAreChargedToTheKernelsThatUseThem) {
  EXPECT_EQ(static_shared(reinterpret_cast<const void*>(uses_nothing)), 0u);
  EXPECT_EQ(static_shared(reinterpret_cast<const void*>(uses_large)), size_t(kLarge));
  EXPECT_EQ(static_shared(reinterpret_cast<const void*>(uses_small)), sizeof small);
  uses_nothing<<<1, 32, 48000>>>(out_);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(result()[31], 31);
  uses_large<<<1, 32>>>(out_);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(result()[31], 0);
  uses_small<<<1, 32, 48000>>>(out_);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(result()[31], 3);
  uses_large<<<1, 32, 48000>>>(out_);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

TEST_F(Unused, TablesOfFunctionsAreCalledThrough) {
  uses_nothing<<<1, 32>>>(out_);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(result()[5], 5);
  calls<<<1, 32>>>(out_, 1);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(result()[5], 18);
}

}  // namespace
