// SPDX-License-Identifier: MIT
//
// Graphs that are changed after they were made ready. CUDA Runtime API, "Graph Management".

#include <algorithm>

#include "common/emu/cudart/graph.h"
#include "common/emu/foreign/cudart/graph_nodes.h"

using gg::emu::api;
using gg::emu::NodeContents;
using gg::emu::Runtime;

namespace {

template <class Body>
cudaError_t with_exec(cudaGraphExec_t handle, Body body) {
  return api([&](Runtime& rt) {
    CUgraphExec_st* const exec = rt.streams.exec(handle);
    return exec ? body(rt, *exec) : cudaErrorInvalidValue;
  });
}

// The step that a node of the graph has become; null: none.
CUgraphExec_st::Step* step_of(CUgraphExec_st& exec, cudaGraphNode_t node) {
  const auto found = std::find_if(exec.steps.begin(), exec.steps.end(),
                                  [node](const CUgraphExec_st::Step& step) { return step.node == node; });
  return found == exec.steps.end() ? nullptr : &*found;
}

template <class Params>
cudaError_t set_params(cudaGraphExec_t handle, cudaGraphNode_t node, const Params* params) {
  return with_exec(handle, [=](Runtime& rt, CUgraphExec_st& exec) {
    NodeContents contents;
    CUgraphExec_st::Step* const step = step_of(exec, node);
    if (!step || !params) return cudaErrorInvalidValue;
    if (const cudaError_t error = gg::emu::make_node(rt, *params, &contents)) return error;
    if (contents.type != step->type) return cudaErrorInvalidValue;
    step->run = std::move(contents.run);
    return cudaSuccess;
  });
}

}  // namespace

extern "C" {

cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* exec, cudaGraph_t graph,
                                           cudaGraphInstantiateParams* params) {
  if (!params) return api([](Runtime&) { return cudaErrorInvalidValue; });
  const cudaError_t error = cudaGraphInstantiateWithFlags(exec, graph, params->flags);
  params->errNode_out = nullptr;
  params->result_out = error == cudaSuccess ? cudaGraphInstantiateSuccess : cudaGraphInstantiateError;
  return error;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t handle, cudaStream_t) {
  return with_exec(handle, [](Runtime&, CUgraphExec_st&) { return cudaSuccess; });
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* params) {
  return set_params(exec, node, params);
}
cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemcpy3DParms* params) {
  return set_params(exec, node, params);
}
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void* to,
                                               const void* from, size_t bytes, cudaMemcpyKind kind) {
  const cudaMemcpy3DParms params = gg::emu::bytes_as_box(to, from, bytes, kind);
  return set_params(exec, node, &params);
}
cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemsetParams* params) {
  return set_params(exec, node, params);
}
cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                           const cudaHostNodeParams* params) {
  return set_params(exec, node, params);
}
cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                       cudaGraphNodeParams* params) {
  return set_params(exec, node, params);
}
cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t handle, cudaGraphNode_t node, unsigned enabled) {
  return with_exec(handle, [=](Runtime&, CUgraphExec_st& exec) {
    CUgraphExec_st::Step* const step = step_of(exec, node);
    const bool can = step && (step->type == cudaGraphNodeTypeKernel ||
                              step->type == cudaGraphNodeTypeMemcpy || step->type == cudaGraphNodeTypeMemset);
    if (!can) return cudaErrorInvalidValue;
    step->enabled = enabled != 0;
    return cudaSuccess;
  });
}
cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t handle, cudaGraphNode_t node, unsigned* enabled) {
  return with_exec(handle, [=](Runtime&, CUgraphExec_st& exec) {
    const CUgraphExec_st::Step* const step = step_of(exec, node);
    if (!step || !enabled) return cudaErrorInvalidValue;
    *enabled = step->enabled;
    return cudaSuccess;
  });
}
// Takes what the nodes of another graph do, if it has the same nodes and edges.
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t handle, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* result) {
  return with_exec(handle, [=](Runtime& rt, CUgraphExec_st& exec) {
    CUgraphExec_st changed;
    const CUgraph_st* const known = rt.streams.graph(graph);
    if (!known || !result) return cudaErrorInvalidValue;
    *result = {cudaGraphExecUpdateErrorTopologyChanged, nullptr, nullptr};
    if (gg::emu::instantiate(*known, &changed) != cudaSuccess || changed.shape != exec.shape)
      return cudaErrorGraphExecUpdateFailure;
    for (size_t i = 0; i < exec.steps.size(); ++i) exec.steps[i].run = std::move(changed.steps[i].run);
    result->result = cudaGraphExecUpdateSuccess;
    return cudaSuccess;
  });
}

}  // extern "C"
