// SPDX-License-Identifier: MIT
//
// Memory from cudaMalloc, one stream for everything, each call waited for unless the
// machine defers that.

#include "common/harness/machine/cuda.h"

#include <algorithm>

#include "common/harness/machine/late_copy.h"

namespace gg {

CudaMachine::CudaMachine() { GG_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
CudaMachine::~CudaMachine() { cudaStreamDestroy(stream_); }

void CudaMachine::wait() { GG_CHECK(cudaStreamSynchronize(stream_)); }
void CudaMachine::wait_unless_deferred() {
  if (!deferred_) wait();
}

size_t CudaMachine::free_bytes() {
  size_t free = 0, total = 0;
  GG_CHECK(cudaMemGetInfo(&free, &total));
  return free;
}

void* CudaMachine::allocate(size_t bytes, const char* what) {
  void* memory = nullptr;
  const cudaError_t error = cudaMalloc(&memory, std::max<size_t>(bytes, 1));
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // the error is ours now
    throw Error(Exit::no_memory,
                format("%s needs %zu bytes of device memory, %zu are free", what, bytes, free_bytes()));
  }
  GG_CHECK(error);
  return memory;
}
void CudaMachine::release(void* memory) { cudaFree(memory); }

void CudaMachine::fill_bytes(void* memory, int byte, size_t bytes) {
  GG_CHECK(cudaMemsetAsync(memory, byte, bytes, stream_));
  wait_unless_deferred();
}
void CudaMachine::transfer(void* to, const void* from, size_t bytes) {
  GG_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_));
  wait();
}
void CudaMachine::download_rows(void* to_host, const void* from, size_t row_bytes, size_t step, int rows) {
  GG_CHECK(
      cudaMemcpy2DAsync(to_host, row_bytes, from, step, row_bytes, size_t(rows), cudaMemcpyDefault, stream_));
  wait();
}
void CudaMachine::copy(void* to, const void* from, size_t bytes) {
  GG_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_));
  wait_unless_deferred();
}

void CudaMachine::copy_late(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  int device = 0, major = 0;
  GG_CHECK(cudaGetDevice(&device));
  GG_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  if (major >= 9) return launch_late_copy(to, from, bytes, stream);
  GG_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
}

void CudaMachine::run(const Work& work) {
  work(stream_);
  wait();
}

std::function<void()> CudaMachine::captured(const Work& work) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  GG_CHECK(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
  try {
    work(stream_);
  } catch (...) {  // of a peer, for one: others want the stream after it
    cudaStreamEndCapture(stream_, &graph);
    if (graph) cudaGraphDestroy(graph);
    throw;
  }
  GG_CHECK(cudaStreamEndCapture(stream_, &graph));
  GG_CHECK(cudaGraphInstantiate(&executable, graph, 0));
  GG_CHECK(cudaGraphDestroy(graph));
  const std::shared_ptr<CUgraphExec_st> owner(executable,
                                              [](cudaGraphExec_t exec) { cudaGraphExecDestroy(exec); });
  return [this, owner] {
    GG_CHECK(cudaGraphLaunch(owner.get(), stream_));
    wait();
  };
}

}  // namespace gg
