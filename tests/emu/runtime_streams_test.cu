// SPDX-License-Identifier: MIT
//
// Streams, events and graphs of the CUDA runtime as programs use them: the same tests run with
// NVIDIA's runtime on a GPU and with the emulator's. What calls answer here is what a driver (13.0)
// on an H200 answered.

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <vector>

#include "tests/emu/runtime.cuh"

namespace runtime_streams {

using namespace runtime_test;

__global__ void add(int* values, int amount) { values[threadIdx.x] += amount; }
__global__ void add_slowly(volatile int* value) {  // two at once would count one
  const int before = *value;
  int sum = 0;
  for (int i = 0; i < 1000; ++i) sum += value[i % 2];
  *value = before + (sum != -1);
}
__global__ __launch_bounds__(128) void bounded(int* values) { values[threadIdx.x] = 1; }

TEST_F(Runtime, TimesEventsThatWereRecorded) {
  cudaEvent_t begin, end, untimed;
  float ms = -1;
  ASSERT_EQ(cudaEventCreate(&begin), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&end), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(begin), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&ms, begin, end), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventRecord(begin, stream_), cudaSuccess);
  add<<<1, 32, 0, stream_>>>(values_, 1);
  EXPECT_EQ(cudaEventRecord(end, stream_), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(untimed, stream_), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(end), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&ms, begin, end), cudaSuccess);
  EXPECT_GE(ms, 0);
  EXPECT_EQ(cudaEventElapsedTime(&ms, begin, untimed), cudaErrorInvalidResourceHandle);
  for (cudaEvent_t event : {begin, end, untimed}) EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

void count_up(void* count) { ++*static_cast<int*>(count); }

TEST_F(Runtime, ReplaysWhatWasCaptured) {
  int amount = 5, calls = 0;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(values_, 0, 128, stream_), cudaSuccess);
  add<<<1, 64, 0, stream_>>>(values_, amount);
  amount = 1000;  // the graph has the value of then
  EXPECT_EQ(cudaMemcpyAsync(values_, values_ + 32, 4, cudaMemcpyDeviceToDevice, stream_), cudaSuccess);
  EXPECT_EQ(cudaLaunchHostFunc(stream_, count_up, &calls), cudaSuccess);
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  EXPECT_EQ(read(1)[0], 0);  // nothing ran
  size_t nodes = 0;
  EXPECT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), cudaSuccess);
  EXPECT_EQ(nodes, 4u);
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  const std::vector<int> values = read();
  EXPECT_EQ(values[0], 15);
  EXPECT_EQ(values[1], 5);
  EXPECT_EQ(values[32], 15);
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(cudaGraphLaunch(exec, nullptr), cudaSuccess);
  EXPECT_EQ(read()[32], 20);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

// A launch may keep what is its own, such as the counter of chapter 07h: recorded, it is put in
// order behind the launch before of the same instance, in whichever stream that is (CUDA
// Runtime API, cudaGraphLaunch).
TEST_F(Runtime, AnInstanceOfAGraphNeverRunsBesideItself) {
  cudaStream_t other;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaMemset(values_, 0, 8), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  add_slowly<<<1, 1, 0, stream_>>>(values_);
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
    EXPECT_EQ(cudaGraphLaunch(exec, other), cudaSuccess);
  }
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(read(1)[0], 40);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(other), cudaSuccess);
}

TEST_F(Runtime, CapturesForksThatJoin) {
  cudaStream_t side;
  cudaEvent_t forked, joined;
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&forked), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&joined), cudaSuccess);
  for (const bool join : {true, false}) {
    ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(forked, stream_), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(side, forked, 0), cudaSuccess);
    add<<<1, 1, 0, side>>>(values_, 1);
    EXPECT_EQ(cudaEventRecord(joined, side), cudaSuccess);
    if (join) {
      EXPECT_EQ(cudaStreamWaitEvent(stream_, joined, 0), cudaSuccess);
    }
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), join ? cudaSuccess : cudaErrorStreamCaptureUnjoined);
    EXPECT_EQ(graph != nullptr, join);
    if (graph) {
      EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    }
  }
  cudaStreamDestroy(side);
}

// Returns what the call answers on another thread.
cudaError_t on_thread(const std::function<cudaError_t()>& call) {
  cudaError_t error = cudaSuccess;
  std::thread([&] { error = call(); }).join();
  return error;
}

// A call while a new stream captures answers so; where that is a failure, it spoils the capture.
void expect_in_capture(cudaStream_t& stream, unsigned flags, cudaStreamCaptureMode mode,
                       const std::function<cudaError_t()>& run, cudaError_t expected) {
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, flags), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, mode), cudaSuccess);
  EXPECT_EQ(run(), expected);
  cudaStreamCaptureStatus status;
  EXPECT_EQ(cudaStreamIsCapturing(stream, &status), cudaSuccess);
  const bool spoiled = expected != cudaSuccess && expected != cudaErrorIllegalState;
  EXPECT_EQ(status, spoiled ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), spoiled ? cudaErrorStreamCaptureInvalidated : cudaSuccess);
  if (graph) cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
  cudaGetLastError();
}

// Tests what calls answer while a stream captures, by mode, and what becomes of the capture.
TEST_F(Runtime, GuardsCapturesAsTheDriverDoes) {
  constexpr cudaError_t kOk = cudaSuccess, kNo = cudaErrorStreamCaptureUnsupported,
                        kImplicit = cudaErrorStreamCaptureImplicit;
  cudaStream_t stream, other;
  ASSERT_EQ(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
  cudaEvent_t event, idle, outside;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&outside), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(outside, other), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&idle), cudaSuccess);
  int host = 0;
  void* memory = nullptr;
  struct Call {
    const char* name;
    std::function<cudaError_t()> run;
    // Capturing a stream that does not block with the legacy one.
    cudaError_t global, local, relaxed;
    cudaError_t blocking;  // one that does, in any mode; kUnknown: as above
  };
  constexpr cudaError_t kSame = cudaErrorUnknown;
  const Call calls[] = {
      {"launch", [&] { return launch(reinterpret_cast<const void*>(&bounded), 1, 1, 0, stream); }, kOk, kOk,
       kOk, kSame},
      {"bad launch", [&] { return launch(reinterpret_cast<const void*>(&bounded), 1, 129, 0, stream); },
       cudaErrorInvalidValue, cudaErrorInvalidValue, cudaErrorInvalidValue, kSame},
      {"begin again", [&] { return cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal); },
       cudaErrorIllegalState, cudaErrorIllegalState, cudaErrorIllegalState, kSame},
      {"wait for it", [&] { return cudaStreamSynchronize(stream); }, kNo, kNo, kNo, kSame},
      {"query it", [&] { return cudaStreamQuery(stream); }, kNo, kNo, kNo, kSame},
      {"wait for another", [&] { return cudaStreamSynchronize(other); }, kNo, kNo, kOk, kSame},
      {"wait for the device", [&] { return cudaDeviceSynchronize(); }, kNo, kNo, kNo, kSame},
      {"wait for an event", [&] { return cudaEventSynchronize(idle); }, kNo, kNo, kOk, kSame},
      {"allocate", [&] { return cudaMalloc(&memory, 16); }, kNo, kNo, kOk, kSame},
      {"free", [&] { return cudaFree(nullptr); }, kNo, kNo, kOk, kSame},
      {"allocate elsewhere", [&] { return on_thread([&] { return cudaMalloc(&memory, 16); }); }, kNo, kOk,
       kOk, kSame},
      {"launch on legacy", [&] { return launch(reinterpret_cast<const void*>(&bounded), 1, 1); }, kOk, kOk,
       kOk, kImplicit},
      {"copy", [&] { return cudaMemcpy(values_, &host, 4, cudaMemcpyHostToDevice); }, kOk, kOk, kOk,
       kImplicit},
      {"set", [&] { return cudaMemset(values_, 0, 4); }, kOk, kOk, kOk, kImplicit},
      {"free memory",
       [&] {
         size_t f, t;
         return cudaMemGetInfo(&f, &t);
       },
       kOk, kOk, kOk, kSame},
      {"record", [&] { return cudaEventRecord(event, stream); }, kOk, kOk, kOk, kSame},
      {"ask what was recorded",
       [&] {
         cudaEventRecord(event, stream);
         return cudaEventQuery(event);
       },
       cudaErrorCapturedEvent, cudaErrorCapturedEvent, cudaErrorCapturedEvent, kSame},
      {"wait outside",
       [&] {
         cudaEventRecord(event, stream);
         return cudaStreamWaitEvent(nullptr, event, 0);
       },
       kImplicit, kImplicit, kImplicit, kSame},
      {"wait for nothing", [&] { return cudaStreamWaitEvent(stream, idle, 0); }, kOk, kOk, kOk, kSame},
      {"wait for outside", [&] { return cudaStreamWaitEvent(stream, outside, 0); },
       cudaErrorStreamCaptureIsolation, cudaErrorStreamCaptureIsolation, cudaErrorStreamCaptureIsolation,
       kSame},
  };
  for (const auto mode :
       {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed}) {
    for (const unsigned flags : {unsigned(cudaStreamNonBlocking), unsigned(cudaStreamDefault)}) {
      for (const Call& call : calls) {
        const cudaError_t by_mode[] = {call.global, call.local, call.relaxed};
        const cudaError_t expected =
            flags == cudaStreamDefault && call.blocking != kSame ? call.blocking : by_mode[mode];
        SCOPED_TRACE(std::string(call.name) + ", mode " + std::to_string(mode) + ", flags " +
                     std::to_string(flags));
        expect_in_capture(stream, flags, mode, call.run, expected);
      }
    }
  }
}

struct Called {
  cudaStream_t stream = nullptr;
  cudaError_t status = cudaErrorUnknown;
  int times = 0;
};
void take_call(cudaStream_t stream, cudaError_t status, void* data) {
  auto& called = *static_cast<Called*>(data);
  called.stream = stream;
  called.status = status;
  ++called.times;
}

TEST_F(Runtime, CallsTheHostFromAStream) {
  Called called;
  add<<<1, 64, 0, stream_>>>(values_, 1);
  ASSERT_EQ(cudaStreamAddCallback(stream_, take_call, &called, 0), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(called.times, 1);
  EXPECT_EQ(called.stream, stream_);
  EXPECT_EQ(called.status, cudaSuccess);
  EXPECT_EQ(cudaStreamAddCallback(stream_, nullptr, nullptr, 0), cudaErrorInvalidValue);
  EXPECT_EQ(cudaStreamAddCallback(stream_, take_call, &called, 1), cudaErrorInvalidValue);
}

TEST_F(Runtime, KeepsAttributesOfStreams) {
  cudaStreamAttrValue value = {}, found = {};
  int least = 9, greatest = 9, priority = 9;
  ASSERT_EQ(cudaDeviceGetStreamPriorityRange(&least, &greatest), cudaSuccess);
  EXPECT_LT(greatest, least);
  value.syncPolicy = cudaSyncPolicyYield;
  ASSERT_EQ(cudaStreamSetAttribute(stream_, cudaStreamAttributeSynchronizationPolicy, &value), cudaSuccess);
  ASSERT_EQ(cudaStreamGetAttribute(stream_, cudaStreamAttributeSynchronizationPolicy, &found), cudaSuccess);
  EXPECT_EQ(found.syncPolicy, cudaSyncPolicyYield);
  value.priority = greatest;
  ASSERT_EQ(cudaStreamSetAttribute(stream_, cudaStreamAttributePriority, &value), cudaSuccess);
  EXPECT_EQ(cudaStreamGetPriority(stream_, &priority), cudaSuccess);
  EXPECT_EQ(priority, greatest);
}

TEST_F(Runtime, RefusesOtherMisuseOfStreams) {
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorIllegalState);
  EXPECT_EQ(cudaStreamDestroy(nullptr), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamWaitEvent(stream_, nullptr, 0), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventRecord(nullptr, stream_), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaLaunchHostFunc(stream_, nullptr, nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGraphLaunch(nullptr, stream_), cudaErrorInvalidValue);
  ASSERT_EQ(cudaStreamBeginCapture(cudaStreamPerThread, cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_EQ(cudaStreamEndCapture(cudaStreamPerThread, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(Runtime, AllocatesMemoryInAGraph) {
  int* inside = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_EQ(cudaMallocAsync(&inside, 64, stream_), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(inside, 0, 64, stream_), cudaSuccess);
  add<<<1, 16, 0, stream_>>>(inside, 9);
  EXPECT_EQ(cudaMemcpyAsync(values_, inside, 64, cudaMemcpyDeviceToDevice, stream_), cudaSuccess);
  EXPECT_EQ(cudaFreeAsync(inside, stream_), cudaSuccess);
  EXPECT_EQ(cudaFreeAsync(values_, stream_), cudaErrorInvalidValue);
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  EXPECT_EQ(read(16), std::vector<int>(16, 9));
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

}  // namespace runtime_streams
