// SPDX-License-Identifier: MIT
//
// The driver's interface as programs use it that load PTX while they run: the same tests run with
// NVIDIA's driver on a GPU and with the emulator's libcuda.so.1.

#include "tests/emu/foreign/driver.h"

#include <cstring>
#include <vector>

namespace {

using namespace driver_test;

CUresult launch(CUfunction function, CUdeviceptr values, int amount, unsigned threads = 32,
                CUstream stream = nullptr) {
  void* arguments[] = {&values, &amount};
  return CU(cuLaunchKernel)(function, 1, 1, 1, threads, 1, 1, 0, stream, arguments, nullptr);
}

TEST_F(Driver, TellsOfTheDevice) {
  int count = 0, major = 0, minor = 0, multiprocessors = 0;
  CUdevice device = -1;
  char name[256] = "";
  size_t bytes = 0;
  EXPECT_EQ(CU(cuDeviceGetCount)(&count), CUDA_SUCCESS);
  EXPECT_GE(count, 1);
  EXPECT_EQ(CU(cuDeviceGet)(&device, 0), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuDeviceGet)(&device, count), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(CU(cuDeviceGetName)(name, sizeof name, 0), CUDA_SUCCESS);
  EXPECT_NE(std::string(name).find("NVIDIA"), std::string::npos) << name;
  EXPECT_EQ(CU(cuDeviceTotalMem)(&bytes, 0), CUDA_SUCCESS);
  EXPECT_GT(bytes, size_t(1) << 26);
  EXPECT_EQ(CU(cuDeviceGetAttribute)(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuDeviceGetAttribute)(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0), CUDA_SUCCESS);
  EXPECT_EQ(major * 10 + minor, 90);
  EXPECT_EQ(CU(cuDeviceGetAttribute)(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0),
            CUDA_SUCCESS);
  EXPECT_GT(multiprocessors, 0);
  EXPECT_EQ(CU(cuDeviceGetAttribute)(&count, CUdevice_attribute(100000), 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Driver, KeepsAStackOfContexts) {
  CUcontext other = nullptr, current = nullptr;
  ASSERT_EQ(CU(cuCtxCreate)(&other, nullptr, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuCtxGetCurrent)(&current), CUDA_SUCCESS);
  EXPECT_EQ(current, other);
  EXPECT_EQ(CU(cuCtxPopCurrent)(&current), CUDA_SUCCESS);
  EXPECT_EQ(current, other);
  EXPECT_EQ(CU(cuCtxGetCurrent)(&current), CUDA_SUCCESS);
  EXPECT_EQ(current, context_);
  EXPECT_EQ(CU(cuCtxPushCurrent)(other), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuCtxDestroy)(other), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuCtxGetCurrent)(&current), CUDA_SUCCESS);
  EXPECT_EQ(current, context_);
  EXPECT_EQ(CU(cuCtxSetCurrent)(nullptr), CUDA_SUCCESS);
  CUdeviceptr memory = 0;
  EXPECT_EQ(CU(cuMemAlloc)(&memory, 16), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(CU(cuCtxPopCurrent)(&current), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(CU(cuCtxSetCurrent)(context_), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemAlloc)(&memory, 16), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemFree)(memory), CUDA_SUCCESS);
}

TEST_F(Driver, CountsWhoHoldsThePrimaryContext) {
  CUcontext primary = nullptr, again = nullptr;
  unsigned flags = 9;
  int active = 9;
  ASSERT_EQ(CU(cuDevicePrimaryCtxRetain)(&primary, 0), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuDevicePrimaryCtxRetain)(&again, 0), CUDA_SUCCESS);
  EXPECT_EQ(primary, again);
  EXPECT_EQ(CU(cuDevicePrimaryCtxRelease)(0), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuDevicePrimaryCtxGetState)(0, &flags, &active), CUDA_SUCCESS);
  EXPECT_EQ(active, 1);
  EXPECT_EQ(CU(cuDevicePrimaryCtxRelease)(0), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuDevicePrimaryCtxGetState)(0, &flags, &active), CUDA_SUCCESS);
  EXPECT_EQ(active, 0);
  EXPECT_EQ(CU(cuDevicePrimaryCtxRelease)(0), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(Driver, LaunchesPtx) {
  CUfunction add = function(kAdd, "add");
  ASSERT_NE(add, nullptr);
  EXPECT_EQ(launch(add, values_, 5), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
  EXPECT_EQ(value(31), 105);
  EXPECT_EQ(value(32), 0);
  struct {
    CUdeviceptr values;
    int amount;
  } buffer = {values_, 7};
  size_t bytes = 12;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  EXPECT_EQ(CU(cuLaunchKernel)(add, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, extra), CUDA_SUCCESS);
  EXPECT_EQ(value(0), 212);
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 64;
  config.blockDimY = config.blockDimZ = 1;
  int amount = 1;
  void* arguments[] = {&values_, &amount};
  EXPECT_EQ(CU(cuLaunchKernelEx)(&config, add, arguments, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(value(63), 101);
}

TEST_F(Driver, FindsVariables) {
  CUmodule module = nullptr;
  CUfunction add = nullptr;
  CUdeviceptr more = 0;
  size_t bytes = 0;
  ASSERT_EQ(CU(cuModuleLoadData)(&module, kAdd), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuModuleGetFunction)(&add, module, "add"), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuModuleGetGlobal)(&more, &bytes, module, "more"), CUDA_SUCCESS);
  EXPECT_EQ(bytes, 4u);
  EXPECT_EQ(CU(cuMemsetD32)(more, 1000, 1), CUDA_SUCCESS);
  EXPECT_EQ(launch(add, values_, 1), CUDA_SUCCESS);
  EXPECT_EQ(value(3), 1001);
  EXPECT_EQ(CU(cuModuleGetGlobal)(&more, &bytes, module, "less"), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(CU(cuModuleGetFunction)(&add, module, "subtract"), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(CU(cuModuleUnload)(module), CUDA_SUCCESS);
}

TEST_F(Driver, SaysWhatIsWrongWithPtx) {
  CUmodule module = nullptr;
  char errors[512] = "", infos[64] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                            CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {errors, reinterpret_cast<void*>(sizeof errors), infos,
                    reinterpret_cast<void*>(sizeof infos)};
  std::string broken = kAdd;
  broken.replace(broken.find("%r3, %r1;"), 9, "%r3 %r1; ");
  EXPECT_EQ(CU(cuModuleLoadDataEx)(&module, broken.c_str(), 4, options, values), CUDA_ERROR_INVALID_PTX);
  EXPECT_NE(std::string(errors).find("line 16"), std::string::npos) << errors;
  values[1] = reinterpret_cast<void*>(sizeof errors);
  values[3] = reinterpret_cast<void*>(sizeof infos);
  EXPECT_EQ(CU(cuModuleLoadDataEx)(&module, kAdd, 4, options, values), CUDA_SUCCESS);
  EXPECT_STREQ(errors, "");
  EXPECT_EQ(CU(cuModuleLoad)(&module, "/no/such/file.ptx"), CUDA_ERROR_FILE_NOT_FOUND);
  EXPECT_EQ(CU(cuModuleLoadData)(&module, "this is no code"), CUDA_ERROR_INVALID_IMAGE);
}

TEST_F(Driver, LoadsLibraries) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUfunction add = nullptr;
  CUmodule module = nullptr;
  unsigned count = 0;
  ASSERT_EQ(CU(cuLibraryLoadData)(&library, kAdd, nullptr, nullptr, 0, nullptr, nullptr, 0), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuLibraryGetKernelCount)(&count, library), CUDA_SUCCESS);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(CU(cuLibraryGetKernel)(&kernel, library, "less"), CUDA_ERROR_NOT_FOUND);
  ASSERT_EQ(CU(cuLibraryGetKernel)(&kernel, library, "add"), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuKernelGetFunction)(&add, kernel), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuLibraryGetModule)(&module, library), CUDA_SUCCESS);
  EXPECT_EQ(launch(add, values_, 2), CUDA_SUCCESS);
  EXPECT_EQ(launch(reinterpret_cast<CUfunction>(kernel), values_, 3), CUDA_SUCCESS);
  EXPECT_EQ(value(0), 205);
  size_t offset = 9, bytes = 9;
  EXPECT_EQ(CU(cuFuncGetParamInfo)(add, 1, &offset, &bytes), CUDA_SUCCESS);
  EXPECT_EQ(offset, 8u);
  EXPECT_EQ(bytes, 4u);
  EXPECT_EQ(CU(cuLibraryUnload)(library), CUDA_SUCCESS);
}

TEST_F(Driver, CopiesAndFills) {
  int host[64], back[64] = {};
  for (int i = 0; i < 64; ++i) host[i] = i * i + 256;
  CUdeviceptr other = 0, base = 0;
  size_t pitch = 0, bytes = 0;
  EXPECT_EQ(CU(cuMemcpyHtoD)(values_, host, sizeof host), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemAllocPitch)(&other, &pitch, 16, 16, 4), CUDA_SUCCESS);
  EXPECT_GE(pitch, 16u);
  CUDA_MEMCPY2D rows{};
  rows.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  rows.srcDevice = values_;
  rows.srcPitch = 16;
  rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  rows.dstDevice = other;
  rows.dstPitch = pitch;
  rows.WidthInBytes = rows.Height = 16;
  EXPECT_EQ(CU(cuMemcpy2D)(&rows), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemsetD2D16)(other, pitch, 0x0102, 2, 3), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemcpyDtoH)(back, other + 2 * pitch, 16), CUDA_SUCCESS);
  EXPECT_EQ(back[0], 0x01020102);
  EXPECT_EQ(back[1], 81 + 256);
  EXPECT_EQ(CU(cuMemsetD8)(other, 7, 5), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemcpyDtoD)(values_, other, 8), CUDA_SUCCESS);
  EXPECT_EQ(value(0), 0x07070707);
  EXPECT_EQ(value(1), 0x00000107);
  EXPECT_EQ(CU(cuMemGetAddressRange)(&base, &bytes, values_ + 20), CUDA_SUCCESS);
  EXPECT_EQ(base, values_);
  EXPECT_EQ(bytes, 256u);
  EXPECT_EQ(CU(cuMemFree)(other), CUDA_SUCCESS);
}

TEST_F(Driver, OrdersStreamsByEvents) {
  CUfunction add = function(kAdd, "add");
  CUstream first = nullptr, second = nullptr;
  CUevent done = nullptr, end = nullptr;
  ASSERT_EQ(CU(cuStreamCreate)(&first, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuStreamCreateWithPriority)(&second, CU_STREAM_NON_BLOCKING, -1), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuEventCreate)(&done, 0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuEventCreate)(&end, 0), CUDA_SUCCESS);
  EXPECT_EQ(launch(add, values_, 1, 32, first), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuEventRecord)(done, first), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuStreamWaitEvent)(second, done, 0), CUDA_SUCCESS);
  EXPECT_EQ(launch(add, values_, 2, 32, second), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuEventRecord)(end, second), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuStreamSynchronize)(second), CUDA_SUCCESS);
  float ms = -1;
  EXPECT_EQ(CU(cuEventElapsedTime)(&ms, done, end), CUDA_SUCCESS);
  EXPECT_GE(ms, 0);
  EXPECT_EQ(value(0), 203);
  EXPECT_EQ(CU(cuStreamDestroy)(first), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuStreamDestroy)(second), CUDA_SUCCESS);
}

TEST_F(Driver, TellsOfKernels) {
  CUfunction add = function(kAdd, "add");
  int most = 0, version = 0, blocks = 0, grid = 0, block = 0;
  EXPECT_EQ(CU(cuFuncGetAttribute)(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, add), CUDA_SUCCESS);
  EXPECT_EQ(most, 1024);
  EXPECT_EQ(CU(cuFuncGetAttribute)(&version, CU_FUNC_ATTRIBUTE_BINARY_VERSION, add), CUDA_SUCCESS);
  EXPECT_EQ(version, 90);
  EXPECT_EQ(CU(cuFuncSetAttribute)(add, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536),
            CUDA_SUCCESS);
  EXPECT_EQ(CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, add, 256, 0), CUDA_SUCCESS);
  EXPECT_EQ(blocks, 8);
  EXPECT_EQ(CU(cuOccupancyMaxPotentialBlockSize)(&grid, &block, add, nullptr, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(block, 1024);
}

TEST_F(Driver, FindsFunctionsByName) {
  void* function = nullptr;
  CUdriverProcAddressQueryResult found;
  EXPECT_EQ(CU(cuGetProcAddress)("cuMemAlloc", &function, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &found),
            CUDA_SUCCESS);
  EXPECT_EQ(found, CU_GET_PROC_ADDRESS_SUCCESS);
  ASSERT_NE(function, nullptr);
  CUdeviceptr memory = 0;
  EXPECT_EQ(reinterpret_cast<decltype(&cuMemAlloc)>(function)(&memory, 64), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemFree)(memory), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuGetProcAddress)("cuLaunchKernelEx", &function, 11000, CU_GET_PROC_ADDRESS_DEFAULT, &found),
            CUDA_SUCCESS);
  EXPECT_EQ(found, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(CU(cuGetProcAddress)("cuNoSuchThing", &function, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &found),
            CUDA_SUCCESS);
  EXPECT_EQ(found, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  EXPECT_EQ(function, nullptr);
}

TEST_F(Driver, NamesErrors) {
  const char* text = nullptr;
  EXPECT_EQ(CU(cuGetErrorName)(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, &text), CUDA_SUCCESS);
  EXPECT_STREQ(text, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE");
  EXPECT_EQ(CU(cuGetErrorString)(CUDA_ERROR_INVALID_VALUE, &text), CUDA_SUCCESS);
  EXPECT_STREQ(text, "invalid argument");
  EXPECT_EQ(CU(cuGetErrorName)(CUresult(123456), &text), CUDA_ERROR_INVALID_VALUE);
}

// The error of each misuse.
TEST_F(Driver, RefusesMisuse) {
  CUfunction add = function(kAdd, "add");
  CUdeviceptr memory = 0;
  CUmodule module = nullptr;
  int amount = 0;
  void* arguments[] = {&values_, &amount};
  EXPECT_EQ(CU(cuInit)(1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuMemAlloc)(&memory, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuMemAlloc)(&memory, size_t(1) << 62), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(CU(cuMemFree)(values_ + 16), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuMemsetD32)(values_ + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuMemcpyHtoD)(0, &amount, 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuModuleLoadData)(&module, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch(add, values_, 1, 1025), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuLaunchKernel)(add, 0, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuLaunchKernel)(nullptr, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr),
            CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(CU(cuEventRecord)(nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
}

// cuda.h wants a map at a multiple of 64. The answers and the bytes are those of a driver on an
// H100, which takes it anywhere; the emulator says so once more.
TEST_F(Driver, TakesATensorMapAtAnyAddressAndTheEmulatorSaysSo) {
  alignas(64) char maps[3 * 128];
  const cuuint64_t dims[] = {256, 128}, strides[] = {512};
  const cuuint32_t box[] = {64, 32}, steps[] = {1, 1};
  const auto encode = [&](char* at) {
    return CU(cuTensorMapEncodeTiled)(reinterpret_cast<CUtensorMap*>(at), CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2,
                                      reinterpret_cast<void*>(values_), dims, strides, box, steps,
                                      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                      CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  testing::internal::CaptureStderr();
  EXPECT_EQ(encode(maps), CUDA_SUCCESS);
  EXPECT_EQ(encode(maps + 64), CUDA_SUCCESS);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  for (const size_t off : {size_t(1), size_t(16), size_t(32), size_t(72)}) {
    ASSERT_EQ(encode(maps), CUDA_SUCCESS);
    const std::string aligned(maps, 128);
    testing::internal::CaptureStderr();
    EXPECT_EQ(encode(maps + off), CUDA_SUCCESS) << off;
    EXPECT_EQ(CU(cuTensorMapReplaceAddress)(reinterpret_cast<CUtensorMap*>(maps + off),
                                            reinterpret_cast<void*>(values_)),
              CUDA_SUCCESS);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(std::string(maps + off, 128), aligned) << off;
    const std::string lies = ": the CUtensorMap lies " + std::to_string(off % 64) +
                             " bytes past a multiple of 64, and cuda.h wants";
    for (const char* function : {"cuTensorMapEncodeTiled", "cuTensorMapReplaceAddress"})
      EXPECT_EQ(said.find(function + lies) != std::string::npos, emulated()) << said;
  }
}

TEST_F(Driver, RefusesCodeForALaterDevice) {
  CUmodule module = nullptr;
  std::string later = kAdd;
  later.replace(later.find("sm_80"), 5, "sm_100");
  later.replace(later.find("8.0"), 3, "8.6");
  EXPECT_EQ(CU(cuModuleLoadData)(&module, later.c_str()), CUDA_ERROR_INVALID_PTX);
}

// Machine code without PTX is what only a GPU runs.
TEST_F(Driver, EmulatorRefusesACubin) {
  if (!emulated()) GTEST_SKIP() << "this is no emulator";
  CUmodule module = nullptr;
  char errors[256] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {errors, reinterpret_cast<void*>(sizeof errors)};
  const char cubin[64] = "\177ELF\2\1\1";
  EXPECT_EQ(CU(cuModuleLoadDataEx)(&module, cubin, 2, options, values), CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_NE(std::string(errors).find("is a cubin, machine code without the PTX"), std::string::npos)
      << errors;
}

// A container as nvcc makes it: a header, and one entry with the PTX as it is.
TEST_F(Driver, EmulatorLoadsAFatbin) {
  if (!emulated()) GTEST_SKIP() << "this is no emulator";
  const size_t text = (sizeof kAdd + 7) / 8 * 8;
  std::vector<uint8_t> fatbin(16 + 64 + text, 0);
  const auto put = [&fatbin](size_t at, auto value) { std::memcpy(&fatbin[at], &value, sizeof value); };
  put(0, uint32_t(0xBA55ED50));
  put(4, uint16_t(1));
  put(6, uint16_t(16));
  put(8, uint64_t(64 + text));
  put(16, uint16_t(1));
  put(20, uint32_t(64));
  put(24, uint64_t(text));
  put(44, uint32_t(80));
  std::memcpy(&fatbin[80], kAdd, sizeof kAdd);
  CUfunction add = function(reinterpret_cast<const char*>(fatbin.data()), "add");
  EXPECT_EQ(launch(add, values_, 4), CUDA_SUCCESS);
  EXPECT_EQ(value(0), 104);
}

}  // namespace
