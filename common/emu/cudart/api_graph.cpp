// SPDX-License-Identifier: MIT
//
// Graphs of captured streams, made ready and launched. CUDA Runtime API, "Graph Management".

#include <vector>

#include "common/emu/cudart/graph.h"

using gg::emu::api;
using gg::emu::Runtime;

namespace {

cudaError_t instantiate(cudaGraphExec_t* into, cudaGraph_t graph, unsigned long long flags) {
  return api([&](Runtime& rt) {
    CUgraph_st* const known = rt.streams.graph(graph);
    if (!into || !known) return cudaErrorInvalidValue;
    constexpr unsigned long long kHarmless = cudaGraphInstantiateFlagAutoFreeOnLaunch |
                                             cudaGraphInstantiateFlagUpload |
                                             cudaGraphInstantiateFlagUseNodePriority;
    if (flags & ~kHarmless) return gg::emu::unsupported("a graph that the device launches");
    CUgraphExec_st* const exec = rt.streams.create_exec();
    const cudaError_t error = gg::emu::instantiate(*known, exec);
    if (error == cudaSuccess) {
      *into = exec;
    } else {
      rt.streams.destroy(exec);
    }
    return error;
  });
}

}  // namespace

extern "C" {

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return instantiate(exec, graph, flags);
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                          unsigned long long flags) {
  return instantiate(exec, graph, flags);
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t handle, cudaStream_t stream_handle) {
  return api([&](Runtime& rt) {
    CUstream_st* const stream = rt.streams.stream(stream_handle);
    if (!stream) return cudaErrorInvalidResourceHandle;
    CUgraphExec_st* const exec = rt.streams.exec(handle);
    if (!exec) return cudaErrorInvalidValue;
    if (stream->capture) return rt.streams.may_wait(stream);      // can't be captured
    const std::vector<CUgraphExec_st::Step> steps = exec->steps;  // a host function may change them
    return rt.streams.submit(stream_handle, cudaGraphNodeTypeGraph,
                             [&rt, &steps] { return gg::emu::run(rt, steps); });
  });
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t handle) {
  return api([&](Runtime& rt) {
    CUgraphExec_st* const exec = rt.streams.exec(handle);
    if (!exec) return cudaErrorInvalidValue;
    rt.streams.destroy(exec);
    return cudaSuccess;
  });
}
cudaError_t cudaGraphDestroy(cudaGraph_t handle) {
  return api([&](Runtime& rt) {
    CUgraph_st* const graph = rt.streams.graph(handle);
    if (!graph) return cudaErrorInvalidValue;
    rt.streams.destroy(graph);
    return cudaSuccess;
  });
}

}  // extern "C"
