// SPDX-License-Identifier: MIT
//
// Times what a stream is given, by two events, and records it into a graph. The harness times with
// it, and so do the libraries beside it (contest.h), which are built without the harness.

#pragma once

#include <cuda_runtime_api.h>

#include <memory>

namespace gg {

// CHECK(error, call, file, line) throws where a CUDA call failed.
template <void (*CHECK)(cudaError_t, const char*, const char*, int)>
class StreamTimer {
 public:
  using Graph = std::shared_ptr<CUgraphExec_st>;

  explicit StreamTimer(cudaStream_t stream) : stream_(stream) {
    check(cudaEventCreate(&begin_), "cudaEventCreate", __LINE__);
    check(cudaEventCreate(&end_), "cudaEventCreate", __LINE__);
  }
  ~StreamTimer() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  StreamTimer(const StreamTimer&) = delete;
  StreamTimer& operator=(const StreamTimer&) = delete;

  // Microseconds that the device spends on what `work` launches; `meanwhile` runs on the host
  // while it does.
  template <class Work, class Meanwhile>
  double time_us(Work&& work, Meanwhile&& meanwhile) {
    float ms = 0;
    check(cudaEventRecord(begin_, stream_), "cudaEventRecord", __LINE__);
    work();
    check(cudaEventRecord(end_, stream_), "cudaEventRecord", __LINE__);
    meanwhile();
    check(cudaEventSynchronize(end_), "cudaEventSynchronize", __LINE__);
    check(cudaEventElapsedTime(&ms, begin_, end_), "cudaEventElapsedTime", __LINE__);
    return double(ms) * 1000;
  }

  // Returns what `work` launches, as a graph.
  template <class Work>
  Graph record(Work&& work) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture",
          __LINE__);
    work();
    check(cudaStreamEndCapture(stream_, &graph), "cudaStreamEndCapture", __LINE__);
    check(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate", __LINE__);
    check(cudaGraphDestroy(graph), "cudaGraphDestroy", __LINE__);
    return Graph(executable, [](cudaGraphExec_t exec) { cudaGraphExecDestroy(exec); });
  }

  // Launches all of it again.
  void replay(const Graph& graph) {
    check(cudaGraphLaunch(graph.get(), stream_), "cudaGraphLaunch", __LINE__);
  }

 private:
  static void check(cudaError_t error, const char* call, int line) { CHECK(error, call, __FILE__, line); }

  cudaStream_t stream_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

}  // namespace gg
