// SPDX-License-Identifier: MIT
//
// The functions of libcuda.so.1, looked up when a test runs: NVIDIA's on a GPU, else the
// emulator's. CU(cuInit) is one of them. And a device like an H200 with a context on it.

#pragma once

#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace driver_test {

inline void* library() {
  static void* const handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return handle;
}
inline bool emulated() { return library() && dlsym(library(), "gg_emu_interface"); }

template <class F>
F find_driver(const char* name) {
  void* const function = library() ? dlsym(library(), name) : nullptr;
  if (!function) throw std::runtime_error(std::string("libcuda.so.1 has no ") + name);
  return reinterpret_cast<F>(function);
}
#define GG_DRIVER_NAME(function) #function
#define CU(function) driver_test::find_driver<decltype(&function)>(GG_DRIVER_NAME(function))

class Driver : public testing::Test {
 protected:
  void SetUp() override {
    int major = 0;
    if (!library() || CU(cuInit)(0) != CUDA_SUCCESS ||
        CU(cuDeviceGetAttribute)(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0) != CUDA_SUCCESS ||
        major != 9)
      GTEST_SKIP() << "no device like an H200";
    ASSERT_EQ(CU(cuCtxCreate)(&context_, nullptr, 0, 0), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuMemAlloc)(&values_, 64 * sizeof(int)), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuMemsetD32)(values_, 0, 64), CUDA_SUCCESS);
  }
  void TearDown() override {
    if (context_) CU(cuCtxDestroy)(context_);
  }
  CUfunction function(const char* image, const char* name) {
    CUmodule module = nullptr;
    CUfunction found = nullptr;
    EXPECT_EQ(CU(cuModuleLoadData)(&module, image), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuModuleGetFunction)(&found, module, name), CUDA_SUCCESS);
    return found;
  }
  int value(int index) {
    int host = -1;
    EXPECT_EQ(CU(cuMemcpyDtoH)(&host, values_ + sizeof(int) * size_t(index), sizeof host), CUDA_SUCCESS);
    return host;
  }

  CUcontext context_ = nullptr;
  CUdeviceptr values_ = 0;
};

// Adds `amount` and what the variable `more` holds, 100, to values[thread].
constexpr char kAdd[] = R"(.version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .u32 more = 100;
.visible .entry add(.param .u64 values, .param .u32 amount)
{
  .reg .b32 %r<5>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [values];
  ld.param.u32 %r1, [amount];
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %rd2, %r2, 4;
  cvta.to.global.u64 %rd3, %rd1;
  add.s64 %rd3, %rd3, %rd2;
  ld.global.u32 %r3, [%rd3];
  add.u32 %r3, %r3, %r1;
  ld.global.u32 %r4, [more];
  add.u32 %r3, %r3, %r4;
  st.global.u32 [%rd3], %r3;
  ret;
}
)";

}  // namespace driver_test
