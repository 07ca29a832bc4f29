// SPDX-License-Identifier: MIT
//
// Memory of the host and pools, boxes, and what an address is: the same tests run with NVIDIA's
// runtime on a GPU and with the emulator's.

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/emu/runtime.cuh"

namespace host {

using namespace runtime_test;

__global__ void add(int* values, int amount) { values[threadIdx.x] += amount; }

TEST_F(Runtime, TellsWhatAnAddressIs) {
  int *pinned = nullptr, *managed = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, 5000), cudaSuccess);
  ASSERT_EQ(cudaMallocManaged(&managed, 5000), cudaSuccess);
  cudaPointerAttributes p{};
  EXPECT_EQ(cudaPointerGetAttributes(&p, pinned + 1), cudaSuccess);
  EXPECT_EQ(p.type, cudaMemoryTypeHost);
  EXPECT_EQ(p.devicePointer, pinned + 1);
  EXPECT_EQ(cudaPointerGetAttributes(&p, managed), cudaSuccess);
  EXPECT_EQ(p.type, cudaMemoryTypeManaged);
  EXPECT_EQ(cudaPointerGetAttributes(&p, values_), cudaSuccess);
  EXPECT_EQ(p.type, cudaMemoryTypeDevice);
  EXPECT_EQ(p.hostPointer, nullptr);
  EXPECT_EQ(cudaPointerGetAttributes(&p, &p), cudaSuccess);
  EXPECT_EQ(p.type, cudaMemoryTypeUnregistered);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
  EXPECT_EQ(cudaFree(managed), cudaSuccess);
}

// Kernels see registered memory at an address that the program asks for; a GPU may use the host's.
TEST_F(Runtime, SharesRegisteredMemoryWithKernels) {
  std::vector<int> memory(5000, 1), other(16, 1);
  int *device = nullptr, *inside = nullptr;
  const size_t bytes = memory.size() * sizeof(int);
  unsigned flags = 0;
  EXPECT_EQ(cudaHostGetDevicePointer(&device, memory.data(), 0), cudaErrorInvalidValue);
  ASSERT_EQ(cudaHostRegister(memory.data(), bytes, cudaHostRegisterMapped), cudaSuccess);
  EXPECT_EQ(cudaHostRegister(memory.data() + 10, 4, 0), cudaErrorHostMemoryAlreadyRegistered);
  EXPECT_EQ(cudaHostGetFlags(&flags, memory.data()), cudaSuccess);
  EXPECT_TRUE(flags & cudaHostRegisterMapped);
  ASSERT_EQ(cudaHostGetDevicePointer(&device, memory.data(), 0), cudaSuccess);
  ASSERT_EQ(cudaHostGetDevicePointer(&inside, memory.data() + 4000, 0), cudaSuccess);
  EXPECT_EQ(inside - device, 4000);
  add<<<1, 32>>>(inside, 100);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(memory[4031], 101);
  EXPECT_EQ(memory[4032], 1);
  memory[0] = 7;
  EXPECT_EQ(cudaMemcpy(values_, memory.data(), 4, cudaMemcpyHostToDevice), cudaSuccess);
  add<<<1, 1>>>(device, 1);
  EXPECT_EQ(read(1)[0], 7);
  cudaPointerAttributes attributes{};
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, memory.data()), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  EXPECT_EQ(attributes.devicePointer, device);
  ASSERT_EQ(cudaHostUnregister(memory.data()), cudaSuccess);
  EXPECT_EQ(memory[0], 8);
  EXPECT_EQ(memory[4031], 101);
  EXPECT_EQ(cudaHostUnregister(memory.data()), cudaErrorHostMemoryNotRegistered);
  EXPECT_EQ(cudaHostRegister(other.data(), 0, 0), cudaErrorInvalidValue);
}

TEST_F(Runtime, AllocatesFromPools) {
  cudaMemPool_t pool = nullptr;
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  ASSERT_EQ(cudaMemPoolCreate(&pool, &properties), cudaSuccess);
  unsigned long long keep = 1 << 20, kept = 0;
  EXPECT_EQ(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep), cudaSuccess);
  EXPECT_EQ(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept), cudaSuccess);
  EXPECT_EQ(kept, keep);
  int* memory = nullptr;
  ASSERT_EQ(cudaMallocFromPoolAsync(&memory, 256, pool, stream_), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(memory, 0, 256, stream_), cudaSuccess);
  add<<<1, 64, 0, stream_>>>(memory, 3);
  EXPECT_EQ(cudaMemcpyAsync(values_, memory, 256, cudaMemcpyDeviceToDevice, stream_), cudaSuccess);
  EXPECT_EQ(cudaFreeAsync(memory, stream_), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(read()[63], 3);
  EXPECT_EQ(cudaMemPoolDestroy(pool), cudaSuccess);
}

TEST_F(Runtime, CopiesAndFillsBoxes) {
  cudaPitchedPtr box{};
  int host[24], back[24] = {};
  for (int i = 0; i < 24; ++i) host[i] = i;
  ASSERT_EQ(cudaMalloc3D(&box, make_cudaExtent(16, 3, 2)), cudaSuccess);
  EXPECT_GE(box.pitch, 16u);
  cudaMemcpy3DParms params{};
  params.srcPtr = make_cudaPitchedPtr(host, 16, 4, 3);
  params.dstPtr = box;
  params.extent = make_cudaExtent(16, 3, 2);
  params.kind = cudaMemcpyHostToDevice;
  EXPECT_EQ(cudaMemcpy3D(&params), cudaSuccess);
  EXPECT_EQ(cudaMemset3D(box, 0, make_cudaExtent(4, 2, 2)), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);  // stream_ does not wait for the default stream
  params.srcPtr = box;
  params.srcPos = make_cudaPos(0, 1, 0);
  params.dstPtr = make_cudaPitchedPtr(back, 16, 4, 3);
  params.extent = make_cudaExtent(8, 2, 2);
  params.kind = cudaMemcpyDeviceToHost;
  EXPECT_EQ(cudaMemcpy3DAsync(&params, stream_), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(std::vector<int>(back, back + 6), (std::vector<int>{0, 5, 0, 0, 8, 9}));
  EXPECT_EQ(std::vector<int>(back + 12, back + 18), (std::vector<int>{0, 17, 0, 0, 20, 21}));
  EXPECT_EQ(cudaFree(box.ptr), cudaSuccess);
}

TEST_F(Runtime, FindsFunctionsOfTheDriver) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  EXPECT_EQ(cudaGetDriverEntryPointByVersion("cuMemAlloc", &function, 12000, cudaEnableDefault, &found),
            cudaSuccess);
  EXPECT_EQ(found, cudaDriverEntryPointSuccess);
  EXPECT_NE(function, nullptr);
}

}  // namespace host
