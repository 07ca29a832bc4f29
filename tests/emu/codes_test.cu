// SPDX-License-Identifier: MIT
//
// The error of each misuse of the runtime. The table is what NVIDIA's runtime 13.0 answered on an
// H100 with driver 580.159; the same test asks both runtimes. A grid or block of no or of too many
// threads gives cudaErrorInvalidValue there, though cudaErrorInvalidConfiguration is documented.

#include <cuda.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "common/harness/machine/emulator.h"
#include "common/harness/run/device.h"

namespace codes {

__global__ void nothing(int*) {}
__global__ void __launch_bounds__(64) few_threads(int*) {}
__global__ void __cluster_dims__(2) pairs(int*) {}
__device__ int symbol[4];

cudaError_t launch(const void* kernel, dim3 grid, dim3 block, size_t shared = 0,
                   cudaStream_t stream = nullptr) {
  int* none = nullptr;
  void* arguments[] = {&none};
  return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}
const void* const kNothing = reinterpret_cast<const void*>(nothing);

cudaError_t launch_in_clusters(dim3 grid, dim3 cluster) {
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(32);
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {cluster.x, cluster.y, cluster.z};
  config.attrs = &attribute;
  config.numAttrs = 1;
  int* none = nullptr;
  void* arguments[] = {&none};
  return cudaLaunchKernelExC(&config, kNothing, arguments);
}

cudaError_t elapsed(unsigned flags, bool record) {
  cudaEvent_t a = nullptr, b = nullptr;
  cudaEventCreateWithFlags(&a, flags);
  cudaEventCreateWithFlags(&b, flags);
  if (record) {
    cudaEventRecord(a);
    cudaEventRecord(b);
    cudaEventSynchronize(b);
  }
  float ms = 0;
  const cudaError_t error = cudaEventElapsedTime(&ms, a, b);
  cudaEventDestroy(a);
  cudaEventDestroy(b);
  return error;
}

// The code of `call` while a stream is captured, or that of the end of the capture.
cudaError_t in_capture(const std::function<cudaError_t(cudaStream_t)>& call, bool of_the_end = false) {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaStreamCreate(&stream);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  const cudaError_t error = call(stream), end = cudaStreamEndCapture(stream, &graph);
  if (graph) cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
  return of_the_end ? end : error;
}

struct Memory {
  void* device = nullptr;
  char host[64] = {};
  Memory() { cudaMalloc(&device, 256); }
  ~Memory() { cudaFree(device); }
};

struct Misuse {
  const char* what;
  cudaError_t wanted;
  std::function<cudaError_t()> call;
};

std::vector<Misuse> misused_launches() {
  return {
      {"a grid of no blocks", cudaErrorInvalidValue, [] { return launch(kNothing, dim3(0), dim3(32)); }},
      {"a grid without a y", cudaErrorInvalidValue, [] { return launch(kNothing, dim3(1, 0), dim3(32)); }},
      {"a grid of y 65536", cudaErrorInvalidValue, [] { return launch(kNothing, dim3(1, 65536), dim3(32)); }},
      {"a block of no threads", cudaErrorInvalidValue, [] { return launch(kNothing, dim3(1), dim3(0)); }},
      {"a block of 1025 threads", cudaErrorInvalidValue,
       [] { return launch(kNothing, dim3(1), dim3(1025)); }},
      {"a block of z 65", cudaErrorInvalidValue, [] { return launch(kNothing, dim3(1), dim3(1, 1, 65)); }},
      {"more threads than launch bounds", cudaErrorInvalidValue,
       [] { return launch(reinterpret_cast<const void*>(few_threads), dim3(1), dim3(128)); }},
      {"64 KB of shared memory not asked for", cudaErrorInvalidValue,
       [] { return launch(kNothing, dim3(1), dim3(32), 65536); }},
      {"300 KB of shared memory", cudaErrorInvalidValue,
       [] { return launch(kNothing, dim3(1), dim3(32), 307200); }},
      {"the attribute for 300 KB", cudaErrorInvalidValue,
       [] { return cudaFuncSetAttribute(kNothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 307200); }},
      {"an attribute of no kernel", cudaErrorInvalidDeviceFunction,
       [] {
         return cudaFuncSetAttribute(static_cast<const void*>(nullptr),
                                     cudaFuncAttributeMaxDynamicSharedMemorySize, 1);
       }},
      {"no kernel", cudaErrorInvalidDeviceFunction, [] { return launch(nullptr, dim3(1), dim3(32)); }},
      {"a grid of 3 in clusters of 2", cudaErrorInvalidClusterSize,
       [] { return launch_in_clusters(dim3(3), dim3(2)); }},
      {"clusters of 32", cudaErrorInvalidClusterSize, [] { return launch_in_clusters(dim3(32), dim3(32)); }},
      {"a grid of 3 for a kernel of pairs", cudaErrorInvalidClusterSize,
       [] { return launch(reinterpret_cast<const void*>(pairs), dim3(3), dim3(32)); }},
      {"attributes of a kernel that is none", cudaErrorInvalidDeviceFunction,
       [] {
         cudaFuncAttributes attributes;
         return cudaFuncGetAttributes(&attributes, static_cast<const void*>(nullptr));
       }},
  };
}

std::vector<Misuse> misused_memory() {
  return {
      {"memory into nothing", cudaErrorInvalidValue,
       [] { return cudaMalloc(static_cast<void**>(nullptr), 16); }},
      {"2^62 bytes", cudaErrorMemoryAllocation,
       [] {
         void* memory = nullptr;
         return cudaMalloc(&memory, size_t(1) << 62);
       }},
      {"a host address freed", cudaErrorInvalidValue,
       [] {
         int host = 0;
         return cudaFree(&host);
       }},
      {"the middle of an allocation freed", cudaErrorInvalidValue,
       [] {
         const Memory memory;
         return cudaFree(static_cast<char*>(memory.device) + 16);
       }},
      {"memory freed twice", cudaErrorInvalidValue,
       [] {
         void* memory = nullptr;
         cudaMalloc(&memory, 256);
         cudaFree(memory);
         return cudaFree(memory);
       }},
      {"nothing freed", cudaSuccess, [] { return cudaFree(nullptr); }},
      {"a direction of copy that is none", cudaErrorInvalidMemcpyDirection,
       [] {
         Memory memory;
         return cudaMemcpy(memory.device, memory.host, 16, cudaMemcpyKind(7));
       }},
      {"a copy to nowhere", cudaErrorInvalidValue,
       [] {
         Memory memory;
         return cudaMemcpy(nullptr, memory.host, 16, cudaMemcpyHostToDevice);
       }},
      {"a copy of nothing to nowhere", cudaSuccess,
       [] {
         Memory memory;
         return cudaMemcpy(nullptr, memory.host, 0, cudaMemcpyHostToDevice);
       }},
      {"bytes of nowhere set", cudaErrorInvalidValue, [] { return cudaMemset(nullptr, 0, 16); }},
      {"rows longer than their pitch", cudaErrorInvalidPitchValue,
       [] {
         Memory memory;
         return cudaMemcpy2D(memory.device, 16, memory.host, 8, 16, 2, cudaMemcpyHostToDevice);
       }},
      {"a symbol that is none", cudaErrorInvalidSymbol,
       [] {
         int word = 0;
         return cudaMemcpyToSymbol(static_cast<const void*>(&word), &word, 4);
       }},
      {"more than a symbol holds", cudaErrorInvalidValue,
       [] {
         char bytes[32] = {};
         return cudaMemcpyToSymbol(symbol, bytes, 32);
       }},
      {"host memory of nobody freed", cudaErrorInvalidValue,
       [] {
         int host = 0;
         return cudaFreeHost(&host);
       }},
  };
}

std::vector<Misuse> misused_devices() {
  return {
      {"a device that is not there", cudaErrorInvalidDevice, [] { return cudaSetDevice(99); }},
      {"properties of a device that is not there", cudaErrorInvalidDevice,
       [] {
         cudaDeviceProp properties;
         return cudaGetDeviceProperties(&properties, 99);
       }},
      {"a device's attribute that is none", cudaErrorInvalidValue,
       [] {
         int value = 0;
         return cudaDeviceGetAttribute(&value, cudaDeviceAttr(100000), 0);
       }},
      {"a limit that is none", cudaErrorInvalidValue, [] { return cudaDeviceSetLimit(cudaLimit(99), 1); }},
  };
}

std::vector<Misuse> misused_streams() {
  using E = cudaError_t;
  return {
      {"the default stream destroyed", cudaErrorInvalidResourceHandle,
       [] { return cudaStreamDestroy(nullptr); }},
      {"no event recorded", cudaErrorInvalidResourceHandle, [] { return cudaEventRecord(nullptr); }},
      {"no event destroyed", cudaErrorInvalidResourceHandle, [] { return cudaEventDestroy(nullptr); }},
      {"time between events that were not recorded", cudaErrorInvalidResourceHandle,
       [] { return elapsed(cudaEventDefault, false); }},
      {"time between events without timing", cudaErrorInvalidResourceHandle,
       [] { return elapsed(cudaEventDisableTiming, true); }},
      {"an event with flags that are none", cudaErrorInvalidValue,
       [] {
         cudaEvent_t event = nullptr;
         return cudaEventCreateWithFlags(&event, 0x100);
       }},
      {"a stream with flags that are none", cudaErrorInvalidValue,
       [] {
         cudaStream_t stream = nullptr;
         return cudaStreamCreateWithFlags(&stream, 0x100);
       }},
      {"the end of a capture that did not begin", cudaErrorIllegalState,
       [] {
         cudaStream_t stream = nullptr;
         cudaGraph_t graph = nullptr;
         cudaStreamCreate(&stream);
         const E error = cudaStreamEndCapture(stream, &graph);
         cudaStreamDestroy(stream);
         return error;
       }},
      {"the default stream captured", cudaErrorStreamCaptureUnsupported,
       [] { return cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeThreadLocal); }},
      {"a captured stream waited for", cudaErrorStreamCaptureUnsupported,
       [] { return in_capture([](cudaStream_t stream) { return cudaStreamSynchronize(stream); }); }},
      {"the end of a capture that was waited for", cudaErrorStreamCaptureInvalidated,
       [] { return in_capture([](cudaStream_t stream) { return cudaStreamSynchronize(stream); }, true); }},
      {"a capture within a capture", cudaErrorIllegalState,
       [] {
         return in_capture([](cudaStream_t stream) {
           return cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
         });
       }},
      {"a bad launch in a capture", cudaErrorInvalidValue,
       [] {
         return in_capture(
             [](cudaStream_t stream) { return launch(kNothing, dim3(0), dim3(32), 0, stream); });
       }},
      {"no graph launched", cudaErrorInvalidValue, [] { return cudaGraphLaunch(nullptr, nullptr); }},
      {"no graph instantiated", cudaErrorInvalidValue,
       [] {
         cudaGraphExec_t executable = nullptr;
         return cudaGraphInstantiate(&executable, static_cast<cudaGraph_t>(nullptr), 0);
       }},
  };
}

std::vector<Misuse> misuses() {
  std::vector<Misuse> all;
  for (const auto& some : {misused_launches(), misused_memory(), misused_devices(), misused_streams()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

class Codes : public testing::Test {
 protected:
  void SetUp() override {
    try {
      gg::choose_device(gg::emulator() ? gg::Options::Device::emulator : gg::Options::Device::gpu, {});
    } catch (const gg::Error& error) {
      GTEST_SKIP() << error.what();
    }
  }
};

TEST_F(Codes, AreThoseOfTheRuntime) {
  for (const Misuse& misuse : misuses()) {
    cudaGetLastError();
    EXPECT_STREQ(cudaGetErrorName(misuse.call()), cudaGetErrorName(misuse.wanted)) << misuse.what;
  }
  cudaGetLastError();
  EXPECT_EQ(launch(kNothing, dim3(1), dim3(32)), cudaSuccess) << "nothing is left behind";
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

// Every attribute that cuda.h 13.0 names has a value, 0 where the device has no such thing.
TEST_F(Codes, NoAttributeOfADeviceIsAnError) {
  for (int attribute = 1; attribute <= CU_DEVICE_ATTRIBUTE_ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED;
       ++attribute) {
    int value = -77;
    EXPECT_EQ(cudaDeviceGetAttribute(&value, cudaDeviceAttr(attribute), 0), cudaSuccess) << attribute;
    EXPECT_NE(value, -77) << attribute;
  }
  int clusters = -1, maps = -1;
  EXPECT_EQ(cudaDeviceGetAttribute(&clusters, cudaDevAttrClusterLaunch, 0), cudaSuccess);
  EXPECT_EQ(cudaDeviceGetAttribute(&maps, cudaDeviceAttr(CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED), 0),
            cudaSuccess);
  EXPECT_EQ(maps, clusters);
}

// An H100 answered so for each direction, by where the two places are.
TEST_F(Codes, OfCopiesGoByTheDirection) {
  Memory device;
  char host[2][16] = {};
  void* const places[2][2] = {{host[0], host[1]}, {device.device, static_cast<char*>(device.device) + 128}};
  constexpr cudaMemcpyKind kKinds[] = {cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost,
                                       cudaMemcpyDeviceToDevice, cudaMemcpyDefault};
  for (const bool to : {false, true}) {
    for (const bool from : {false, true}) {
      for (const cudaMemcpyKind kind : kKinds) {
        const bool wants_to = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
        const bool wants_from = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
        const bool fits = (to || !wants_to) && (from || !wants_from);
        EXPECT_EQ(cudaMemcpy(places[to][0], places[from][1], 16, kind),
                  fits ? cudaSuccess : cudaErrorInvalidValue)
            << "to " << to << " from " << from << " kind " << kind;
      }
    }
  }
  cudaGetLastError();
}

// A launch's refusal is the last error until somebody asks.
TEST_F(Codes, OfALaunchStayUntilTheyAreAskedFor) {
  cudaGetLastError();
  nothing<<<0, 32>>>(nullptr);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

struct Said {
  std::function<cudaError_t()> call;
  std::string sentence;
};

std::vector<Said> sentences() {
  static Memory memory;
  static int word = 0;
  const auto dynamic = [](int bytes) {
    return cudaFuncSetAttribute(kNothing, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  };
  const std::string
      attribute = "gg-emu: an attribute of codes::nothing is refused: ",
      launched = "gg-emu: the launch of codes::nothing is refused: ",
      limit =
          " bytes of dynamic shared memory beside 0 static ones, a block of NVIDIA H200 (emulated) "
          "has at most 232448 in all (cudaDevAttrMaxSharedMemoryPerBlockOptin)\n";
  return {
      {[=] { return dynamic(262144); }, attribute + "262144" + limit},
      {[] { return launch(kNothing, dim3(1), dim3(32), 262144); }, launched + "262144" + limit},
      {[] { return launch(kNothing, dim3(1), dim3(32), 65552); },
       launched + "65552 bytes of dynamic shared memory beside 0 static ones, more than 49152 in all want "
                  "cudaFuncAttributeMaxDynamicSharedMemorySize, here up to 232448\n"},
      {[=] { return dynamic(-1); }, attribute + "-1 is no number of bytes\n"},
      {[] { return cudaFuncSetAttribute(kNothing, cudaFuncAttributePreferredSharedMemoryCarveout, 101); },
       attribute + "a carveout of 101, it is -1 or a percentage from 0 to 100\n"},
      {[] { return cudaFuncSetAttribute(kNothing, cudaFuncAttribute(99), 1); },
       attribute + "99 is no attribute that can be set\n"},
      {[] { return cudaDeviceGetAttribute(&word, cudaDeviceAttr(100001), 0); },
       "gg-emu: a device has no attribute 100001, they are 1 to "},
      {[] { return cudaMemcpy(memory.device, memory.host, 16, cudaMemcpyDeviceToHost); },
       "gg-emu: cudaMemcpyDeviceToHost reads device memory, and 0x"},
      {[] { return cudaMemcpy(memory.host, memory.device, 16, cudaMemcpyHostToDevice); },
       "gg-emu: cudaMemcpyHostToDevice writes device memory, and 0x"},
      {[] { return cudaMemcpy(memory.device, memory.host, 16, cudaMemcpyKind(8)); },
       "gg-emu: a copy of 16 bytes in direction 8, cudaMemcpyKind has 0 to 4\n"},
      {[] { return cudaMemcpy(memory.device, nullptr, 24, cudaMemcpyHostToDevice); },
       "gg-emu: a copy of 24 bytes from a null pointer\n"},
      {[] { return cudaMemcpy2D(memory.device, 24, memory.host, 8, 24, 2, cudaMemcpyHostToDevice); },
       "gg-emu: a copy of 24 bytes in each row, whose pitch is 8 bytes\n"},
      {[] { return cudaMemcpyToSymbol(symbol, &word, 8, 0, cudaMemcpyDeviceToHost); },
       "gg-emu: a copy of 8 bytes to a symbol, which is device memory, by cudaMemcpyDeviceToHost\n"},
      {[] { return cudaMemset(&word, 0, 4); }, ", which is no device memory\n"},
  };
}

// The errors' own texts name neither what was asked for nor what there is. Each is said once.
TEST_F(Codes, TheEmulatorSaysWhatWasWrong) {
  if (!gg::emulator()) GTEST_SKIP() << "this is a real runtime";
  for (const Said& each : sentences()) {
    testing::internal::CaptureStderr();
    EXPECT_NE(each.call(), cudaSuccess) << each.sentence;
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find(each.sentence), std::string::npos) << each.sentence << "said: " << said;
  }
  cudaGetLastError();
}

// A chapter's own sentence, which is all that a GPU gives, names the limit too.
TEST_F(Codes, AChapterNamesTheLimitOfSharedMemory) {
  try {
    GG_CHECK(cudaFuncSetAttribute(kNothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 262144));
    ADD_FAILURE() << "a block has 256 KB";
  } catch (const gg::Error& error) {
    EXPECT_NE(
        std::string(error.what()).find("a block has at most 232448 bytes of shared memory on this device"),
        std::string::npos)
        << error.what();
  }
  cudaGetLastError();
}

TEST_F(Codes, HaveTheirTexts) {
  EXPECT_STREQ(cudaGetErrorString(cudaErrorInvalidConfiguration), "invalid configuration argument");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorIllegalAddress), "an illegal memory access was encountered");
  EXPECT_STREQ(cudaGetErrorString(cudaError_t(123456)), "unrecognized error code");
}

// A side stream joins the capture by an event and is joined by another; destroyed then, it leaves
// the capture whole.
TEST_F(Codes, OfACaptureWhoseSideStreamWasDestroyed) {
  cudaStream_t stream = nullptr, side = nullptr;
  cudaEvent_t fork = nullptr, join = nullptr;
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaStreamCreate(&side), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&fork), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&join), cudaSuccess);
  EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(fork, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(side, fork, 0), cudaSuccess);
  EXPECT_EQ(launch(kNothing, dim3(1), dim3(32), 0, side), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(join, side), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(stream, join, 0), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(side), cudaSuccess);
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  EXPECT_NE(graph, nullptr);
  if (graph) cudaGraphDestroy(graph);
  cudaGetLastError();
  cudaEventDestroy(fork);
  cudaEventDestroy(join);
  cudaStreamDestroy(stream);
}

}  // namespace codes
