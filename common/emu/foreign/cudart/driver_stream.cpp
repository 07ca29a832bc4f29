// SPDX-License-Identifier: MIT
//
// Streams, events and graphs, for the driver's interface: its handles and numbers are the
// runtime's. CUDA Driver API, "Stream Management", "Event Management", "Graph Management".

#include "common/emu/foreign/cudart/context.h"

using gg::emu::as_runtime;
using gg::emu::in_context;
using gg::emu::Runtime;

extern "C" {

CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  return as_runtime([&] { return cudaStreamCreateWithFlags(stream, flags); });
}
CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  return as_runtime([&] { return cudaStreamCreateWithPriority(stream, flags, priority); });
}
CUresult cuStreamDestroy(CUstream stream) {
  return as_runtime([&] { return cudaStreamDestroy(stream); });
}
CUresult cuStreamSynchronize(CUstream stream) {
  return as_runtime([&] { return cudaStreamSynchronize(stream); });
}
CUresult cuStreamQuery(CUstream stream) {
  return as_runtime([&] { return cudaStreamQuery(stream); });
}
CUresult cuStreamGetFlags(CUstream stream, unsigned* flags) {
  return as_runtime([&] { return cudaStreamGetFlags(stream, flags); });
}
CUresult cuStreamGetPriority(CUstream stream, int* priority) {
  return as_runtime([&] { return cudaStreamGetPriority(stream, priority); });
}
CUresult cuStreamGetId(CUstream stream, unsigned long long* id) {
  return as_runtime([&] { return cudaStreamGetId(stream, id); });
}
CUresult cuStreamGetDevice(CUstream stream, CUdevice* device) {
  return as_runtime([&] { return cudaStreamGetDevice(stream, device); });
}
// A stream is of no context in particular: the caller's.
CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  return in_context([&](Runtime& rt) {
    if (!rt.streams.stream(stream)) return CUDA_ERROR_INVALID_HANDLE;
    return cuCtxGetCurrent(context);
  });
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  return as_runtime([&] { return cudaStreamWaitEvent(stream, event, flags); });
}
CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* data, unsigned flags) {
  return as_runtime([&] {
    return cudaStreamAddCallback(stream, reinterpret_cast<cudaStreamCallback_t>(callback), data, flags);
  });
}
CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  return as_runtime([&] { return cudaStreamBeginCapture(stream, cudaStreamCaptureMode(mode)); });
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return as_runtime([&] { return cudaStreamEndCapture(stream, graph); });
}
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return as_runtime(
      [&] { return cudaStreamIsCapturing(stream, reinterpret_cast<cudaStreamCaptureStatus*>(status)); });
}
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return as_runtime(
      [&] { return cudaThreadExchangeStreamCaptureMode(reinterpret_cast<cudaStreamCaptureMode*>(mode)); });
}

CUresult cuEventCreate(CUevent* event, unsigned flags) {
  return as_runtime([&] { return cudaEventCreateWithFlags(event, flags); });
}
CUresult cuEventDestroy(CUevent event) {
  return as_runtime([&] { return cudaEventDestroy(event); });
}
CUresult cuEventRecord(CUevent event, CUstream stream) {
  return as_runtime([&] { return cudaEventRecord(event, stream); });
}
CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
  return as_runtime([&] { return cudaEventRecordWithFlags(event, stream, flags); });
}
CUresult cuEventSynchronize(CUevent event) {
  return as_runtime([&] { return cudaEventSynchronize(event); });
}
CUresult cuEventQuery(CUevent event) {
  return as_runtime([&] { return cudaEventQuery(event); });
}
CUresult cuEventElapsedTime(float* milliseconds, CUevent from, CUevent to) {
  return as_runtime([&] { return cudaEventElapsedTime(milliseconds, from, to); });
}
CUresult gg_emu_elapsed_time(float* milliseconds, CUevent from, CUevent to) __asm__("cuEventElapsedTime");
CUresult gg_emu_elapsed_time(float* milliseconds, CUevent from, CUevent to) {
  return cuEventElapsedTime(milliseconds, from, to);
}

CUresult cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  return as_runtime([&] { return cudaGraphInstantiateWithFlags(exec, graph, flags); });
}
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  return as_runtime([&] { return cudaGraphLaunch(exec, stream); });
}
CUresult cuGraphUpload(CUgraphExec exec, CUstream stream) {
  return as_runtime([&] { return cudaGraphUpload(exec, stream); });
}
CUresult cuGraphExecDestroy(CUgraphExec exec) {
  return as_runtime([&] { return cudaGraphExecDestroy(exec); });
}
CUresult cuGraphDestroy(CUgraph graph) {
  return as_runtime([&] { return cudaGraphDestroy(graph); });
}
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  return as_runtime([&] { return cudaGraphGetNodes(graph, nodes, count); });
}

}  // extern "C"
