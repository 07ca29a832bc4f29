// SPDX-License-Identifier: MIT
//
// Streams, events and graphs. Work runs when it is submitted, which is one of the orders that
// streams and events allow; a stream that captures keeps the work instead, as nodes of a graph that
// runs them whenever it is launched.

#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace gg::emu {

using Work = std::function<cudaError_t()>;
struct Capture;
struct NodeParams;  // graph.h

}  // namespace gg::emu

// The names are CUDA's, whose handles point here.
struct CUgraphNode_st {
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  gg::emu::Work run;  // empty: there is nothing to do
  std::vector<CUgraphNode_st*> needs;
  std::shared_ptr<const gg::emu::NodeParams> params;  // null: they cannot be asked for
  CUgraph_st* child = nullptr;                        // of a child node, which owns it
  CUgraph_st* graph = nullptr;
  const CUgraphNode_st* cloned_from = nullptr;
};

struct CUgraph_st {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;  // of a capture: none before those it needs
};

struct CUgraphExec_st {
  struct Step {
    const CUgraphNode_st* node = nullptr;  // never looked into: it may be gone
    cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
    gg::emu::Work run;
    bool enabled = true;
  };
  std::vector<Step> steps;    // in an order that the graph allows
  std::vector<size_t> shape;  // what must not change in an update: graph.cpp
};

struct CUstream_st {
  unsigned flags = 0;
  int priority = 0;
  unsigned long long id = 0;
  std::map<int, cudaStreamAttrValue> attributes;  // that were set, by cudaStreamAttrID
  std::shared_ptr<gg::emu::Capture> capture;
  std::vector<CUgraphNode_st*> tail;  // the next node needs these
};

struct CUevent_st {
  unsigned flags = 0;
  bool recorded = false;
  std::chrono::steady_clock::time_point time;
  std::shared_ptr<gg::emu::Capture> capture;  // recorded in a capture, after these nodes
  std::vector<CUgraphNode_st*> tail;
};

namespace gg::emu {

struct Capture {
  std::unique_ptr<CUgraph_st> graph = std::make_unique<CUgraph_st>();
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  CUstream_st* origin = nullptr;
  std::set<CUstream_st*> streams;
  std::set<void*> allocations;  // memory of the graph that was not freed in it
  bool invalid = false, ended = false;
  unsigned long long id = 0;
};

class Streams {
 public:
  Streams();

  // The stream of a handle, null if it is none. Null handles and cudaStreamLegacy are one stream.
  CUstream_st* stream(cudaStream_t handle);
  CUevent_st* event(cudaEvent_t handle) const { return events_.count(handle) ? handle : nullptr; }
  CUgraph_st* graph(cudaGraph_t handle) const { return graphs_.count(handle) ? handle : nullptr; }
  CUgraphExec_st* exec(cudaGraphExec_t handle) const { return execs_.count(handle) ? handle : nullptr; }
  bool is_default(const CUstream_st* stream) const { return stream == &legacy_ || stream == &per_thread_; }

  CUstream_st* create_stream(unsigned flags, int priority);
  void destroy(CUstream_st* stream);
  CUevent_st* create_event(unsigned flags);
  void destroy(CUevent_st* event);
  CUgraph_st* create_graph();
  CUgraphExec_st* create_exec();
  void destroy(CUgraph_st* graph);
  void destroy(CUgraphExec_st* exec);

  // Runs the work, or keeps it if the stream captures.
  cudaError_t submit(cudaStream_t handle, cudaGraphNodeType type, Work work,
                     std::shared_ptr<const NodeParams> params = nullptr);
  // A call that waits for a stream, an event or everything, or asks whether they are done, must
  // ask these first.
  cudaError_t may_wait(CUstream_st* stream);
  cudaError_t may_wait(CUevent_st* event);
  cudaError_t may_wait_for_all();
  // A call that is unsafe while streams capture (cudaMalloc, say) must ask this first.
  cudaError_t may_call();
  // A call that synchronises with the legacy stream must ask this first: captures of streams that
  // block with it become invalid.
  cudaError_t may_use_legacy();

  cudaError_t begin_capture(CUstream_st* stream, cudaStreamCaptureMode mode);
  cudaError_t end_capture(CUstream_st* stream, cudaGraph_t* graph);
  cudaError_t record(CUevent_st* event, CUstream_st* stream, bool external);
  cudaError_t wait(CUstream_st* stream, CUevent_st* event, bool external);
  static cudaStreamCaptureMode& thread_mode();

 private:
  void append(CUstream_st* stream, cudaGraphNodeType type, Work work,
              std::shared_ptr<const NodeParams> params = nullptr);

  CUstream_st legacy_, per_thread_;
  std::set<CUstream_st*> streams_;
  std::set<CUevent_st*> events_;
  std::set<CUgraph_st*> graphs_;
  std::set<CUgraphExec_st*> execs_;
  std::set<std::shared_ptr<Capture>> captures_;
  unsigned long long next_id_ = 3;
};

}  // namespace gg::emu
