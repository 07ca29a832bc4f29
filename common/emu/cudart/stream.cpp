// SPDX-License-Identifier: MIT
//
// Submitting work, and capturing it. CUDA Programming Guide, "CUDA Graphs", "Stream Capture"; the
// errors are those that a driver (13.0) returned.

#include "common/emu/cudart/stream.h"

#include <algorithm>

#include "common/emu/cudart/runtime.h"

namespace gg::emu {
namespace {

// Whether every node of the graph comes before, or is among, those that the stream has come to.
bool joined(const CUgraph_st& graph, const std::vector<CUgraphNode_st*>& tail) {
  std::set<const CUgraphNode_st*> reached(tail.begin(), tail.end());
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    if (!reached.count(node->get())) return false;
    reached.insert((*node)->needs.begin(), (*node)->needs.end());
  }
  return true;
}

void merge(std::vector<CUgraphNode_st*>& into, const std::vector<CUgraphNode_st*>& nodes) {
  for (CUgraphNode_st* node : nodes) {
    if (std::find(into.begin(), into.end(), node) == into.end()) into.push_back(node);
  }
}

void leave_capture(Capture& capture) {
  capture.ended = true;
  for (CUstream_st* stream : capture.streams) {
    stream->capture.reset();
    stream->tail.clear();
  }
  capture.streams.clear();
}

}  // namespace

Streams::Streams() {
  legacy_.id = 1;
  per_thread_.id = 2;
}

CUstream_st* Streams::stream(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy) return &legacy_;
  if (handle == cudaStreamPerThread) return &per_thread_;
  return streams_.count(handle) ? handle : nullptr;
}

CUstream_st* Streams::create_stream(unsigned flags, int priority) {
  want_context();
  auto* stream = new CUstream_st;
  stream->flags = flags;
  stream->priority = priority;
  stream->id = next_id_++;
  streams_.insert(stream);
  return stream;
}

void Streams::destroy(CUstream_st* stream) {
  if (const auto capture = stream->capture) {
    capture->streams.erase(stream);
    if (capture->origin == stream) {
      // Another stream's work stays in the graph; whether it was joined is asked at the end.
      capture->invalid = true;
      leave_capture(*capture);
      captures_.erase(capture);
    }
  }
  streams_.erase(stream);
  delete stream;
}

CUevent_st* Streams::create_event(unsigned flags) {
  want_context();
  auto* event = new CUevent_st;
  event->flags = flags;
  events_.insert(event);
  return event;
}

void Streams::destroy(CUevent_st* event) {
  events_.erase(event);
  delete event;
}

CUgraph_st* Streams::create_graph() {
  auto* graph = new CUgraph_st;
  graphs_.insert(graph);
  return graph;
}

CUgraphExec_st* Streams::create_exec() {
  auto* exec = new CUgraphExec_st;
  execs_.insert(exec);
  return exec;
}

void Streams::destroy(CUgraph_st* graph) {
  for (const auto& node : graph->nodes) {
    if (node->child) destroy(node->child);
  }
  graphs_.erase(graph);
  delete graph;
}

void Streams::destroy(CUgraphExec_st* exec) {
  execs_.erase(exec);
  delete exec;
}

void Streams::append(CUstream_st* stream, cudaGraphNodeType type, Work work,
                     std::shared_ptr<const NodeParams> params) {
  auto node = std::make_unique<CUgraphNode_st>();
  node->type = type;
  node->run = std::move(work);
  node->params = std::move(params);
  node->graph = stream->capture->graph.get();
  node->needs = stream->tail;
  stream->tail.assign(1, node.get());  // GCC 14 sees an assigned {node} out of bounds
  stream->capture->graph->nodes.push_back(std::move(node));
}

cudaError_t Streams::submit(cudaStream_t handle, cudaGraphNodeType type, Work work,
                            std::shared_ptr<const NodeParams> params) {
  CUstream_st* const target = stream(handle);
  if (!target) return cudaErrorInvalidResourceHandle;
  want_context();
  if (target->capture) {
    if (target->capture->invalid) return cudaErrorStreamCaptureInvalidated;
    append(target, type, std::move(work), std::move(params));
    return cudaSuccess;
  }
  if (target == &legacy_) {
    if (const cudaError_t error = may_use_legacy()) return error;
  }
  return work();
}

cudaError_t Streams::may_wait(CUstream_st* target) {
  if (target->capture) {
    target->capture->invalid = true;
    return cudaErrorStreamCaptureUnsupported;
  }
  if (target == &legacy_) {
    if (const cudaError_t error = may_use_legacy()) return error;
  }
  return may_call();
}

cudaError_t Streams::may_wait(CUevent_st* event) {
  if (!event->capture) return may_call();
  if (event->capture->ended) return cudaErrorInvalidValue;
  event->capture->invalid = true;
  return cudaErrorCapturedEvent;
}

cudaError_t Streams::may_wait_for_all() {
  for (const auto& capture : captures_) capture->invalid = true;
  return captures_.empty() ? cudaSuccess : cudaErrorStreamCaptureUnsupported;
}

cudaError_t Streams::may_call() {
  want_context();
  if (thread_mode() == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  for (const auto& capture : captures_) {
    const bool own = capture->thread == std::this_thread::get_id();
    const bool theirs =
        thread_mode() == cudaStreamCaptureModeGlobal && capture->mode == cudaStreamCaptureModeGlobal;
    if ((own && capture->mode != cudaStreamCaptureModeRelaxed) || theirs) {
      capture->invalid = true;
      return cudaErrorStreamCaptureUnsupported;
    }
  }
  return cudaSuccess;
}

cudaError_t Streams::may_use_legacy() {
  bool any = false;
  for (const auto& capture : captures_) {
    const bool blocks = std::any_of(capture->streams.begin(), capture->streams.end(),
                                    [](const CUstream_st* s) { return !(s->flags & cudaStreamNonBlocking); });
    if (blocks) any = capture->invalid = true;
  }
  return any ? cudaErrorStreamCaptureImplicit : cudaSuccess;
}

cudaError_t Streams::begin_capture(CUstream_st* target, cudaStreamCaptureMode mode) {
  if (target == &legacy_) return cudaErrorStreamCaptureUnsupported;
  if (target->capture) return cudaErrorIllegalState;
  auto capture = std::make_shared<Capture>();
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->origin = target;
  capture->streams = {target};
  capture->id = next_id_++;
  target->capture = capture;
  target->tail.clear();
  captures_.insert(capture);
  return cudaSuccess;
}

cudaError_t Streams::end_capture(CUstream_st* target, cudaGraph_t* graph) {
  const std::shared_ptr<Capture> capture = target->capture;
  if (!capture) return cudaErrorIllegalState;
  const bool wrong_thread =
      capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id();
  if (capture->origin != target) {
    capture->invalid = true;
    return cudaErrorStreamCaptureUnmatched;
  }
  cudaError_t error = cudaSuccess;
  if (wrong_thread) {
    error = cudaErrorStreamCaptureWrongThread;
  } else if (capture->invalid) {
    error = cudaErrorStreamCaptureInvalidated;
  } else if (!joined(*capture->graph, target->tail)) {
    error = cudaErrorStreamCaptureUnjoined;
  }
  leave_capture(*capture);
  captures_.erase(capture);
  *graph = nullptr;
  if (error != cudaSuccess) return error;
  *graph = capture->graph.release();
  graphs_.insert(*graph);
  return cudaSuccess;
}

cudaError_t Streams::record(CUevent_st* event, CUstream_st* target, bool external) {
  const auto now = [event] {
    event->recorded = true;
    event->time = std::chrono::steady_clock::now();
    return cudaSuccess;
  };
  if (target->capture) {
    if (target->capture->invalid) return cudaErrorStreamCaptureInvalidated;
    if (external) {
      append(target, cudaGraphNodeTypeEventRecord, now);
      return cudaSuccess;
    }
    event->capture = target->capture;
    event->tail = target->tail;
    return cudaSuccess;
  }
  if (target == &legacy_) {
    if (const cudaError_t error = may_use_legacy()) return error;
  }
  event->capture.reset();
  event->tail.clear();
  return now();
}

cudaError_t Streams::wait(CUstream_st* target, CUevent_st* event, bool external) {
  if (target->capture && external && !(event->capture && event->capture->ended)) {
    append(target, cudaGraphNodeTypeWaitEvent, [] { return cudaSuccess; });
    return cudaSuccess;
  }
  if (!event->capture) {
    if (!target->capture || !event->recorded) return cudaSuccess;
    target->capture->invalid = true;  // it waits for work that is no part of the graph
    return cudaErrorStreamCaptureIsolation;
  }
  if (event->capture->ended) {
    if (target->capture) target->capture->invalid = true;
    return cudaErrorInvalidValue;
  }
  if (event->capture->invalid) return cudaErrorStreamCaptureInvalidated;
  if (target == &legacy_) {
    event->capture->invalid = true;
    return cudaErrorStreamCaptureImplicit;
  }
  if (target->capture && target->capture != event->capture) {
    target->capture->invalid = event->capture->invalid = true;
    return cudaErrorStreamCaptureMerge;
  }
  target->capture = event->capture;
  target->capture->streams.insert(target);
  merge(target->tail, event->tail);
  return cudaSuccess;
}

cudaStreamCaptureMode& Streams::thread_mode() {
  thread_local cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  return mode;
}

}  // namespace gg::emu
