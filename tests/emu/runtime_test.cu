// SPDX-License-Identifier: MIT
//
// The CUDA runtime as programs use it: the same tests run with NVIDIA's runtime on a GPU and with
// the emulator's. What calls answer here is what a driver (13.0) on an H200 answered.

#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <vector>

#include "tests/emu/runtime.cuh"

namespace runtime {

using namespace runtime_test;

__device__ int counter = 3;
__constant__ float table[4] = {1, 2, 3, 4};
__device__ int* pointer_to_counter = &counter;
__managed__ int shared_with_host = 7;

struct Triple {
  char a;
  double b;
  short c;
};

__global__ void arguments(int* out, char a, Triple t, float f) {
  out[0] = a, out[1] = t.a, out[2] = int(t.b * 2), out[3] = t.c, out[4] = int(f * 4);
}
__global__ void symbols(int* out) {
  out[0] = counter, out[1] = int(table[2]), out[2] = *pointer_to_counter, out[3] = shared_with_host;
  counter = 11;
  shared_with_host += 1;
}
__global__ void add(int* values, int amount) { values[threadIdx.x] += amount; }
__global__ void reverse(int* values) {
  extern __shared__ int buffer[];
  buffer[threadIdx.x] = values[threadIdx.x];
  __syncthreads();
  values[threadIdx.x] = buffer[blockDim.x - 1 - threadIdx.x];
}
__global__ void half_of_shared(int* out) {
  __shared__ int values[8192];
  values[threadIdx.x] = 5;
  __syncthreads();
  if (out) out[threadIdx.x] = values[threadIdx.x];
}
__global__ __launch_bounds__(128) void bounded(int* values) { values[threadIdx.x] = 1; }
__global__ void cluster_shape(int* out) {
  unsigned size, rank;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  out[blockIdx.x] = int(size * 100 + rank);
}
__global__ __cluster_dims__(2) void pairs(int* out) {
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  out[blockIdx.x] = int(rank);
}
__global__ void says(int x) { printf("thread %u says %d\n", threadIdx.x, x); }
__global__ void reads_unwritten(int* out) {
  __shared__ int nobody_wrote[32];
  out[threadIdx.x] = nobody_wrote[threadIdx.x];
}
__global__ void past_the_end(int* values) { values[threadIdx.x + 64] = 1; }

TEST_F(Runtime, PassesArgumentsByTheirLayout) {
  arguments<<<1, 1>>>(values_, -3, Triple{-5, 2.5, 700}, 1.25f);
  EXPECT_EQ(read(5), (std::vector<int>{-3, -5, 5, 700, 5}));
}

TEST_F(Runtime, PlacesAndFillsSymbols) {
  const int four = 4;
  ASSERT_EQ(cudaMemcpyToSymbol(counter, &four, sizeof four), cudaSuccess);
  shared_with_host = 41;
  symbols<<<1, 1>>>(values_);
  EXPECT_EQ(read(4), (std::vector<int>{4, 3, 4, 41}));
  EXPECT_EQ(shared_with_host, 42);
  int now = 0;
  EXPECT_EQ(cudaMemcpyFromSymbol(&now, counter, sizeof now), cudaSuccess);
  EXPECT_EQ(now, 11);
  size_t bytes = 0;
  void* address = nullptr;
  EXPECT_EQ(cudaGetSymbolSize(&bytes, table), cudaSuccess);
  EXPECT_EQ(bytes, sizeof table);
  EXPECT_EQ(cudaGetSymbolAddress(&address, shared_with_host), cudaSuccess);
  EXPECT_EQ(address, &shared_with_host);
}

TEST_F(Runtime, RefusesWhatIsOutsideASymbol) {
  float host[8] = {};
  EXPECT_EQ(cudaMemcpyToSymbol(table, host, 20), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyToSymbol(table, host, 4, 13), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyToSymbol(table, host, 4, 0, cudaMemcpyDeviceToHost), cudaErrorInvalidMemcpyDirection);
  EXPECT_EQ(cudaMemcpyFromSymbol(host, static_cast<const void*>(host), 4), cudaErrorInvalidSymbol);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidSymbol);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(Runtime, RefusesLaunchesAsHardwareDoes) {
  const auto* const plain = reinterpret_cast<const void*>(&half_of_shared);
  EXPECT_EQ(launch(plain, 1, 32), cudaSuccess);
  for (const dim3 grid : {dim3(0), dim3(1, 0), dim3(1, 65536), dim3(1, 1, 65536), dim3(0x80000000u)}) {
    EXPECT_EQ(launch(plain, grid, 32), cudaErrorInvalidValue) << grid.x << " " << grid.y << " " << grid.z;
  }
  for (const dim3 block : {dim3(0), dim3(1025), dim3(1, 1, 65), dim3(512, 4)}) {
    EXPECT_EQ(launch(plain, 1, block), cudaErrorInvalidValue) << block.x << " " << block.y << " " << block.z;
  }
  EXPECT_EQ(launch(reinterpret_cast<const void*>(&bounded), 1, 64), cudaSuccess);
  EXPECT_EQ(launch(reinterpret_cast<const void*>(&bounded), 1, 129), cudaErrorInvalidValue);
  EXPECT_EQ(launch(nullptr, 1, 32), cudaErrorInvalidDeviceFunction);
  if (emulator()) {  // NVIDIA's runtime follows both pointers
    EXPECT_EQ(launch(values_, 1, 32), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaLaunchKernel(plain, 1, 32, nullptr, 0, nullptr), cudaErrorInvalidValue);
  }
  cudaGetLastError();
  add<<<0, 1>>>(values_, 1);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

TEST_F(Runtime, WantsToBeAskedForMuchSharedMemory) {
  const auto* const kernel = reinterpret_cast<const void*>(&reverse);
  const auto* const with_static = reinterpret_cast<const void*>(&half_of_shared);
  constexpr auto kSize = cudaFuncAttributeMaxDynamicSharedMemorySize;
  EXPECT_EQ(launch(kernel, 1, 32, 49152), cudaSuccess);
  EXPECT_EQ(launch(kernel, 1, 32, 49153), cudaErrorInvalidValue);
  EXPECT_EQ(launch(with_static, 1, 32, 16385), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFuncSetAttribute(kernel, kSize, 232448), cudaSuccess);
  EXPECT_EQ(cudaFuncSetAttribute(kernel, kSize, 232449), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFuncSetAttribute(kernel, kSize, -1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFuncSetAttribute(with_static, kSize, 232448 - 32768), cudaSuccess);
  EXPECT_EQ(cudaFuncSetAttribute(with_static, kSize, 232448 - 32767), cudaErrorInvalidValue);
  EXPECT_EQ(launch(kernel, 1, 32, 232448), cudaSuccess);
  EXPECT_EQ(cudaFuncSetAttribute(kernel, kSize, 1000), cudaSuccess);
  EXPECT_EQ(launch(kernel, 1, 32, 1001), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFuncSetAttribute(kernel, kSize, 49152), cudaSuccess);
  cudaFuncAttributes attributes{};
  EXPECT_EQ(cudaFuncGetAttributes(&attributes, with_static), cudaSuccess);
  EXPECT_EQ(attributes.sharedSizeBytes, 32768u);
  EXPECT_EQ(attributes.maxThreadsPerBlock, 1024);
  EXPECT_EQ(attributes.binaryVersion, 90);
  EXPECT_GT(attributes.numRegs, 0);
  EXPECT_EQ(cudaFuncGetAttributes(&attributes, bounded), cudaSuccess);
  EXPECT_EQ(attributes.maxThreadsPerBlock, 128);
}

cudaError_t launch_clusters(void (*kernel)(int*), int* out, unsigned grid, unsigned x, unsigned y = 1) {
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {x, y, 1};
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = 1;
  config.attrs = attributes;
  config.numAttrs = 2;
  return cudaLaunchKernelEx(&config, kernel, out);
}

TEST_F(Runtime, LaunchesClusters) {
  EXPECT_EQ(launch_clusters(cluster_shape, values_, 8, 4), cudaSuccess);
  EXPECT_EQ(read(8), (std::vector<int>{400, 401, 402, 403, 400, 401, 402, 403}));
  cluster_shape<<<2, 1>>>(values_);
  EXPECT_EQ(read(2), (std::vector<int>{100, 100}));
  pairs<<<4, 1>>>(values_);
  EXPECT_EQ(read(4), (std::vector<int>{0, 1, 0, 1}));
}

TEST_F(Runtime, RefusesClustersAsHardwareDoes) {
  EXPECT_EQ(launch_clusters(cluster_shape, values_, 7, 2), cudaErrorInvalidClusterSize);
  EXPECT_EQ(launch_clusters(cluster_shape, values_, 9, 9), cudaErrorInvalidClusterSize);
  EXPECT_EQ(launch_clusters(cluster_shape, values_, 8, 0), cudaErrorInvalidClusterSize);
  EXPECT_EQ(launch_clusters(cluster_shape, values_, 8, 0, 0), cudaErrorInvalidClusterSize);
  EXPECT_EQ(launch_clusters(cluster_shape, values_, 16, 16), cudaErrorInvalidClusterSize);
  constexpr auto kLarger = cudaFuncAttributeNonPortableClusterSizeAllowed;
  EXPECT_EQ(cudaFuncSetAttribute(cluster_shape, kLarger, 1), cudaSuccess);
  EXPECT_EQ(launch_clusters(cluster_shape, values_, 16, 16), cudaSuccess);
  EXPECT_EQ(launch_clusters(cluster_shape, values_, 17, 17), cudaErrorInvalidClusterSize);
  EXPECT_EQ(launch_clusters(pairs, values_, 4, 2), cudaSuccess);
  EXPECT_EQ(launch_clusters(pairs, values_, 4, 4), cudaErrorInvalidClusterSize);
  pairs<<<3, 1>>>(values_);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidClusterSize);
}

TEST_F(Runtime, ReckonsOccupancyByThreadsAndSharedMemory) {
  const auto blocks = [](auto* kernel, int threads, size_t shared) {
    int n = -1;
    EXPECT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, kernel, threads, shared), cudaSuccess);
    return n;
  };
  EXPECT_EQ(blocks(add, 1, 0), 32);
  EXPECT_EQ(blocks(add, 33, 0), 32);
  EXPECT_EQ(blocks(add, 128, 0), 16);
  EXPECT_EQ(blocks(add, 1024, 0), 2);
  EXPECT_EQ(blocks(add, 1025, 0), 0);
  EXPECT_EQ(blocks(half_of_shared, 32, 0), 6);
  EXPECT_EQ(blocks(add, 32, 10000), 20);
  EXPECT_EQ(blocks(add, 32, 49152), 4);
  EXPECT_EQ(blocks(add, 32, 49153), 0);
  EXPECT_EQ(cudaFuncSetAttribute(add, cudaFuncAttributeMaxDynamicSharedMemorySize, 232448), cudaSuccess);
  EXPECT_EQ(blocks(add, 32, 115712), 2);
  EXPECT_EQ(blocks(add, 32, 115713), 1);
  EXPECT_EQ(blocks(add, 32, 232448), 1);
  EXPECT_EQ(blocks(add, 32, 232449), 0);
  int n = 0;
  EXPECT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, add, 0, 0), cudaErrorInvalidValue);
}

TEST_F(Runtime, ChecksMemoryRanges) {
  char host[512] = {};
  EXPECT_EQ(cudaMemcpy(values_, host, 256, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(values_, host, 1 << 30, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(values_, host, 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host, values_, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(values_, host, 4, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(values_, host, 4, cudaMemcpyKind(7)), cudaErrorInvalidMemcpyDirection);
  EXPECT_EQ(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(cudaMemset(host, 1, 8), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(nullptr, 1, 8), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(values_, 0x101, 256), cudaSuccess);
  EXPECT_EQ(read(1)[0], 0x01010101);
  EXPECT_EQ(cudaMemcpy2D(values_, 9, host, 20, 10, 10, cudaMemcpyHostToDevice), cudaErrorInvalidPitchValue);
  int rows[3][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}};
  EXPECT_EQ(cudaMemcpy2D(values_, 8, rows, 16, 8, 3, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(read(6), (std::vector<int>{1, 2, 5, 6, 9, 10}));
}

TEST_F(Runtime, FreesOnce) {
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 0), cudaSuccess);
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(cudaMalloc(&memory, size_t(1) << 50), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  EXPECT_EQ(cudaFree(&memory), cudaErrorInvalidValue);
  ASSERT_EQ(cudaMalloc(&memory, 100), cudaSuccess);
  EXPECT_EQ(cudaFree(static_cast<char*>(memory) + 4), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeHost(memory), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue);
  ASSERT_EQ(cudaMallocAsync(&memory, 100, stream_), cudaSuccess);
  EXPECT_EQ(cudaFreeAsync(memory, stream_), cudaSuccess);
  size_t free = 0, total = 0, pitch = 0;
  EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  EXPECT_TRUE(0 < free && free <= total);
  ASSERT_EQ(cudaMallocPitch(&memory, &pitch, 513, 3), cudaSuccess);
  EXPECT_EQ(pitch, 1024u);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(Runtime, SharesPinnedAndManagedMemoryWithKernels) {
  int *pinned = nullptr, *managed = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, 5000), cudaSuccess);
  ASSERT_EQ(cudaMallocManaged(&managed, 5000), cudaSuccess);
  for (int* memory : {pinned, managed}) {
    for (int i = 0; i < 32; ++i) memory[i] = i;
    add<<<1, 32>>>(memory, 100);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(memory[31], 131);
  }
  EXPECT_EQ(cudaFree(pinned), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeHost(managed), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
  EXPECT_EQ(cudaFree(managed), cudaSuccess);
}

TEST_F(Runtime, LooksUpTheDriver) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  EXPECT_EQ(cudaGetDriverEntryPointByVersion("cuNoSuchThing", &function, 12000, cudaEnableDefault, &found),
            cudaSuccess);
  EXPECT_EQ(found, cudaDriverEntryPointSymbolNotFound);
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(
      cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 11000, cudaEnableDefault, &found),
      cudaSuccess);
  EXPECT_EQ(found, cudaDriverEntryPointVersionNotSufficent);
  ASSERT_EQ(
      cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found),
      cudaSuccess);
  ASSERT_EQ(found, cudaDriverEntryPointSuccess);
  CUtensorMap map;
  const cuuint64_t dims[] = {64, 32}, strides[] = {128};
  const cuuint32_t box[] = {32, 16}, steps[] = {1, 1};
  EXPECT_EQ(reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function)(
                &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, values_, dims, strides, box, steps,
                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_64B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
            CUDA_SUCCESS);
  const uint64_t expected[16] = {reinterpret_cast<uint64_t>(values_),
                                 uint64_t(8) << 32 | 2 << 17 | 2 << 13 | 6 << 7 | 1 << 4,
                                 0,
                                 0,
                                 uint64_t(31) << 32 | 63,
                                 0,
                                 uint64_t(31) << 56,
                                 15,
                                 1024,
                                 512};
  EXPECT_EQ(std::memcmp(&map, expected, sizeof map), 0);
}

TEST_F(Runtime, NamesErrors) {
  EXPECT_STREQ(cudaGetErrorName(cudaErrorInvalidValue), "cudaErrorInvalidValue");
  EXPECT_STREQ(cudaGetErrorString(cudaSuccess), "no error");
  EXPECT_STREQ(cudaGetErrorName(cudaError_t(12345)), "unrecognized error code");
  int version = 0, count = 0, value = 0;
  EXPECT_EQ(cudaRuntimeGetVersion(&version), cudaSuccess);
  EXPECT_EQ(version / 1000, 13);
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_GE(count, 1);
  EXPECT_EQ(cudaSetDevice(99), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0), cudaSuccess);
  EXPECT_EQ(value, 132);
}

// ---- only the emulator ----

class Emulator : public Runtime {
 protected:
  void SetUp() override {
    Runtime::SetUp();
    if (!emulator() && !IsSkipped()) GTEST_SKIP() << "this is a real runtime";
  }
};

TEST_F(Emulator, PrintsFromTheDevice) {
  testing::internal::CaptureStdout();
  says<<<1, 2>>>(42);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  std::fflush(stdout);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "thread 0 says 42\nthread 1 says 42\n");
}

TEST_F(Emulator, EndsTheProgramAtAFault) {
  testing::FLAGS_gtest_death_test_style = "fast";
  EXPECT_EXIT((past_the_end<<<1, 32>>>(values_)), testing::ExitedWithCode(3), "fault bounds in ");
}

// gg_emu_test runs it by itself, with and without --allow.
TEST_F(Emulator, DISABLED_ReadsUnwrittenSharedMemory) {
  reads_unwritten<<<1, 32>>>(values_);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

// Programs that link the driver's library too find what there is of it.
TEST_F(Emulator, IsTheDriversLibraryToo) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  void* looked_up = nullptr;
  ASSERT_EQ(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &looked_up, 13000, cudaEnableDefault,
                                             nullptr),
            cudaSuccess);
  EXPECT_EQ(dlsym(library, "cuTensorMapEncodeTiled"), looked_up);
  EXPECT_NE(dlsym(library, "cuGetErrorString"), nullptr);
  const auto fill = reinterpret_cast<decltype(&cuMemsetD32Async)>(dlsym(library, "cuMemsetD32Async"));
  ASSERT_NE(fill, nullptr);
  const CUdeviceptr words = reinterpret_cast<CUdeviceptr>(values_);
  int found[4] = {1, 2, 3, 4};
  ASSERT_EQ(cudaMemcpy(values_, found, sizeof found, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(fill(words + 4, 0x12345678, 2, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(fill(words + 2, 0, 1, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(fill(0, 0, 1, nullptr), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(cudaMemcpy(found, values_, sizeof found, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(std::vector<int>(found, found + 4), (std::vector<int>{1, 0x12345678, 0x12345678, 4}));
  dlclose(library);
}

// gg_emu_test runs it by itself, with --multiprocessors 3.
TEST_F(Emulator, DISABLED_HasThreeMultiprocessors) {
  int count = 0;
  ASSERT_EQ(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0), cudaSuccess);
  EXPECT_EQ(count, 3);
  cudaDeviceProp properties;
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  EXPECT_EQ(properties.multiProcessorCount, 3);
}

TEST_F(Emulator, KeepsTheHostOutOfDeviceMemory) {
  // A sanitizer handles the signal, unless told not to, and exits.
  EXPECT_EXIT((std::signal(SIGSEGV, SIG_DFL), *values_ = 1), testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(Emulator, SaysWhatIsNotSupported) {
  testing::internal::CaptureStderr();
  cudaTextureObject_t texture = 0;
  EXPECT_EQ(cudaCreateTextureObject(&texture, nullptr, nullptr, nullptr), cudaErrorNotSupported);
  cudaArray_t array = nullptr;
  cudaChannelFormatDesc format = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
  EXPECT_EQ(cudaMallocArray(&array, &format, 16, 16, 0), cudaErrorNotSupported);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotSupported);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("cudaCreateTextureObject is not supported by the emulator"), std::string::npos) << said;
  EXPECT_NE(said.find("cudaMallocArray is not supported by the emulator"), std::string::npos) << said;
}

TEST_F(Emulator, ShowsMemoryAndCounts) {
  const GgEmuInterface* emu = emulator();
  ASSERT_EQ(emu->version, kGgEmuInterface);
  EXPECT_EQ(emu->host(values_, 65 * sizeof(int)), nullptr);
  int* const inside = static_cast<int*>(emu->host(values_, 64 * sizeof(int)));
  ASSERT_NE(inside, nullptr);
  inside[3] = 33;
  EXPECT_EQ(read(4)[3], 33);
  const auto counter = [emu](const std::string& name) {
    struct Search {
      std::string name;
      uint64_t value;
    } search{name, ~0ull};
    emu->counts(
        [](void* context, const char* counter, uint64_t value) {
          auto& wanted = *static_cast<Search*>(context);
          if (wanted.name == counter) wanted.value = value;
        },
        &search);
    return search.value;
  };
  emu->reset_counts();
  EXPECT_EQ(counter("instructions"), 0u);
  add<<<2, 64>>>(values_, 1);
  EXPECT_EQ(counter("global_load_bytes"), 2u * 64 * 4);
  EXPECT_EQ(counter("global_store_bytes"), 2u * 64 * 4);
  EXPECT_EQ(counter("global_load_sectors"), 2u * 64 * 4 / 32);
  reverse<<<1, 32, 128>>>(values_);
  EXPECT_EQ(counter("shared_store_bytes"), 128u);
  EXPECT_EQ(counter("shared_load_bytes"), 128u);
  EXPECT_EQ(counter("shared_wavefronts"), 2u);
  EXPECT_EQ(counter("shared_bank_conflicts"), 0u);
  EXPECT_EQ(counter("instructions_barrier"), 1u);
  emu->set_order(5, 1);
  add<<<2, 64>>>(values_, 1);
  emu->set_order(0, 0);
  emu->reset_counts();
}

}  // namespace runtime
