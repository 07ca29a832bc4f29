// SPDX-License-Identifier: MIT
//
// A program for gg_emu_test that links the driver's library and no runtime. It adds 5 to each of 32
// numbers, by PTX that it has or, where NVRTC is here, by machine code that it asks NVRTC for.

#include <cuda.h>
#ifdef GG_HAS_NVRTC
#include <nvrtc.h>
#endif

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

void check(bool ok, const char* what) {
  if (ok) return;
  std::printf("%s failed\n", what);
  std::exit(1);
}

#ifdef GG_HAS_NVRTC
std::string code() {
  const char* const text = "extern \"C\" __global__ void add(int* v, int n) { v[threadIdx.x] += n; }";
  const char* const options[] = {"--gpu-architecture=sm_90"};
  nvrtcProgram program = nullptr;
  size_t bytes = 0;
  check(nvrtcCreateProgram(&program, text, "add.cu", 0, nullptr, nullptr) == NVRTC_SUCCESS, "create");
  check(nvrtcCompileProgram(program, 1, options) == NVRTC_SUCCESS, "compile");
  check(nvrtcGetCUBINSize(program, &bytes) == NVRTC_SUCCESS && bytes, "size");
  std::string result(bytes, '\0');
  check(nvrtcGetCUBIN(program, result.data()) == NVRTC_SUCCESS, "machine code");
  return result;
}
#else
std::string code() {
  return ".version 8.0\n.target sm_80\n.address_size 64\n"
         ".visible .entry add(.param .u64 v, .param .u32 n) {\n"
         "  .reg .b32 %r<4>;\n  .reg .b64 %rd<4>;\n"
         "  ld.param.u64 %rd1, [v];\n  ld.param.u32 %r1, [n];\n  mov.u32 %r2, %tid.x;\n"
         "  mul.wide.u32 %rd2, %r2, 4;\n  add.s64 %rd3, %rd1, %rd2;\n"
         "  ld.global.u32 %r3, [%rd3];\n  add.u32 %r3, %r3, %r1;\n  st.global.u32 [%rd3], %r3;\n  ret;\n}\n";
}
#endif

}  // namespace

int main() {
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction add = nullptr;
  CUdeviceptr numbers = 0;
  int amount = 5, last = 0;
  check(cuCtxGetDevice(&last) == CUDA_ERROR_NOT_INITIALIZED, "nothing before cuInit");
  check(cuInit(0) == CUDA_SUCCESS, "cuInit");
  check(cuMemAlloc(&numbers, 128) == CUDA_ERROR_INVALID_CONTEXT, "no memory without a context");
  check(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS, "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context) == CUDA_SUCCESS, "cuCtxSetCurrent");
  check(cuModuleLoadData(&module, code().c_str()) == CUDA_SUCCESS, "cuModuleLoadData");
  check(cuModuleGetFunction(&add, module, "add") == CUDA_SUCCESS, "cuModuleGetFunction");
  check(cuMemAlloc(&numbers, 128) == CUDA_SUCCESS, "cuMemAlloc");
  check(cuMemsetD32(numbers, 100, 32) == CUDA_SUCCESS, "cuMemsetD32");
  void* arguments[] = {&numbers, &amount};
  check(cuLaunchKernel(add, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr) == CUDA_SUCCESS, "launch");
  check(cuMemcpyDtoH(&last, numbers + 124, 4) == CUDA_SUCCESS, "cuMemcpyDtoH");
  std::printf("%d\n", last);
  check(cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS, "cuDevicePrimaryCtxRelease");
  check(cuMemFree(numbers) == CUDA_ERROR_CONTEXT_IS_DESTROYED, "nothing after the context is gone");
  return 0;
}
